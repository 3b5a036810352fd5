package org.millrace.bench.gpu;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.millrace.bench.measure.Loop;
import org.millrace.cuda.CopyKernel;
import org.millrace.cuda.CopyQueue;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaDriver;
import org.millrace.cuda.DeviceMemory;
import org.millrace.cuda.PinnedMemory;

/** Copies like GIN's, one at a time. A measurement lasts from the call until the host sees the completion. */
public final class CopyLoops {

    /** Direction of a copy. */
    public enum Way {
        /** From the GPU's memory to pinned memory. */
        OUT("GPU to host"),
        /** From pinned memory to the GPU's. */
        IN("host to GPU"),
        /** Within the GPU's memory. */
        WITHIN("within the GPU");

        private final String title;

        Way(String title) {
            this.title = title;
        }

        /**
         * Returns the title for readers.
         *
         * @return a few words
         */
        public String title() {
            return title;
        }
    }

    private static final long BYTES = 1 << 20;
    private static final Duration LINGER = Duration.ofMillis(1);
    private static final long TIMEOUT_NANOS = Duration.ofSeconds(5).toNanos();

    private final CopyQueue engine;
    private final CopyQueue withKernel;
    private final long[] device = new long[2];
    private final long host;

    /**
     * Creates memory to copy, and both copiers.
     *
     * @param device the device, which is current
     */
    public CopyLoops(CudaDevice device) {
        CudaDriver driver = CudaDriver.load();
        // with the first allocation the runtime creates the thread's context
        for (int i = 0; i < this.device.length; i++) {
            DeviceMemory memory = device.allocate(BYTES);
            this.device[i] = memory.address();
        }
        long context = driver.currentContext(Arena.global().allocate(ValueLayout.JAVA_LONG));
        engine = new CopyQueue(driver, context, null);
        withKernel = new CopyQueue(driver, context, CopyKernel.load(driver, device, CopyKernel.Stay.of(LINGER)));
        host = PinnedMemory
                .allocate(device, BYTES, Arena.global(), PinnedMemory.Flag.MAPPED, PinnedMemory.Flag.PORTABLE)
                .device()
                .address();
    }

    /**
     * Returns a loop of copies.
     *
     * @param way    direction
     * @param bytes  size of each copy
     * @param kernel whether a persistent kernel on the GPU makes them, instead of a copy engine
     * @return a loop
     */
    public Loop of(Way way, int bytes, boolean kernel) {
        CopyQueue queue = kernel ? withKernel : engine;
        long to = way == Way.OUT ? host : device[0];
        long from = way == Way.IN ? host : device[1];
        return count -> {
            long last = 0;
            for (long i = 0; i < count; i++) {
                last = queue.copy(to, from, bytes);
                if (!isMade(queue, last)) {
                    return Loop.LOST;
                }
            }
            return last;
        };
    }

    private static boolean isMade(CopyQueue queue, long number) {
        long begin = System.nanoTime();
        while (!queue.isDone(number)) {
            if (System.nanoTime() - begin > TIMEOUT_NANOS) {
                return false;
            }
            Thread.onSpinWait();
        }
        return true;
    }
}
