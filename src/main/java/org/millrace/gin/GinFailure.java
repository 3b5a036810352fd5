package org.millrace.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The first failure of a communicator. Later failures are ignored. The communicator can also learn of a peer's failure
 * from another source than its connections, for example from the control plane. Such a report becomes the failure only
 * if no connection fails with a more detailed reason within one second. Safe from any thread.
 */
final class GinFailure {

    /**
     * Access to {@link #flag}. The failing thread writes the flag with a volatile store. Native code and waiting
     * kernels read it with volatile loads.
     */
    private static final VarHandle FLAG = ValueLayout.JAVA_INT.varHandle();
    private static final long REASON_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final int rank;
    private final GinCommunicator.FailureListener listener;
    private final MemorySegment flag = Arena.ofAuto().allocate(ValueLayout.JAVA_INT);
    private final AtomicReference<@Nullable Throwable> first = new AtomicReference<>();
    /**
     * Report that a peer has failed, from another source than a connection; null if none. Set at most once. The agent's
     * thread evaluates it in {@link #throwIfDue}.
     */
    private volatile @Nullable Report reported;

    private record Report(Throwable thrown, long until) {
    }

    GinFailure(int rank, GinCommunicator.FailureListener listener) {
        this.rank = rank;
        this.listener = listener;
    }

    /**
     * Returns native memory of one {@code int}: 0, or 1 after a failure. The memory exists as long as this object.
     */
    MemorySegment flag() {
        return flag;
    }

    @Nullable
    Throwable get() {
        return first.get();
    }

    void fail(Throwable thrown) {
        if (first.compareAndSet(null, thrown)) {
            listener.failed(thrown);
            FLAG.setVolatile(flag, 0L, 1);
        }
    }

    /** Records a report that a peer has failed, from another source than a connection. */
    void failSoon(Throwable thrown) {
        if (reported == null) {
            reported = new Report(thrown, System.nanoTime() + REASON_NANOS);
        }
    }

    /** Throws an exception if the communicator has failed. Called before new requests. */
    void throwIfFailed() {
        Throwable thrown = first.get();
        if (thrown != null) {
            throw new GinException(
                    "rank " + rank + ": the communicator has failed and can only be closed: " + thrown.getMessage(),
                    thrown);
        }
    }

    /**
     * Throws an exception if the communicator has failed, or if one second has passed since a peer's failure was
     * reported. Agent's thread only.
     */
    void throwIfDue() {
        Throwable thrown = first.get();
        Report told = reported;
        if (thrown == null && told != null && System.nanoTime() - told.until > 0) {
            thrown = told.thrown;
        }
        if (thrown != null) {
            throw new GinException(thrown.getMessage(), thrown);
        }
    }
}
