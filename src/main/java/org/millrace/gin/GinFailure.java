package org.millrace.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The reason for a communicator's failure; the first reason is kept. A report about a peer from another source counts
 * only if no connection reports more details in time. Safe from any thread.
 */
final class GinFailure {

    /**
     * Access to the flag, volatile on both sides: the failing thread writes it, and native code and waiting kernels
     * read it.
     */
    private static final VarHandle FLAG = ValueLayout.JAVA_INT.varHandle();
    private static final long REASON_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final int rank;
    private final GinCommunicator.FailureListener listener;
    private final MemorySegment flag = Arena.ofAuto().allocate(ValueLayout.JAVA_INT);
    private final AtomicReference<@Nullable Throwable> first = new AtomicReference<>();
    /** Report about a peer from another source. Set once; the agent's thread evaluates it. */
    private volatile @Nullable Report reported;

    private record Report(Throwable thrown, long until) {
    }

    GinFailure(int rank, GinCommunicator.FailureListener listener) {
        this.rank = rank;
        this.listener = listener;
    }

    /** Returns a native {@code int} that is 0, or 1 after a failure. It exists as long as this object. */
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

    /** Records that a peer failed, as learned from another source. */
    void failSoon(Throwable thrown) {
        if (reported == null) {
            reported = new Report(thrown, System.nanoTime() + REASON_NANOS);
        }
    }

    /** Throws the failure, for callers with new requests. */
    void throwIfFailed() {
        Throwable thrown = first.get();
        if (thrown != null) {
            throw new GinException(
                    "rank " + rank + ": the communicator has failed and can only be closed: " + thrown.getMessage(),
                    thrown);
        }
    }

    /** Throws, for the agent, the failure itself, or a report that no connection has supplemented in time. */
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
