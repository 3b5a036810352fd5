package org.millrace.cuda.copy;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.millrace.abi.CopyMailbox;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaKernel;
import org.millrace.cuda.CudaModule;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.KernelParameters;
import org.millrace.cuda.LaunchShape;
import org.millrace.cuda.PinnedMemory;

/**
 * Kernels that make small copies. One of one warp takes them from host memory and answers there, in half the time that
 * a copy engine takes to be started; it is on the GPU while there are such copies, and for a while longer; see
 * {@code src/main/cuda/copy.cu}.
 *
 * <p>
 * A thread that waits for the whole device, or for room for a block on every multiprocessor, waits for it too: so long
 * as it lingers, or for ten milliseconds where copies come all the time.
 */
public final class CopyKernel implements AutoCloseable {

    private static final Duration LIFE = Duration.ofMillis(10);
    private static final Duration PATIENCE = Duration.ofSeconds(10);
    private static final LaunchShape ONE_WARP = LaunchShape.of(1, 32);
    private static final int NUMBER = 1;
    private static final int LINGER = 2;

    private final Arena arena = Arena.ofShared();
    private final CudaModule module;
    private final CudaStream stream;
    private final CudaKernel kernel;
    private final KernelParameters arguments;
    private final CopyCommands commands;
    private final CopyLaunch batches;

    private CopyKernel(CudaDevice device) {
        module = CudaModule.load(device.runtime(), image());
        kernel = module.kernel("copy_commands");
        stream = device.newStream(device.streamPriorities()[1]);
        PinnedMemory pinned = PinnedMemory.allocate(device, CopyMailbox.BYTES, arena, PinnedMemory.Flag.PORTABLE,
                PinnedMemory.Flag.MAPPED);
        arguments =
                KernelParameters
                        .allocate(arena, ValueLayout.ADDRESS, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG,
                                ValueLayout.JAVA_LONG)
                        .pointer(0, pinned.device())
                        .set(3, LIFE.toNanos());
        batches = new CopyLaunch(module.kernel("copy_batch"), arena);
        commands = new CopyCommands(CopyMailbox.of(global(pinned.host())), 1,
                number -> kernel.launch(ONE_WARP, arguments.set(NUMBER, number), stream));
    }

    /** Of the global scope, so that an access checks no arena: it is freed when the kernel has left. */
    @SuppressWarnings("restricted")
    private static MemorySegment global(MemorySegment pinned) {
        return MemorySegment.ofAddress(pinned.address()).reinterpret(CopyMailbox.BYTES);
    }

    /**
     * Loads the kernel, and has it come and go once: CUDA may load no kernel while others run.
     *
     * @param device that copies; it must be current
     * @param linger how long the kernel stays after its last copy
     * @return the kernel, which is not on the GPU
     * @throws org.millrace.MillraceException if the GPU does not run it, or CUDA is older than 12.8
     */
    public static CopyKernel load(CudaDevice device, Duration linger) {
        CopyKernel loaded = new CopyKernel(device);
        try {
            loaded.commands.invite();
            loaded.commands.awaitLeave();
            MemorySegment own = loaded.stream.handle().enter();
            try {
                loaded.batches.launch(0, own);
            } finally {
                loaded.stream.handle().exit();
            }
            loaded.stream.synchronize(PATIENCE);
        } catch (RuntimeException failure) {
            loaded.close();
            throw failure;
        }
        loaded.arguments.set(LINGER, linger.toNanos());
        return loaded;
    }

    private static byte[] image() {
        try (InputStream image = CopyKernel.class.getResourceAsStream("copy.ptx")) {
            return image.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    CopyLaunch batches() {
        return batches;
    }

    CopyCommands commands() {
        return commands;
    }

    /** Waits until the kernel has left, and unloads it. No copy may be begun any more. */
    @Override
    public void close() {
        stream.synchronize(PATIENCE);
        stream.close();
        module.close();
        arena.close();
    }
}
