package org.millrace.bench.gpu;

import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Loop;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaKernel;
import org.millrace.cuda.CudaModule;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.KernelParameters;
import org.millrace.cuda.LaunchShape;
import org.millrace.cuda.PinnedMemory;

/** Control memory of a connection in pinned memory. A kernel on the GPU plays the device. */
public final class FlagMemory {

    /** Number of steps of a launch with recorded times, as in {@code flags.cu}. */
    public static final int SAMPLES = 2048;

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final int DONE = 0;
    private static final int STAMPS = 16;
    private static final int FENCED = 1;
    private static final int STAMPED = 2;
    /** Cycles after which the kernel gives up on a step: about a second. */
    private static final long TIMEOUT = 2_000_000_000L;
    private static final Duration KERNEL_DEADLINE = Duration.ofSeconds(20);
    private static final LaunchShape ONE_THREAD = LaunchShape.of(1, 1);

    private final PinnedMemory control;
    private final PinnedMemory result;
    private final SendMem sendMem;
    private final RecvMem recvMem;
    private final CudaStream stream;
    private final CudaKernel post;
    private final CudaKernel poll;
    private final KernelParameters postArguments;
    private final KernelParameters pollArguments;

    /**
     * Creates memory for a device, which must be current on the calling thread.
     *
     * @param device the device
     * @throws IOException if the kernels are missing
     */
    public FlagMemory(CudaDevice device) throws IOException {
        control = PinnedMemory.allocate(device, SendMem.BYTES + RecvMem.BYTES, Arena.global(), PinnedMemory.Flag.MAPPED,
                PinnedMemory.Flag.PORTABLE);
        result = PinnedMemory.allocate(device, (STAMPS + 2L * SAMPLES) * Long.BYTES, Arena.global(),
                PinnedMemory.Flag.MAPPED, PinnedMemory.Flag.PORTABLE);
        sendMem = SendMem.of(control.host().asSlice(0, SendMem.BYTES));
        recvMem = RecvMem.of(control.host().asSlice(SendMem.BYTES, RecvMem.BYTES));
        stream = device.newStream();
        CudaModule module = CudaModule.load(device.runtime(), image());
        post = module.kernel("post_steps");
        poll = module.kernel("poll_word");
        postArguments = KernelParameters.allocate(Arena.global(), ValueLayout.ADDRESS, ValueLayout.ADDRESS,
                ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT,
                ValueLayout.ADDRESS);
        pollArguments = KernelParameters.allocate(Arena.global(), ValueLayout.ADDRESS, ValueLayout.ADDRESS,
                ValueLayout.JAVA_LONG, ValueLayout.ADDRESS);
    }

    private static byte[] image() throws IOException {
        try (InputStream image = FlagMemory.class.getResourceAsStream("flags.ptx")) {
            if (image == null) {
                throw new IOException("the jar lacks org/millrace/bench/gpu/flags.ptx: build it again");
            }
            return image.readAllBytes();
        }
    }

    /**
     * Returns a loop of steps from the GPU and answers of Java.
     *
     * @param fence   whether the GPU stores tail after a system-wide fence
     * @param samples time of System.nanoTime when Java saw each step's tail, null if times are not recorded
     * @return both sides together
     */
    public Loop answeredByJava(boolean fence, long[] samples) {
        return posted(fence, samples != null, new FlagAnswer(sendMem, recvMem, samples));
    }

    /**
     * Returns a loop of steps from the GPU and answers of C.
     *
     * @param fence   whether the GPU stores tail after a system-wide fence
     * @param samples time of System.nanoTime when C saw each step's tail, null if times are not recorded
     * @param c       the comparators
     * @return both sides together
     */
    public Loop answeredByC(boolean fence, MemorySegment samples, CLibrary c) {
        long times = samples == null ? 0 : samples.address();
        MemorySegment arguments = Arena.global()
                .allocateFrom(ValueLayout.JAVA_LONG, SendMem.HEAD_OFFSET, SendMem.BYTES + RecvMem.TAIL_OFFSET, times);
        Loop answer = c.loop("gpu_answer", control.host(), arguments);
        return posted(fence, samples != null, answer);
    }

    private Loop posted(boolean fence, boolean stamped, Loop answer) {
        int how = (fence ? FENCED : 0) | (stamped ? STAMPED : 0);
        return count -> {
            long first = sendMem.headAcquire();
            LONG.setRelease(result.host(), 0L, -1L);
            postArguments.pointer(0, control.device().asSlice(SendMem.BYTES + RecvMem.TAIL_OFFSET))
                    .pointer(1, control.device().asSlice(SendMem.HEAD_OFFSET))
                    .set(2, first)
                    .set(3, count)
                    .set(4, TIMEOUT)
                    .set(5, how)
                    .pointer(6, result.device());
            post.launch(ONE_THREAD, postArguments, stream);
            return answer.run(count) == Loop.LOST || awaitDone() != count ? Loop.LOST : count;
        };
    }

    /** Waits for the kernel's end and returns its result. */
    private long awaitDone() {
        long begin = System.nanoTime();
        while (true) {
            long done = (long) LONG.getAcquire(result.host(), (long) DONE);
            if (done >= 0 || System.nanoTime() - begin > KERNEL_DEADLINE.toNanos()) {
                return done;
            }
            Thread.onSpinWait();
        }
    }

    /**
     * Returns the time when a step of the last launch was posted.
     *
     * @param step its number in the launch, less than {@link #SAMPLES}
     * @return the multiprocessor's clock before tail was stored
     */
    public long postedAt(int step) {
        return result.host().getAtIndex(ValueLayout.JAVA_LONG, STAMPS + 2L * step);
    }

    /**
     * Returns the time when a step of the last launch had its credit.
     *
     * @param step its number in the launch, less than {@link #SAMPLES}
     * @return the multiprocessor's clock after head was seen
     */
    public long creditedAt(int step) {
        return result.host().getAtIndex(ValueLayout.JAVA_LONG, STAMPS + 2L * step + 1);
    }

    /**
     * Makes the GPU read a word until it is told to stop.
     *
     * @param word mapped memory at its device address
     * @param stop a word that stops it
     */
    public void startPolling(MemorySegment word, PinnedMemory stop) {
        LONG.setRelease(stop.host(), 0L, 0L);
        LONG.setRelease(result.host(), 0L, -1L);
        pollArguments.pointer(0, word).pointer(1, stop.device()).set(2, 20 * TIMEOUT).pointer(3, result.device());
        poll.launch(ONE_THREAD, pollArguments, stream);
    }

    /**
     * Stops the GPU's reads.
     *
     * @param stop the word that was passed to the start
     */
    public void stopPolling(PinnedMemory stop) {
        LONG.setRelease(stop.host(), 0L, 1L);
        stream.synchronize(KERNEL_DEADLINE);
    }
}
