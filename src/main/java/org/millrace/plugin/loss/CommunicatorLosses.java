package org.millrace.plugin.loss;

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
import org.millrace.plugin.loss.AsyncErrors.Reply;
import org.millrace.trace.ProcessTrace;

/**
 * Lost connections of one NCCL communicator. Losses are recorded until NCCL closes the first of the communicator's
 * connections. NCCL closes connections when the program aborts or destroys the communicator. No report is needed
 * afterwards.
 *
 * <p>
 * Not every loss is harmful. A peer that has done all its work may leave without a shutdown message, because the peer
 * exits without destroying anything. This process may still be writing its results at that time. A loss is therefore
 * reported, and can end the process, only if this process waits for the peer. Either of two observations shows that
 * this process waits. First, the device has posted data that the peer has not received. Second, the device has not
 * finished its work. The second observation is needed because a connection's memory does not show that a kernel waits
 * to receive.
 */
public final class CommunicatorLosses {

    /** Minimum time that a device must be busy after a loss to count as waiting for the lost peer. */
    private static final Duration BUSY = Duration.ofMillis(500);
    /**
     * Time after the first loss during which no report is made about a peer that closed with a shutdown message.
     * Perhaps all processes close on purpose, and this process closes next.
     */
    private static final Duration AFTER_ORDERLY_END = Duration.ofMillis(500);

    /** The communicator's device, and the time for which the device has been busy. */
    interface Device {
        void start();

        void stop();

        /**
         * Returns the time for which the device has been working on its enqueued work, in nanoseconds; 0 if the device
         * is idle.
         */
        long busyNanos(long now);
    }

    /** A connection that can be closed immediately when the process ends. */
    @FunctionalInterface
    public interface Leaver {
        /** Closes the connection and tells the peer which process was lost. */
        void leave(LostEnd lost);
    }

    /**
     * Actions that the caller of {@link #look} must take.
     *
     * @param tell losses that were not reported before
     * @param end  whether the process must end
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
    /** Time at which the process must end. Meaningless while {@link #waiting} is false. */
    private long deadline;
    private boolean waiting;
    /** Whether NCCL has returned an error to the program. */
    private boolean delivered;
    private boolean ended;
    /**
     * First loss; null for none. When this process closes its other connections, it reports this loss to their peers.
     */
    private @Nullable LostEnd culprit;
    /**
     * Error that the program receives when it enqueues another operation. Written under the lock, read by any thread.
     */
    private volatile @Nullable String problem;

    CommunicatorLosses(LossWatch watch, long communicator) {
        this.watch = watch;
        this.communicator = communicator;
    }

    public long communicator() {
        return communicator;
    }

    /** Sets the communicator's device to the calling thread's current device, unless a device is already set. */
    public synchronized void useCurrentDevice() {
        if (device == null) {
            use(DeviceWork.ofThisThread());
        }
    }

    synchronized void use(@Nullable Device watched) {
        device = watched;
    }

    /** Records a lost connection. Does not block, because the thread that serves connections calls it. */
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

    /**
     * Records a connection that is served. If this process ends because of a loss, the connection's peer is told which
     * process was lost.
     */
    public synchronized void opened(Leaver connection) {
        open.add(connection);
    }

    /**
     * Records that NCCL closes a connection of the communicator. When this method returns, no thread of this class
     * reads the connection's memory.
     *
     * @return the first peer that the communicator lost; null if it lost none
     */
    public synchronized @Nullable LostEnd ending(Leaver connection) {
        open.remove(connection);
        settle();
        return culprit;
    }

    /** Discards the losses, because the program closes its connections or continues in another communicator. */
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

    /** Closes all remaining connections, because this process ends. Tells their peers which peer was lost first. */
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
     * Prepares for the connections of the next communicator. This is necessary in table versions without a context for
     * each communicator: one object then records the losses of all communicators. Does nothing before NCCL has closed a
     * connection.
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

    /**
     * Returns the error of the communicator with the given number; null if it lost no peer, or if this object belongs
     * to another communicator.
     */
    @Nullable
    String problem(long number) {
        return number == communicator ? problem : null;
    }

    /** Records that NCCL has returned the error to the program. Restarts the program's grace period. */
    synchronized void delivered(LossPolicy policy) {
        deadline = watch.now() + policy.grace().toNanos();
        delivered = true;
    }

    /**
     * Evaluates the losses. The caller acts on the result after it has released this object's lock, because the actions
     * may take time.
     */
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

    /**
     * Returns the part of a peer's name before the host, for instance {@code pid 41}. The host is omitted, because
     * reports of the same lost process may name its host differently.
     */
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
     * Reports whether a CUDA device makes progress. A thread of this object repeatedly calls cuCtxSynchronize. This
     * call returns when all enqueued work is done. While a kernel waits for a lost peer, the call does not return.
     */
    static final class DeviceWork implements CommunicatorLosses.Device {

        private static final long PAUSE_NANOS = Duration.ofMillis(100).toNanos();
        private static final int SUCCESS = 0;
        /**
         * CU_STREAM_CAPTURE_MODE_RELAXED: the calls of this class's thread do not disturb another thread's stream
         * capture.
         */
        private static final int RELAXED = 2;

        /** Functions of libcuda that this class needs. {@link #LOADED} is null without CUDA. */
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
        /**
         * Time at which the pending call of cuCtxSynchronize began, in nanoseconds; 0 if no call is pending. Written by
         * the waiting thread.
         */
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
                // This thread leaves the context, so that the program can destroy the context.
                driver.makeCurrent.call(0L);
            } catch (Throwable e) {
                busySince = 0;
            }
        }
    }
}
