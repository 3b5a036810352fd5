package org.millrace.gpu;

import java.time.Duration;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.millrace.CommunicatorException;
import org.millrace.DeadlineException;
import org.millrace.MillraceException;
import org.millrace.MismatchException;
import org.millrace.PeerLostException;
import org.millrace.agent.Waiting;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.bootstrap.GroupFailure;
import org.millrace.bootstrap.LaunchCounts;
import org.millrace.nccl.NcclCommunicator;
import org.millrace.nccl.NcclException;
import org.millrace.nccl.NcclGroup;
import org.millrace.nccl.NcclLibrary;
import org.millrace.nccl.NcclResult;
import org.millrace.operation.OperationGroup;
import org.millrace.plugin.loss.ConnectionFailures;
import org.millrace.proxy.spi.ProxyException;
import org.millrace.proxy.spi.ProxyException.DisagreementException;

/**
 * Makes a communicator's NCCL calls, and detects failures while its kernels run. The detection runs on a separate
 * thread, because the user's thread may be blocked in a call. It detects four kinds of failure: the failure of another
 * rank, the loss of a connection that the takeover serves, NCCL's own error, and a call that does not return. At the
 * first failure, this class aborts NCCL's communicator. The abort ends the communicator's kernels and calls.
 */
final class NcclWatch implements Runnable {

    private static final long PERIOD_NANOS = 10_000_000;
    private static final Duration STOP_DEADLINE = Duration.ofSeconds(10);

    private final NcclLibrary library;
    private final NcclCommunicator nccl;
    private final GroupFailure failure;
    private final LaunchCounts launched;
    private final ControlPlane control;
    private final Duration stall;
    private final Duration late;
    private final Consumer<MillraceException> lostConnections;
    private final Thread thread;
    private volatile boolean ended;
    /**
     * Start time of the NCCL call in progress, a value of {@link System#nanoTime()}; 0 if no call is in progress. The
     * user's thread writes this field, and the watching thread reads the field.
     */
    private volatile long callSince;
    /**
     * Start time of the last call that was reported to the listener as slow. Used only by the watching thread.
     */
    private long toldOf;

    NcclWatch(GpuRank member, LaunchCounts launched, Duration stall, Duration late) {
        this.launched = launched;
        this.library = member.libraries().nccl();
        this.nccl = member.nccl();
        this.failure = member.failure();
        this.control = member.control();
        this.stall = stall;
        this.late = late;
        lostConnections = lost -> failure.suspect(ofConnection(lost));
        thread = Thread.ofPlatform().daemon().name("watch-" + nccl.rank()).unstarted(this);
    }

    /**
     * Returns the exception for the loss of a connection that the takeover serves. The exception does not name the
     * peer, because NCCL does not report the ranks of a connection.
     */
    private CommunicatorException ofConnection(MillraceException lost) {
        int rank = nccl.rank();
        String text = "rank " + rank + ": " + lost.getMessage();
        return switch (lost.getCause()) {
            case DisagreementException _ ->
                new MismatchException(text, rank, CommunicatorException.NO_RANK, null, lost);
            case ProxyException _ -> new CommunicatorException(text, rank, CommunicatorException.NO_RANK, null, lost);
            case null, default -> new PeerLostException(text, rank, CommunicatorException.NO_RANK, null, lost);
        };
    }

    private MillraceException typed(NcclException told) {
        int rank = nccl.rank();
        if (told.result() == NcclResult.REMOTE_ERROR) {
            return new PeerLostException(told.getMessage(), rank, CommunicatorException.NO_RANK, null, told);
        }
        return told.result() == NcclResult.TIMEOUT
                ? new DeadlineException(told.getMessage(), rank, CommunicatorException.NO_RANK, null, told)
                : told;
    }

    void start() {
        ConnectionFailures.listen(lostConnections);
        thread.start();
    }

    /** Makes an NCCL call. If the thread has opened a group of operations, the call becomes a part of the group. */
    void call(Runnable enqueue) {
        OperationGroup.join(library, () -> new Group(library))
                .map(Group.class::cast)
                .ifPresent(group -> group.watches.add(this));
        watched(List.of(this), enqueue);
    }

    /**
     * Makes an NCCL call for some communicators. If NCCL refuses the call, all these communicators fail, because NCCL
     * may have launched kernels on some ranks and not on others.
     */
    private static void watched(Collection<NcclWatch> watches, Runnable call) {
        watches.forEach(each -> each.callSince = System.nanoTime() | 1);
        try {
            call.run();
        } catch (NcclException refused) {
            watches.forEach(each -> each.failure.fail(each.typed(refused)));
            watches.forEach(each -> each.failure.throwIfFailed());
        } catch (IllegalStateException aborted) {
            watches.forEach(each -> each.failure.throwIfFailed());
            throw aborted;
        } finally {
            watches.forEach(each -> each.callSince = 0);
        }
    }

    /**
     * The NCCL calls in a thread's group of operations, for one or more communicators. The constructor opens a group of
     * NCCL. NCCL then prepares all plans of the group before it launches the first plan.
     */
    private static final class Group implements OperationGroup.Part {

        private final NcclGroup nccl;
        private final Set<NcclWatch> watches = new LinkedHashSet<>();

        Group(NcclLibrary library) {
            nccl = library.group();
        }

        /** Does nothing, because NCCL has already received all calls. */
        @Override
        public void prepare(boolean alone) {}

        /**
         * Ends NCCL's group. NCCL then connects the ranks and launches the kernels. If this call fails, or does not
         * return in time, all communicators of the group fail. NCCL does not report the communicator that caused the
         * failure.
         */
        @Override
        public boolean launch() {
            watched(watches, nccl::close);
            return true;
        }
    }

    @Override
    public void run() {
        while (!ended) {
            try {
                launched.watch();
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
                // This call throws the error with NCCL's message.
                nccl.awaitReady(Duration.ZERO);
            }
        } catch (NcclException told) {
            MillraceException kind = typed(told);
            if (kind instanceof PeerLostException) {
                // The failure is not final yet, because another rank may soon report the reason for the loss.
                failure.suspect(kind);
            } else {
                failure.fail(kind);
            }
        } catch (IllegalStateException closed) {
            // The communicator was closed, and stop() has not ended this thread yet.
        }
    }

    private void checkCall() {
        long since = callSince;
        long taken = since == 0 ? 0 : System.nanoTime() - since;
        String what = "rank " + nccl.rank() + ": a call of NCCL's has not returned for ";
        String why = ": it connects to a rank that does not connect; see whether every rank enqueues the same "
                + "operations";
        if (taken > late.toNanos()) {
            throw new DeadlineException(what + late.toMillis() + " ms (MILLRACE_LATE_DEADLINE)" + why, nccl.rank(),
                    CommunicatorException.NO_RANK, null, null);
        }
        if (taken > stall.toNanos() && since != toldOf) {
            toldOf = since;
            control.tell(listener -> listener.stalled(what + stall.toMillis() + " ms" + why));
        }
    }

    /**
     * Waits until the watching thread has ended. An interruption of the calling thread does not end the wait. Must be
     * called on a thread other than the watching thread.
     *
     * @return false if the watching thread is still in an NCCL call after 10 s; the communicator can then be aborted,
     *         but not destroyed
     */
    boolean stop() {
        ended = true;
        ConnectionFailures.forget(lostConnections);
        LockSupport.unpark(thread);
        return Waiting.untilEnded(thread, STOP_DEADLINE);
    }
}
