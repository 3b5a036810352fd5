package org.millrace.bootstrap;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.CommunicatorException;
import org.millrace.MillraceException;
import org.millrace.OperationInterruptedException;
import org.millrace.PeerLostException;
import org.millrace.agent.Waiting;
import org.millrace.failure.RepeatedFailure;

/**
 * First failure of a communicator. The failure is permanent: each later call of the communicator throws it. The failure
 * is also reported to the other ranks. Safe from any thread.
 */
public class GroupFailure implements Supplier<@Nullable Throwable> {

    private static final Logger LOG = LogManager.getLogger(GroupFailure.class);
    /**
     * Time to wait for the reason of a lost connection, in nanoseconds. A failing rank closes its connections and
     * reports the reason over the control plane, in any order.
     */
    private static final long REASON_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final ControlPlane control;
    private final AtomicReference<@Nullable Throwable> first = new AtomicReference<>();
    private volatile @Nullable Suspicion suspicion;
    private volatile Runnable onSuspicion = () -> {};

    private record Suspicion(Throwable thrown, long until) {
    }

    public GroupFailure(ControlPlane control) {
        this.control = control;
    }

    /** Reports a failure. Called by the thread that detects it. Only the first failure counts. */
    public final void fail(Throwable thrown) {
        if (first.compareAndSet(null, thrown)) {
            LOG.debug("rank {} failed", control.rank(), thrown);
            failed();
            control.fail(thrown);
            if (thrown instanceof PeerLostException lost) {
                control.tell(listener -> listener.lost(lost));
            }
        }
    }

    /**
     * Handles the failure. The thread that reported it calls this method once. {@link #get} already returns the
     * failure.
     */
    protected void failed() {
        // A subclass may override this method. Otherwise, only callers of get() learn of the failure.
    }

    /** Returns the calls that are still possible after a failure, for messages. */
    protected String remedy() {
        return "close it";
    }

    /**
     * Reports a lost connection as a suspected failure. The suspicion becomes the failure, unless another rank reports
     * a failure within {@code REASON_NANOS}. Such a report replaces the suspicion. If this rank and the reporting rank
     * have lost each other, the failure contains both reasons.
     */
    public final void suspect(Throwable thrown) {
        if (suspicion == null) {
            suspicion = new Suspicion(thrown, System.nanoTime() + REASON_NANOS);
            onSuspicion.run();
        }
    }

    /**
     * Sets a listener that wakes the thread that calls {@link #watch}, so that this thread need not poll. The listener
     * is called from any thread, when a failure is suspected or another rank's message has arrived.
     */
    public final void onEvent(Runnable listener) {
        onSuspicion = listener;
        control.onEvent(listener);
    }

    /**
     * Returns the time after which {@link #watch} has to be called even without an event, in nanoseconds;
     * {@code Long.MAX_VALUE} if no failure is suspected.
     */
    public final long nanosToWatch() {
        Suspicion pending = suspicion;
        return pending == null ? Long.MAX_VALUE : Math.max(0, pending.until - System.nanoTime());
    }

    /**
     * Adopts a failure that another rank has reported, or a suspected failure after its waiting time. Returns true if
     * the failure became known during this call. To be called after each event, and after the time that
     * {@link #nanosToWatch} returns.
     */
    public final boolean watch() {
        if (first.get() != null) {
            return false;
        }
        RemoteFailure remote = control.failure();
        Suspicion pending = suspicion;
        if (remote != null) {
            fail(pending == null ? remote.exception(control.rank()) : withSuspicion(remote, pending.thrown));
        } else if (pending != null && System.nanoTime() - pending.until > 0) {
            fail(pending.thrown);
        }
        return first.get() != null;
    }

    /** Adds this rank's reason if this rank and the other rank lost each other: either reason may be the cause. */
    private Throwable withSuspicion(RemoteFailure remote, Throwable thrown) {
        if (remote.kind() == RemoteFailure.Kind.LOST && remote.peer() == control.rank()
                && thrown instanceof PeerLostException lost
                && lost.peer().orElse(CommunicatorException.NO_RANK) == remote.rank()) {
            return remote.exception(control.rank(),
                    remote.message() + "; this rank had lost that rank before: " + lost.getMessage());
        }
        return remote.exception(control.rank());
    }

    /**
     * Waits for the other ranks in a barrier. A missing rank is a failure of the communicator, and this failure is
     * reported to all ranks.
     */
    public final void meet(Duration deadline) {
        Waiting.requireNotNegative("rank " + control.rank() + ", barrier", deadline);
        try {
            control.barrier(deadline);
        } catch (OperationInterruptedException interrupted) {
            throw interrupted; // no failure: the other ranks can complete this barrier, so the next calls match
        } catch (MillraceException missing) {
            watch(); // A failure that another rank has reported has precedence over the missing rank.
            fail(missing);
            throwIfFailed();
        }
    }

    /** Returns the failure; null if there was none. */
    @Override
    public final @Nullable Throwable get() {
        return first.get();
    }

    /**
     * Throws the failure, if one was reported.
     *
     * @throws MillraceException exception of the failure's kind, with a message of this rank
     */
    public final void throwIfFailed() {
        Throwable failure = first.get();
        if (failure != null) {
            throw RepeatedFailure.of("rank " + control.rank() + ": the communicator has failed; " + remedy() + ": "
                    + RemoteFailure.withoutRank(control.rank(), failure.getMessage()), failure);
        }
    }
}
