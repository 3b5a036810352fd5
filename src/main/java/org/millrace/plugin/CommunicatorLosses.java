package org.millrace.plugin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;
import org.millrace.library.DynamicLoader;
import org.millrace.plugin.AsyncErrors.Reply;
import org.millrace.plugin.PluginConfiguration.LossPolicy;
import org.millrace.trace.ProcessTrace;

/**
 * The connections that one communicator of NCCL's has lost, from the first loss until NCCL ends its connections: when
 * the program aborts or destroys the communicator, and nobody needs to be told any more.
 *
 * <p>
 * Not every loss hurts. A peer that has done all its work may leave without a shutdown message, by the exit of a
 * process that destroys nothing, while this one still writes its results. So a loss is told of, and is a reason to end,
 * when this process waits for the peer: the device has posted data for it that it never got; or, as a kernel that waits
 * to receive leaves no mark in memory, the device has not finished what it was doing.
 */
final class CommunicatorLosses {

    /** How long a device must be busy after a loss before it counts as one that waits. */
    private static final Duration BUSY = Duration.ofMillis(500);
    /** A peer that ended on purpose may be one of several that do: this process's own end is given the time to come. */
    private static final Duration AFTER_ORDERLY_END = Duration.ofMillis(500);

    /** Tells whether a device gets on with its work. */
    interface Device {
        void start();

        void stop();

        /** How long the device has not done what was enqueued at some moment; 0 if it has nothing to do. */
        long busyNanos(long now);
    }

    /** A connection that can be ended at once. */
    @FunctionalInterface
    public interface Leaver {
        /** Ends the connection, and tells the peer which process was lost. */
        void leave(LostEnd lost);
    }

    /**
     * What is to be done now.
     *
     * @param tell losses that nobody was told of
     * @param end  whether the process is to end
     */
    record Verdict(List<LostEnd> tell, boolean end) {
    }

    private final LossWatch watch;
    private final long communicator;

    private final List<LostEnd> lost = new ArrayList<>();
    private final List<Leaver> open = new ArrayList<>();
    private final Set<String> toldPeers = new HashSet<>();
    private @Nullable Device device;
    private long lostAt;
    /** When the process is to end; meaningless while it is not waiting. */
    private long deadline;
    private boolean waiting;
    /** NCCL has given the program an error. */
    private boolean delivered;
    private boolean ended;
    /** The first peer that was lost, for those that learn of it from this process. */
    private @Nullable LostEnd culprit;
    /** What a program is told that enqueues once more. Written under the lock, read by any thread. */
    private volatile @Nullable String problem;

    CommunicatorLosses(LossWatch watch, long communicator) {
        this.watch = watch;
        this.communicator = communicator;
    }

    public long communicator() {
        return communicator;
    }

    /** The device that the calling thread uses is the communicator's. */
    public synchronized void useCurrentDevice() {
        if (device == null) {
            use(DeviceWork.ofThisThread());
        }
    }

    synchronized void use(@Nullable Device watched) {
        device = watched;
    }

    /** A connection was lost. Returns at once: it is called by the thread that serves connections. */
    public void add(LostEnd end) {
        boolean first;
        synchronized (this) {
            if (ended) {
                return;
            }
            first = lost.isEmpty();
            lost.add(end);
            if (culprit == null) {
                culprit = end;
            }
            if (first) {
                lostAt = watch.now();
            }
            if (problem == null) {
                problem = end.peer() + ": " + end.text();
            }
        }
        if (first) {
            watch.open(this);
        }
    }

    /** A connection is served: its end has to be told why, if this process ends. */
    public synchronized void opened(Leaver connection) {
        open.add(connection);
    }

    /**
     * NCCL ends the communicator's connections. When this returns nobody looks at their memory any more.
     *
     * @return the first that was lost before; null if none was
     */
    public synchronized @Nullable LostEnd ending(Leaver connection) {
        open.remove(connection);
        settle();
        return culprit;
    }

    /** Nobody waits any more for what was lost. */
    private void settle() {
        ended = true;
        lost.clear();
        problem = null;
        if (waiting || delivered) {
            waiting = false;
            delivered = false;
            watch.lost(communicator, false);
        }
        if (device != null) {
            device.stop();
        }
    }

    /** This process ends: leaves all peers that are left. */
    void leave() {
        List<Leaver> left;
        LostEnd why;
        synchronized (this) {
            left = List.copyOf(open);
            why = culprit;
        }
        if (why != null) {
            left.forEach(each -> each.leave(why));
        }
    }

    /**
     * Connections are being made: what ended before was another communicator, of a table without a context for each.
     */
    public synchronized void restart() {
        if (ended) {
            ended = false;
            toldPeers.clear();
            culprit = null;
            waiting = false;
            delivered = false;
        }
    }

    synchronized boolean isEmpty() {
        return lost.isEmpty();
    }

    /** What the communicator has lost; null if nothing, or if it is not the one of this number. */
    @Nullable
    String problem(long number) {
        return number == communicator ? problem : null;
    }

    /** NCCL has given the program an error for it: it has the time of grace once more to draw the consequence. */
    synchronized void delivered(LossPolicy policy) {
        deadline = watch.now() + policy.grace().toNanos();
        delivered = true;
    }

    /** Looks what has become of the losses. What is to be done is done later, without the lock: it may take time. */
    synchronized Verdict look(LossPolicy policy) {
        if (device != null && !lost.isEmpty()) {
            device.start();
        }
        long now = watch.now();
        boolean hurts = false;
        List<LostEnd> tell = new ArrayList<>();
        for (LostEnd end : lost) {
            if (hurts(end, now)) {
                hurts = true;
                if (policy.ends()) {
                    end.release().run();
                }
                if (toldPeers.add(process(end.peer()))) {
                    tell.add(end);
                }
            }
        }
        if (hurts && !waiting) {
            deadline = now + policy.grace().toNanos();
        }
        Reply reply = hurts || delivered || waiting ? watch.lost(communicator, hurts || delivered) : Reply.NOT_ASKED;
        waiting = hurts || delivered;
        if (reply == Reply.GIVEN_UP) {
            settle();
            ProcessTrace trace = ProcessTrace.current();
            if (trace != null) {
                trace.settle(communicator);
            }
        }
        return new Verdict(tell, hurts && policy.ends() && reply == Reply.NOT_ASKED && now - deadline >= 0);
    }

    /** Two peers may know a third by different names of its host. */
    private static String process(String peer) {
        return peer.replaceFirst(" on .*", "");
    }

    private boolean hurts(LostEnd end, long now) {
        if (end.orderly() && now - lostAt < AFTER_ORDERLY_END.toNanos()) {
            return false;
        }
        if (end.owesData().getAsBoolean()) {
            return true;
        }
        return !end.orderly() && (device == null || device.busyNanos(now) >= BUSY.toNanos());
    }

    /**
     * Whether a CUDA device gets on with its work. A thread waits again and again until all that was enqueued is done;
     * a kernel that waits for a lost peer keeps it from returning.
     */
    static final class DeviceWork implements CommunicatorLosses.Device {

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
}
