package org.millrace.cli.gin;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.millrace.MillraceException;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaKernel;
import org.millrace.cuda.CudaModule;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.KernelParameters;
import org.millrace.cuda.LaunchShape;
import org.millrace.cuda.PinnedMemory;
import org.millrace.nccl.NcclDeviceCommunicator;

/**
 * The loaded kernels of {@code gin.cu}. Each launch passes the maximum time that the kernel waits for a signal. A
 * kernel that has waited for so long stores the number of the awaited signal in pinned memory (the outcome) and ends.
 */
final class GinKernels implements AutoCloseable {

    private static final Duration FACTS_DEADLINE = Duration.ofSeconds(30);
    private static final LaunchShape ONE_THREAD = LaunchShape.of(1, 1);
    private static final LaunchShape ONE_WARP = LaunchShape.of(1, 32);
    private static final int OUTCOME_WORDS = 4;
    /** Value of the outcome's first word if the awaited signal was the barrier's signal. */
    private static final int BARRIER = 2;
    private static final VarHandle WORD = ValueLayout.JAVA_LONG.varHandle();

    private final CudaModule module;
    private final CudaStream stream;
    private final Arena arena = Arena.ofShared();
    private final PinnedMemory outcome;
    private final int compiledWith;
    private final long deviceCommunicatorBytes;
    private NcclDeviceCommunicator communicator;
    private long patienceNanos;

    /** Loads an image for the current device of the calling thread. */
    GinKernels(CudaRuntime runtime, CudaDevice device, Path image, CudaStream stream) {
        this.stream = stream;
        try {
            module = CudaModule.load(runtime, Files.readAllBytes(image));
        } catch (IOException failure) {
            throw new MillraceException("cannot read the kernels in " + image + ": " + failure.getMessage(), failure);
        }
        outcome = PinnedMemory.allocate(device, OUTCOME_WORDS * Long.BYTES, arena, PinnedMemory.Flag.MAPPED);
        KernelParameters facts = KernelParameters.allocate(arena, ValueLayout.ADDRESS).pointer(0, outcome.device());
        module.kernel("ginFacts").launch(ONE_THREAD, facts, stream);
        stream.synchronize(FACTS_DEADLINE);
        compiledWith = (int) word(0);
        deviceCommunicatorBytes = word(1);
        if (compiledWith == 0) {
            throw new MillraceException(
                    "ginFacts of " + image + " ran and stored no outcome: it is not compiled from gin.cu,"
                            + " or for another GPU than this one of compute capability " + device.computeCapability());
        }
        outcome.host().fill((byte) 0);
    }

    /** Returns {@code NCCL_VERSION_CODE} of the headers that the kernels were compiled with. */
    int compiledWith() {
        return compiledWith;
    }

    void use(NcclDeviceCommunicator device, Duration patience) {
        device.requireBytes(deviceCommunicatorBytes);
        communicator = device;
        patienceNanos = patience.toNanos();
    }

    void barrier(long met) {
        KernelParameters arguments = KernelParameters.allocate(arena, communicator.type(), ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG, ValueLayout.ADDRESS);
        launch("ginBarrier", ONE_WARP, arguments.set(1, met), 2);
    }

    /** Enqueues rounds of puts, or of signals, between ranks 0 and 1. */
    void pingPong(long to, long from, long bytes, long before, long rounds) {
        KernelParameters arguments = KernelParameters.allocate(arena, communicator.type(), ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG, ValueLayout.ADDRESS);
        launch("ginPingPong", ONE_THREAD, arguments.set(1, to).set(2, from).set(3, bytes).set(4, before).set(5, rounds),
                6);
    }

    /** Enqueues rounds of puts between all ranks, with a barrier in each round. */
    void allToAll(int contexts, long to, long from, long bytes, long before, long met, long rounds) {
        KernelParameters arguments = KernelParameters.allocate(arena, communicator.type(), ValueLayout.JAVA_INT,
                ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG,
                ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG, ValueLayout.ADDRESS);
        launch("ginAllToAll", ONE_WARP,
                arguments.set(1, contexts)
                        .set(2, to)
                        .set(3, from)
                        .set(4, bytes)
                        .set(5, before)
                        .set(6, met)
                        .set(7, rounds),
                8);
    }

    /**
     * Launches a kernel. Its first parameter is the device communicator. Its last two parameters are the maximum wait
     * and the address of the outcome.
     */
    private void launch(String name, LaunchShape shape, KernelParameters arguments, int patienceAt) {
        CudaKernel kernel = module.kernel(name);
        kernel.launch(shape,
                arguments.struct(0, communicator.bytes())
                        .set(patienceAt, patienceNanos)
                        .pointer(patienceAt + 1, outcome.device()),
                stream);
    }

    /** Throws an exception that names the missing signal if a kernel has given up. */
    void throwIfLate() {
        long what = word(0);
        if (what != 0) {
            throw new MillraceException(
                    "a kernel of rank " + communicator.rank() + " waited " + patienceNanos / 1_000_000_000 + " s for "
                            + (what == BARRIER ? "others to meet it" : "what others put") + ": signal " + (what - 1)
                            + " of context " + word(3) + " is " + word(2) + " and not yet " + word(1)
                            + "; see whether another rank failed, and what NCCL_DEBUG=INFO says");
        }
    }

    /**
     * Returns a word of the outcome. The acquire load of word 0 pairs with the kernel's fence. The kernel stores the
     * other words before this fence, and word 0 after it.
     */
    private long word(int index) {
        return (long) WORD.getAcquire(outcome.host(), (long) index * Long.BYTES);
    }

    /**
     * Allocates pinned host memory, so that the device copies at full speed. The memory is valid until this object is
     * closed.
     */
    MemorySegment pinned(CudaDevice device, long bytes) {
        return PinnedMemory.allocate(device, bytes, arena).host();
    }

    /** Frees the kernels and the memory. All kernels must have ended. */
    @Override
    public void close() {
        module.close();
        arena.close();
    }
}
