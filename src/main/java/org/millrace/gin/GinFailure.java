package org.millrace.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Why a communicator has failed: the first reason is kept. What others say of a peer counts only where no connection
 * says more in time. Safe from any thread.
 */
final class GinFailure {

    /** Volatile on both sides: the agent writes it, and native code and waiting kernels read it. */
    private static final VarHandle FLAG = ValueLayout.JAVA_INT.varHandle();
    private static final long REASON_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final int rank;
    private final GinCommunicator.FailureListener listener;
    private final MemorySegment flag = Arena.ofAuto().allocate(ValueLayout.JAVA_INT);
    private final AtomicReference<@Nullable Throwable> first = new AtomicReference<>();
    /** Set once; the agent's thread judges it. */
    private volatile @Nullable Report reported;

    private record Report(Throwable thrown, long until) {
    }

    GinFailure(int rank, GinCommunicator.FailureListener listener) {
        this.rank = rank;
        this.listener = listener;
    }

    /** A native {@code int} that is 0, or 1 after a failure. It lives as long as this object. */
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

    /** A peer failed, as somebody else says. */
    void failSoon(Throwable thrown) {
        if (reported == null) {
            reported = new Report(thrown, System.nanoTime() + REASON_NANOS);
        }
    }

    /** For those who ask for something new. */
    void throwIfFailed() {
        Throwable thrown = first.get();
        if (thrown != null) {
            throw new GinException(
                    "rank " + rank + ": the communicator has failed and can only be closed: " + thrown.getMessage(),
                    thrown);
        }
    }

    /** For the agent: the failure as it is, or what was reported and no connection has said more of. */
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
