package org.millrace.trace;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.apache.logging.log4j.LogManager;
import org.jspecify.annotations.Nullable;
import org.millrace.file.OwnerLock;

/**
 * A thread that says ten times a second that the process runs, while anything is open: nothing of it is on a
 * connection's way.
 */
final class TraceHeartbeat {

    private static final long PERIOD_NANOS = 100_000_000;
    private static final int BEATS_PER_MEASUREMENT = 10;
    /** How long a file stays after its process is counted from there. */
    private static final int BEATS_PER_TOUCH = 600;

    private final ProcessTrace trace;
    private final AtomicBoolean locking = new AtomicBoolean();
    private volatile @Nullable Thread thread;
    /** Of the thread that runs alone: another begins anew. */
    private final Stillness stillness = new Stillness();

    TraceHeartbeat(ProcessTrace trace) {
        this.trace = trace;
    }

    /** Starts or ends the thread. Called under the trace's lock. */
    void needed(boolean needed) {
        Thread running = thread;
        if (needed && running == null) {
            Thread started = Thread.ofPlatform().daemon().name("millrace-trace").unstarted(this::run);
            thread = started;
            started.start();
        } else if (!needed && running != null) {
            thread = null;
            LockSupport.unpark(running);
        }
    }

    /** Once: tells processes of other PID namespaces that this one lives. On no connection's way, as it takes time. */
    private void lock() {
        if (locking.compareAndSet(false, true) && OwnerLock.hold(trace.path())) {
            TraceMemory.release(trace.header() + TraceLayout.LOCKED_OFFSET, 1);
        }
    }

    private void run() {
        Thread self = Thread.currentThread();
        lock();
        for (int beats = 0; thread == self; beats++) {
            trace.beat();
            if (beats % BEATS_PER_MEASUREMENT == 0) {
                trace.measure();
                if (FlightEvents.wanted() && FlightEvents.wantsStalls()) {
                    stillness.tellFlightRecorder(trace.blocks());
                }
            }
            if (beats % BEATS_PER_TOUCH == 0) {
                trace.touch();
            }
            try {
                trace.look();
            } catch (RuntimeException | LinkageError failure) {
                LogManager.getLogger(TraceHeartbeat.class).warn("a watch of connections failed", failure);
            }
            LockSupport.parkNanos(PERIOD_NANOS);
        }
        trace.measure();
        trace.beat();
    }
}
