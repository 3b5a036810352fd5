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
import org.millrace.MillraceException;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.CopyMailbox;

/**
 * A kernel that makes short copies: few in half the time that a copy engine takes to be started, and many at once. It
 * takes them from host memory and answers there; it is on the GPU while there are such copies, and for a while longer;
 * see {@code src/main/cuda/copy.cu}.
 *
 * <p>
 * It runs in the program's context, beside its kernels, and takes no part in the program's progress: a launch may have
 * to wait for one of those, or for memory that the program takes or gives back, so that a thread of its own makes it;
 * until the kernel is there, and all of its workers, the copy engine does everything.
 *
 * <p>
 * A thread that waits for the whole device, or for room for a block on every multiprocessor, waits for the kernel too,
 * for no longer than its {@link Stay}. One that finds no room for all its blocks within 100 µs leaves.
 */
public final class CopyKernel implements AutoCloseable {

    /**
     * How long it is there.
     *
     * @param linger after its last copy
     * @param life   in all, where copies come all the time
     */
    public record Stay(Duration linger, Duration life) {

        private static final Duration SHORTEST_LIFE = Duration.ofMillis(10);
        private static final Duration LONGEST_LIFE = Duration.ofSeconds(1);
        /** Who lets it linger for long has it come seldom too. */
        private static final int LIFE_BY_LINGER = 10;

        /** From the first copy on. */
        public static Stay of(Duration linger) {
            Duration life = linger.multipliedBy(LIFE_BY_LINGER);
            return new Stay(linger, life.compareTo(SHORTEST_LIFE) < 0 ? SHORTEST_LIFE
                    : life.compareTo(LONGEST_LIFE) > 0 ? LONGEST_LIFE : life);
        }
    }

    private static final Duration PATIENCE = Duration.ofSeconds(10);
    private static final int WORKER_THREADS = 128;
    /** Of a {@code struct Work}, and of what is behind them in {@code struct Workers}. */
    private static final long WORK_BYTES = 32;
    private static final long COUNTS_BYTES =
            (2L * CopyMailbox.WORKERS + 2 + 3L * CopyLaunches.MOST_STREAMS) * Integer.BYTES;
    /** In how many streams it is tried. */
    private static final int STREAMS = 4;
    /** What is free to run does so within this time. */
    private static final long AT_ONCE_NANOS = TimeUnit.MICROSECONDS.toNanos(60);
    /** The thread that launches does not sleep for so long after a launch: where copies go on, it is asked again. */
    private static final long AWAKE_NANOS = TimeUnit.MICROSECONDS.toNanos(500);
    private static final long NEXT_ATTEMPT_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    /** Mailbox, linger, life, workers, the stream, and which launch it is there. */
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
        launches = new CopyLaunches(mailbox, new InStreams(), STREAMS, AT_ONCE_NANOS);
        thread = Thread.ofPlatform()
                .name("millrace-copy-launch")
                .daemon()
                .unstarted(() -> launchWhenAsked(driver, device));
        commands = new CopyCommands(mailbox, 1, CopyMailbox.WORKERS, this::ask);
        thread.start();
    }

    /**
     * Loads the kernel, and has it come and go once: CUDA may load no kernel while others run.
     *
     * @param device that copies; it must be current
     * @param stay   when it comes and goes
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

    /** What it has done so far, in a line for people and for scripts. */
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
        streams.forEach(stream -> stream.synchronize(PATIENCE));
    }

    /** Waits until the kernel has left, and unloads it. No copy may be begun any more. */
    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(thread);
        try {
            thread.join(PATIENCE);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        synchronize();
        streams.forEach(CudaStream::close);
        module.close();
        workers.close();
        arena.close();
    }
}
