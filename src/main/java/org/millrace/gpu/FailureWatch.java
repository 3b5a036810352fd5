package org.millrace.gpu;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.millrace.MillraceException;
import org.millrace.engine.rendezvous.GroupFailure;
import org.millrace.nccl.NcclCommunicator;
import org.millrace.nccl.NcclResult;
import org.millrace.plugin.takeover.ConnectionFailures;

/**
 * Looks for what can go wrong while a communicator's kernels run, on a thread of its own, because the user's may be
 * stuck in a call: another rank's failure, a connection that the takeover lost, NCCL's own error, and a call that does
 * not return. The first of them aborts NCCL's communicator, which frees kernels and calls.
 */
final class FailureWatch implements Runnable {

    private static final long PERIOD_NANOS = 10_000_000;
    private static final Duration STOP_DEADLINE = Duration.ofSeconds(10);

    private final NcclCommunicator nccl;
    private final GroupFailure failure;
    private final Duration stall;
    private final Consumer<MillraceException> lostConnections;
    private final Thread thread;
    private volatile boolean ended;
    /** When the call that is under way began; 0 if there is none. Written by the user's thread. */
    private volatile long callSince;

    FailureWatch(NcclCommunicator nccl, GroupFailure failure, Duration stall) {
        this.nccl = nccl;
        this.failure = failure;
        this.stall = stall;
        lostConnections =
                lost -> failure.suspect(new MillraceException("rank " + nccl.rank() + ": " + lost.getMessage(), lost));
        thread = Thread.ofPlatform().daemon().name("watch-" + nccl.rank()).unstarted(this);
    }

    void start() {
        ConnectionFailures.listen(lostConnections);
        thread.start();
    }

    void callBegins() {
        callSince = System.nanoTime() | 1;
    }

    void callEnds() {
        callSince = 0;
    }

    @Override
    public void run() {
        while (!ended) {
            try {
                failure.watch();
                askNccl();
                checkCall();
            } catch (RuntimeException unexpected) {
                failure.fail(unexpected);
            }
            if (failure.get() != null) {
                nccl.abort();
                return;
            }
            LockSupport.parkNanos(PERIOD_NANOS);
        }
    }

    private void askNccl() {
        try {
            NcclResult result = nccl.asyncError();
            if (result != NcclResult.SUCCESS && result != NcclResult.IN_PROGRESS) {
                nccl.awaitReady(Duration.ZERO); // throws it, with NCCL's own words
            }
        } catch (IllegalStateException closed) {
            // between the end of the communicator and that of this thread
        }
    }

    private void checkCall() {
        long since = callSince;
        if (since != 0 && System.nanoTime() - since > stall.toNanos()) {
            throw new MillraceException("rank " + nccl.rank() + ": a call of NCCL's has not returned for "
                    + stall.toMillis()
                    + " ms (MILLRACE_STALL_DEADLINE): it connects to a rank that does not come; see whether every rank enqueues the same operations");
        }
    }

    /** Returns when the thread is in no call of NCCL's any more. Not to be called from it. */
    void stop() {
        ended = true;
        ConnectionFailures.forget(lostConnections);
        LockSupport.unpark(thread);
        try {
            thread.join(STOP_DEADLINE);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
