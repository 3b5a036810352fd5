package org.millrace.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;
import org.millrace.library.DynamicLoader;

/**
 * Whether a CUDA device gets on with its work. A thread waits again and again until all that was enqueued is done; a
 * kernel that waits for a lost peer keeps it from returning.
 */
final class DeviceWork implements CommunicatorLosses.Device {

    private static final long PAUSE_NANOS = Duration.ofMillis(100).toNanos();
    private static final int SUCCESS = 0;
    /** CU_STREAM_CAPTURE_MODE_RELAXED: this thread's calls are none of another thread's capture's business. */
    private static final int RELAXED = 2;

    /** The functions of libcuda that this needs; null where there is no CUDA. */
    private static final class Driver {
        static final @Nullable Driver LOADED = load();

        private final CFunction current;
        private final CFunction makeCurrent;
        private final CFunction synchronize;
        private final CFunction captureMode;

        private Driver(MemorySegment library) {
            current = bind(library, "cuCtxGetCurrent");
            makeCurrent = bind(library, "cuCtxSetCurrent");
            synchronize = bind(library, "cuCtxSynchronize");
            captureMode = bind(library, "cuThreadExchangeStreamCaptureMode");
        }

        private static @Nullable Driver load() {
            MemorySegment library = DynamicLoader.open("libcuda.so.1").handle();
            try {
                return library == null ? null : new Driver(library);
            } catch (NullPointerException incomplete) {
                return null;
            }
        }

        private static CFunction bind(MemorySegment library, String name) {
            return CFunction.at(DynamicLoader.find(library, name));
        }
    }

    private final Driver driver;
    private final long context;
    private volatile boolean stopped = true;
    private @Nullable Thread thread;
    /** When the wait began that has not returned; 0 while there is none. Written by the thread that waits. */
    private volatile long busySince;

    private DeviceWork(Driver driver, long context) {
        this.driver = driver;
        this.context = context;
    }

    static @Nullable DeviceWork ofThisThread() {
        Driver driver = Driver.LOADED;
        if (driver == null) {
            return null;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment context = arena.allocate(ValueLayout.JAVA_LONG);
            int result = (int) driver.current.call(context.address());
            long address = context.get(ValueLayout.JAVA_LONG, 0);
            return result == SUCCESS && address != 0 ? new DeviceWork(driver, address) : null;
        } catch (Throwable e) {
            return null;
        }
    }

    @Override
    public void start() {
        if (stopped) {
            stopped = false;
            thread = Thread.ofPlatform().daemon().name("millrace-device").start(this::run);
        }
    }

    @Override
    public void stop() {
        stopped = true;
        LockSupport.unpark(thread);
    }

    @Override
    public long busyNanos(long now) {
        long since = busySince;
        return since == 0 ? 0 : Math.max(now - since, 0);
    }

    private void run() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment mode = arena.allocate(ValueLayout.JAVA_INT);
            mode.set(ValueLayout.JAVA_INT, 0, RELAXED);
            int result = (int) driver.makeCurrent.call(context);
            result |= (int) driver.captureMode.call(mode.address());
            while (result == SUCCESS && !stopped) {
                busySince = System.nanoTime() | 1;
                result = (int) driver.synchronize.call();
                busySince = 0;
                LockSupport.parkNanos(PAUSE_NANOS);
            }
            driver.makeCurrent.call(0L); // the program may destroy it once this thread has ended
        } catch (Throwable e) {
            busySince = 0;
        }
    }
}
