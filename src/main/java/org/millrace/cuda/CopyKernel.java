package org.millrace.cuda;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.MillraceException;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.CopyMailbox;
import org.millrace.agent.Waiting;

/**
 * A kernel that makes short copies: a few in half the time that the start of a copy engine takes, and many at once. It
 * reads copies from host memory and reports their completion there. It stays on the GPU while such copies arrive, and
 * for a while longer; see {@code src/main/cuda/copy.cu}.
 *
 * <p>
 * It runs in the program's context, beside the program's kernels, and the program's progress does not depend on it. A
 * launch may have to wait for a program's kernel, or while the program allocates or frees memory, so a separate thread
 * launches it. Until the kernel and all its workers have started, the copy engine makes all copies.
 *
 * <p>
 * A thread that waits for the whole device, or for room for a block on every multiprocessor, also waits for this
 * kernel. It waits no longer than the kernel's {@link Stay}. A kernel without room for all its blocks within 100 µs
 * leaves.
 */
public final class CopyKernel implements AutoCloseable {

    /**
     * Duration of the kernel's stay on the GPU.
     *
     * @param linger time to stay after its last copy
     * @param life   maximum total time while copies keep arriving
     */
    public record Stay(Duration linger, Duration life) {

        private static final Duration MIN_LIFE = Duration.ofMillis(10);
        private static final Duration MAX_LIFE = Duration.ofSeconds(1);
        /** Ratio of the total time to {@code linger}, so that a kernel that lingers long is launched rarely. */
        private static final int LIFE_BY_LINGER = 10;

        /** Returns a stay, counted from the first copy on. */
        public static Stay of(Duration linger) {
            Duration life = linger.multipliedBy(LIFE_BY_LINGER);
            return new Stay(linger,
                    life.compareTo(MIN_LIFE) < 0 ? MIN_LIFE : life.compareTo(MAX_LIFE) > 0 ? MAX_LIFE : life);
        }
    }

    private static final Logger LOG = LogManager.getLogger(CopyKernel.class);
    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    private static final int WORKER_THREADS = 128;
    /**
     * Size of a {@code struct Work} in bytes, and size of the counts after the array of them in {@code struct Workers}.
     */
    private static final long WORK_BYTES = 32;
    private static final long COUNTS_BYTES =
            (2L * CopyMailbox.WORKERS + 2 + 3L * CopyLaunches.MAX_STREAMS) * Integer.BYTES;
    /** Number of streams for launch attempts. */
    private static final int STREAMS = 4;
    /** Time within which a kernel that is free to run starts, in nanoseconds. */
    private static final long START_NANOS = TimeUnit.MICROSECONDS.toNanos(60);
    /**
     * Time after a launch during which the launching thread does not sleep, in nanoseconds. If copies continue, a new
     * request follows.
     */
    private static final long AWAKE_NANOS = TimeUnit.MICROSECONDS.toNanos(500);
    private static final long NEXT_ATTEMPT_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    /** Types of the parameters: mailbox, linger, life, workers, stream, and number of the launch in that stream. */
    static final MemoryLayout[] PARAMETERS = {ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG,
            ValueLayout.ADDRESS, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT};
    private static final int LINGER = 1;
    private static final int LIFE = 2;
    private static final int STREAM = 4;
    private static final int LAUNCH = 5;

    private final Arena arena = Arena.ofShared();
    private final CudaModule module;
    private final List<CudaStream> streams;
    private final CudaKernel kernel;
    private final DeviceMemory workers;
    private final KernelParameters arguments;
    private final CopyCommands commands;
    private final Thread thread;
    private final CopyLaunches launches;
    private volatile boolean asked;
    private volatile boolean closed;

    private CopyKernel(CudaDriver driver, CudaDevice device) {
        module = CudaModule.load(device.runtime(), image());
        kernel = module.kernel("copy_commands");
        int greatest = device.streamPriorities()[1];
        streams = Stream.generate(() -> device.newStream(greatest)).limit(STREAMS).toList();
        PinnedMemory pinned = PinnedMemory.allocate(device, CopyMailbox.BYTES, arena, PinnedMemory.Flag.PORTABLE,
                PinnedMemory.Flag.MAPPED);
        workers = device.allocate((long) CopyMailbox.WORKERS * CopyMailbox.GIVEN * WORK_BYTES + COUNTS_BYTES);
        device.runtime().fill(workers.segment(), (byte) 0);
        arguments =
                KernelParameters.allocate(arena, PARAMETERS).pointer(0, pinned.device()).pointer(3, workers.segment());
        CopyMailbox mailbox = CopyMailbox.of(ConnectionInfo.unscoped(pinned.host()));
        launches = new CopyLaunches(mailbox, new InStreams(), STREAMS, START_NANOS);
        thread = Thread.ofPlatform()
                .name("millrace-copy-launch")
                .daemon()
                .unstarted(() -> launchWhenAsked(driver, device));
        commands = new CopyCommands(mailbox, 1, CopyMailbox.WORKERS, this::ask);
        thread.start();
    }

    /**
     * Loads the kernel and runs it once, because CUDA may not load a kernel while others run.
     *
     * @param device device that copies; it must be current
     * @param stay   duration of each stay
     * @return the kernel, which is not on the GPU
     * @throws org.millrace.MillraceException if the GPU does not run it, or CUDA is older than 12.8
     */
    public static CopyKernel load(CudaDriver driver, CudaDevice device, Stay stay) {
        CopyKernel loaded = new CopyKernel(driver, device);
        try {
            loaded.commands.invite();
            loaded.commands.awaitLeave();
            loaded.synchronize();
            if (loaded.launches.count() == 0) {
                throw new MillraceException("the kernel that copies could not be launched");
            }
        } catch (RuntimeException failure) {
            loaded.close();
            throw failure;
        }
        loaded.arguments.set(LINGER, stay.linger.toNanos()).set(LIFE, stay.life.toNanos());
        return loaded;
    }

    private static byte[] image() {
        try (InputStream image = CopyKernel.class.getResourceAsStream("copy.ptx")) {
            return image.readAllBytes();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    CopyCommands commands() {
        return commands;
    }

    /** Returns its statistics so far, in a line for people and scripts. */
    @Override
    public String toString() {
        return "copies by the copying kernel: " + commands.counts();
    }

    private void ask() {
        asked = true;
        LockSupport.unpark(thread);
    }

    private void launchWhenAsked(CudaDriver driver, CudaDevice device) {
        try (CurrentDevice _ = device.makeCurrent()) {
            driver.ignoreCaptures();
            long launched = System.nanoTime() - AWAKE_NANOS;
            while (!closed) {
                if (asked) {
                    asked = false;
                    while (launches.attempt() && !closed) {
                        LockSupport.parkNanos(this, NEXT_ATTEMPT_NANOS);
                    }
                    launched = System.nanoTime();
                } else if (System.nanoTime() - launched < AWAKE_NANOS) {
                    Thread.yield();
                } else {
                    LockSupport.park(this);
                }
            }
        }
    }

    private final class InStreams implements CopyLaunches.Streams {

        @Override
        public boolean isIdle(int stream) {
            return streams.get(stream).query();
        }

        @Override
        public void launch(int stream, int number) {
            kernel.launch(LaunchShape.of(1 + CopyMailbox.WORKERS, WORKER_THREADS),
                    arguments.set(STREAM, stream).set(LAUNCH, number), streams.get(stream));
        }
    }

    private void synchronize() {
        streams.forEach(stream -> stream.synchronize(TIMEOUT));
    }

    /** Waits until the kernel has left, and unloads it. No copy may begin afterwards. */
    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(thread);
        freeAfter(thread, TIMEOUT, () -> {
            synchronize();
            streams.forEach(CudaStream::close);
            module.close();
            workers.close();
            arena.close();
        });
    }

    /**
     * Frees memory after a thread that uses it has ended. After the patience the memory stays allocated, and a warning
     * reports it.
     */
    static void freeAfter(Thread thread, Duration patience, Runnable free) {
        if (Waiting.untilEnded(thread, patience)) {
            free.run();
        } else {
            LOG.warn("thread {} is still in a call of CUDA after {} ms: the memory of the kernel that copies stays"
                    + " allocated", thread.getName(), patience.toMillis());
        }
    }
}
