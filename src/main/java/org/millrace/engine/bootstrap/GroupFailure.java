package org.millrace.engine.bootstrap;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.PeerLostException;

/**
 * The first thing that went wrong with a communicator. It stays, every later call reports it, and the other ranks are
 * told. Safe from any thread.
 */
public class GroupFailure implements Supplier<@Nullable Throwable> {

    private static final Logger LOG = LogManager.getLogger(GroupFailure.class);
    /**
     * A rank that fails closes its connections and says why over the control plane; the reason may come second, and is
     * worth waiting for.
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

    /** Called by the thread that finds a failure. Only the first one counts. */
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

    /** Called once, by the thread that found the failure: {@link #get} gives it. */
    protected void failed() {
        // nobody here but those who ask
    }

    /**
     * A connection is lost: a failure, but perhaps one that another rank is about to explain. It becomes the failure if
     * no rank says why in time.
     */
    public final void suspect(Throwable thrown) {
        if (suspicion == null) {
            suspicion = new Suspicion(thrown, System.nanoTime() + REASON_NANOS);
            onSuspicion.run();
        }
    }

    /**
     * Wakes the thread that calls {@link #watch}, instead of its calling again and again. Any thread calls the listener
     * when there may be something to judge, or another rank's message has come.
     */
    public final void onEvent(Runnable listener) {
        onSuspicion = listener;
        control.onEvent(listener);
    }

    /** How long {@link #watch} has nothing to judge, without an event: for ever if nothing is suspected. */
    public final long nanosToWatch() {
        Suspicion pending = suspicion;
        return pending == null ? Long.MAX_VALUE : Math.max(0, pending.until - System.nanoTime());
    }

    /**
     * Listens to the other ranks and judges what is suspected; returns whether there is a failure now that was not
     * known before. To be called again and again.
     */
    public final boolean watch() {
        if (first.get() != null) {
            return false;
        }
        RemoteFailure remote = control.failure();
        Suspicion pending = suspicion;
        if (remote != null) {
            fail(remote.exception(control.rank()));
        } else if (pending != null && System.nanoTime() - pending.until > 0) {
            fail(pending.thrown);
        }
        return first.get() != null;
    }

    /** Waits for the other ranks. One that is missing is a failure of the communicator, which all are told. */
    public final void meet(Duration deadline) {
        if (deadline.isNegative()) {
            throw new IllegalArgumentException(
                    "rank " + control.rank() + ", barrier: the deadline " + deadline + " is negative; give 0 or more");
        }
        try {
            control.barrier(deadline);
        } catch (MillraceException missing) {
            watch(); // what another rank has told comes first
            fail(missing);
            throwIfFailed();
        }
    }

    /** The failure; null if there is none. */
    @Override
    public final @Nullable Throwable get() {
        return first.get();
    }

    /**
     * Reports the failure, if there is one.
     *
     * @throws MillraceException of the failure's kind, in words of this rank
     */
    public final void throwIfFailed() {
        Throwable failure = first.get();
        if (failure != null) {
            throw MillraceException
                    .again("rank " + control.rank() + ": the communicator has failed and can only be closed: "
                            + RemoteFailure.withoutRank(control.rank(), failure.getMessage()), failure);
        }
    }
}
