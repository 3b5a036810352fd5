package org.millrace.bench.gpu;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.CurrentDevice;
import org.millrace.cuda.PinnedMemory;
import org.millrace.cuda.PinnedMemory.Flag;
import org.millrace.cuda.driver.CopyKernel;
import org.millrace.cuda.driver.CopyQueue;
import org.millrace.cuda.driver.CudaDriver;

/**
 * A queue of copies on the first GPU, and memory to copy. Used by the thread that created it. The memory is freed at
 * the end of the process.
 */
public final class CopySetting implements AutoCloseable {

    private final CudaDevice device = CudaRuntime.load().device(0);
    private final CurrentDevice current = device.makeCurrent();
    private final CudaDriver driver = CudaDriver.load();

    /** {@return the address of new memory, which a copy engine and a kernel can access} */
    public long memory(long bytes, boolean pinned) {
        return pinned
                ? PinnedMemory.allocate(device, bytes, Arena.global(), Flag.MAPPED, Flag.PORTABLE).device().address()
                : device.allocate(bytes).address();
    }

    /**
     * Creates a queue. The runtime creates the thread's context with the first allocation, so memory must have been
     * allocated.
     *
     * @param linger time that the copy kernel stays after each copy; zero if copy engines make all copies
     */
    public CopyQueue queue(Duration linger) {
        return new CopyQueue(driver, driver.currentContext(Arena.global().allocate(ValueLayout.JAVA_LONG)),
                linger.isZero() ? null : CopyKernel.load(driver, device, CopyKernel.Stay.of(linger)), true);
    }

    /** Restores the thread's device. */
    @Override
    public void close() {
        current.close();
    }
}
