package org.millrace.cuda.driver;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.MillraceException;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.kernel.CopyMailbox;
import org.millrace.agent.Waiting;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaKernel;
import org.millrace.cuda.CudaModule;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.CurrentDevice;
import org.millrace.cuda.DeviceMemory;
import org.millrace.cuda.KernelParameters;
import org.millrace.cuda.LaunchShape;
import org.millrace.cuda.PinnedMemory;

/**
 * A kernel that makes short copies. It makes a few copies in half of the time that a copy engine needs to start one
 * copy. It makes many copies in parallel. The kernel reads commands from host memory, and reports completed copies in
 * host memory. It stays on the GPU while commands arrive that extend its stay, and for a while after the last of them;
 * see {@code src/main/cuda/copy.cu}.
 *
 * <p>
 * The kernel runs in the program's context, beside the program's kernels. The program's progress does not depend on
 * this kernel. A launch may have to wait until a kernel of the program ends, or until the program has allocated or
 * freed memory. Therefore a separate thread makes the launches. Until the kernel and all its workers have started, the
 * copy engine makes all copies.
 *
 * <p>
 * A thread that waits for all work of the device also waits for this kernel. A launch that needs room for a block on
 * every multiprocessor also waits for this kernel. Both waits end with the kernel's {@link Stay}. A kernel leaves if it
 * finds no room for all its blocks within 100 µs.
 */
public final class CopyKernel implements AutoCloseable {

    /**
     * Time limits for one stay of the kernel on the GPU.
     *
     * @param linger time that the kernel stays after the last copy that extends its stay
     * @param life   maximum total time, even if such copies keep arriving
     */
    public record Stay(Duration linger, Duration life) {

        private static final Duration MIN_LIFE = Duration.ofMillis(10);
        private static final Duration MAX_LIFE = Duration.ofSeconds(1);
        /**
         * Ratio of {@code life} to {@code linger}. A kernel with a long {@code linger} also has a long {@code life}, so
         * that it is launched rarely.
         */
        private static final int LIFE_BY_LINGER = 10;

        /**
         * Returns a stay with the given {@code linger}. Its {@code life} is proportional to {@code linger}, but at
         * least 10 ms and at most 1 s.
         */
        public static Stay of(Duration linger) {
            Duration life = linger.multipliedBy(LIFE_BY_LINGER);
            return new Stay(linger,
                    life.compareTo(MIN_LIFE) < 0 ? MIN_LIFE : life.compareTo(MAX_LIFE) > 0 ? MAX_LIFE : life);
        }
    }

    private static final Logger LOG = LogManager.getLogger(CopyKernel.class);
    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    /** Constants of copy.cu: number of threads in a block, and number of workers in a block. */
    static final int BLOCK_THREADS = 512;
    private static final int WORKERS_IN_BLOCK = BLOCK_THREADS / 128;
    /**
     * Sizes in {@code struct Workers} of copy.cu, in bytes: the size of one {@code struct Work}, and the size of the
     * counts after the array of {@code struct Work}.
     */
    private static final long WORK_BYTES = 32;
    private static final long COUNTS_BYTES =
            (2L * CopyMailbox.WORKERS + 2 + 3L * CopyLaunches.MAX_STREAMS) * Integer.BYTES;
    private static final int STREAMS = 4;
    /** Time after a launch within which a kernel starts if the GPU has room for it, in nanoseconds. */
    private static final long START_NANOS = TimeUnit.MICROSECONDS.toNanos(60);
    private static final long NEXT_ATTEMPT_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    /**
     * Types of the kernel's parameters: mailbox, linger time, life time, workers, number of the stream, and number of
     * the launch in that stream.
     */
    static final MemoryLayout[] PARAMETERS = {ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_LONG,
            ValueLayout.ADDRESS, ValueLayout.JAVA_INT, ValueLayout.JAVA_INT};
    private static final int LINGER = 1;
    private static final int LIFE = 2;
    private static final int STREAM = 4;
    private static final int LAUNCH = 5;

    /** Actions that free the kernel's resources, latest first. */
    private final Deque<Runnable> closeActions = new ArrayDeque<>();
    private final List<CudaStream> streams;
    private final CudaKernel kernel;
    private final KernelParameters arguments;
    private final CopyCommands commands;
    private final Thread thread;
    private final CopyLaunches launches;
    private volatile boolean asked;
    private volatile boolean closed;

    private CopyKernel(CudaDriver driver, CudaDevice device) {
        try {
            Arena arena = opened(Arena.ofShared(), Arena::close);
            CudaModule module = opened(CudaModule.load(device.runtime(), image()), CudaModule::close);
            kernel = module.kernel("copy_commands");
            int greatest = device.streamPriorities()[1];
            streams = Stream.generate(() -> opened(device.newStream(greatest), CudaStream::close))
                    .limit(STREAMS)
                    .toList();
            PinnedMemory pinned = PinnedMemory.allocate(device, CopyMailbox.BYTES, arena, PinnedMemory.Flag.PORTABLE,
                    PinnedMemory.Flag.MAPPED);
            DeviceMemory workers =
                    opened(device.allocate((long) CopyMailbox.WORKERS * CopyMailbox.GIVEN * WORK_BYTES + COUNTS_BYTES),
                            DeviceMemory::close);
            device.runtime().fill(workers.segment(), (byte) 0);
            arguments = KernelParameters.allocate(arena, PARAMETERS)
                    .pointer(0, pinned.device())
                    .pointer(3, workers.segment());
            CopyMailbox mailbox = CopyMailbox.of(ConnectionInfo.unscoped(pinned.host()));
            launches = new CopyLaunches(mailbox, new InStreams(), STREAMS, START_NANOS);
            thread = Thread.ofPlatform()
                    .name("millrace-copy-launch")
                    .daemon()
                    .unstarted(() -> launchWhenAsked(driver, device));
            commands = new CopyCommands(mailbox, 1, CopyMailbox.WORKERS, this::ask);
        } catch (RuntimeException failure) {
            closeAll();
            throw failure;
        }
        thread.start();
    }

    /** Adds a resource that is closed with this kernel, before the resources that were added earlier. */
    private <T> T opened(T resource, Consumer<T> close) {
        closeActions.push(() -> close.accept(resource));
        return resource;
    }

    private void closeAll() {
        closeActions.forEach(Runnable::run);
    }

    /**
     * Loads the kernel and runs it once. CUDA loads the kernel's code at the first run, and cannot always load code
     * while other kernels run.
     *
     * @param device device that runs the kernel; it must be current
     * @param stay   time limits of each later stay
     * @return the loaded kernel, which is not on the GPU now
     * @throws org.millrace.MillraceException if the GPU does not run the kernel, or CUDA is older than 12.8
     */
    public static CopyKernel load(CudaDriver driver, CudaDevice device, Stay stay) {
        CopyKernel loaded = new CopyKernel(driver, device);
        try {
            loaded.commands.invite();
            loaded.commands.awaitLeave();
            loaded.synchronize();
            if (!loaded.launches.hasLaunched()) {
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

    /** Returns the kernel's statistics in one line of readable text that scripts can parse. */
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
            while (!closed) {
                if (asked) {
                    asked = false;
                    while (launches.attempt() && !closed) {
                        LockSupport.parkNanos(this, NEXT_ATTEMPT_NANOS);
                    }
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
            kernel.launch(LaunchShape.of(1 + CopyMailbox.WORKERS / WORKERS_IN_BLOCK, BLOCK_THREADS),
                    arguments.set(STREAM, stream).set(LAUNCH, number), streams.get(stream));
        }
    }

    private void synchronize() {
        streams.forEach(stream -> stream.synchronize(TIMEOUT));
    }

    /** Waits until the kernel has left the GPU, and unloads it. No copy may be requested afterwards. */
    @Override
    public void close() {
        closed = true;
        LockSupport.unpark(thread);
        freeAfter(thread, TIMEOUT, () -> {
            synchronize();
            closeAll();
        });
    }

    /**
     * Frees memory after the thread that uses it has ended. If the thread has not ended within {@code patience}, logs a
     * warning and does not free the memory.
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
