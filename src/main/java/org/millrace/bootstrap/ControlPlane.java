package org.millrace.bootstrap;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.channels.Selector;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.CommunicatorException;
import org.millrace.CommunicatorListener;
import org.millrace.MillraceException;
import org.millrace.OperationInterruptedException;
import org.millrace.bootstrap.Message.Call;
import org.millrace.bootstrap.Message.Contribution;
import org.millrace.bootstrap.Message.Failed;
import org.millrace.bootstrap.Message.PeerMessage;
import org.millrace.net.socket.SocketOptions;
import org.millrace.trace.JoinTrace;

/**
 * Connection of one rank to the other ranks of its group. It carries everything except the data of operations. The
 * ranks use the connection to find each other, to exchange set-up data, and to report failures.
 *
 * <p>
 * {@link #allGather} and {@link #barrier} are collective. All ranks must make the same calls in the same order. Only
 * one thread of a rank may make such a call at a time. The first failure of any rank ends every current and later
 * collective call. A collective call throws {@link MillraceException} if a rank failed, left, does not arrive, or made
 * another call. The rank with the failed call reports the failure to the other ranks. {@link #fail}, {@link #failure}
 * and {@link #close} are safe from any thread at any time.
 *
 * <p>
 * After rank 0 has closed its control plane, the other ranks can no longer communicate. A program that needs all
 * reports of failures calls {@link #barrier} before {@link #close}.
 */
public final class ControlPlane implements AutoCloseable {

    /** Maximum number of bytes that one rank may pass to {@link #allGather}. */
    public static final int MAX_GATHER_BYTES = MessageCodec.MAX_DATA;

    /** Maximum length of a message from one rank to another, in bytes. */
    public static final int MAX_MESSAGE_BYTES = 4096;

    /**
     * Maximum time that a leaving rank waits until the other ranks have read its shutdown message. The other ranks read
     * the message immediately, unless a signal has stopped their process.
     */
    private static final Duration SHUTDOWN = Duration.ofSeconds(2);

    private final GroupState group;
    /** Loop of this rank; null in a group of one, which has no peers. */
    private final @Nullable ControlLoop loop;
    private final JoinOptions options;
    /** Rendezvous of the group as text. All ranks of the group write the same text to their traces. */
    private String where = "";
    /** Origin of this group if a {@link Recovery} has made the group; null for any other group. */
    private Recovery.@Nullable Descent descent;
    private final AtomicBoolean inCollective = new AtomicBoolean();
    /**
     * This rank's part of a barrier whose wait was interrupted; null if there is none. {@link #inCollective} guards it.
     */
    private @Nullable Contribution interrupted;

    private ControlPlane(GroupState group, @Nullable ControlLoop loop, JoinOptions options) {
        this.group = group;
        this.loop = loop;
        this.options = options;
    }

    /** Joins a group with the default options. */
    public static ControlPlane join(String rendezvous, int rank, int size, Duration deadline) {
        return join(rendezvous, rank, size, JoinOptions.within(deadline));
    }

    /**
     * Joins a group. Returns when all ranks are present.
     *
     * @param rendezvous {@code file:PATH}, a file that rank 0 creates, that all ranks can read, and that rank 0 deletes
     *                   once the group is complete; or {@code tcp:HOST:PORT}, the address at which rank 0 listens until
     *                   the group is complete
     * @throws IllegalArgumentException if an argument is not usable
     * @throws MillraceException        if the group cannot be formed; the message names the missing ranks, or a rank
     *                                  that does not fit and the reason. The ranks that are present are informed
     */
    public static ControlPlane join(String rendezvous, int rank, int size, JoinOptions options) {
        if (size < 1 || rank < 0 || rank >= size) {
            throw new IllegalArgumentException(
                    "rank " + rank + " of " + size + ": a group has 1 or more ranks, numbered from 0 to size - 1");
        }
        Rendezvous where = Rendezvous.parse(rendezvous, options);
        return join(where, rank, size, options.withPlace(where.place()));
    }

    static ControlPlane join(Rendezvous rendezvous, int rank, int size, JoinOptions options) {
        return join(rendezvous, rank, size, options, Deadline.in(options.deadline()), plane -> {});
    }

    /** @param begun action that runs when this rank takes part in the group, before it waits for the other ranks */
    static ControlPlane join(Rendezvous rendezvous, int rank, int size, JoinOptions options, Deadline deadline,
            Consumer<ControlPlane> begun) {
        RankIdentity self = RankIdentity.local(rank, options.run());
        if (size == 1) {
            return new ControlPlane(new GroupState(self, size), null, options);
        }
        try (JoinTrace trace = JoinTrace.open(rank, size, rendezvous.toString())) {
            ControlPlane plane = begin(rendezvous, new GroupState(self, size, trace), deadline, options);
            return plane.complete(rendezvous, deadline, begun);
        }
    }

    /**
     * Begins to join a group that continues without lost ranks, and returns without waiting for all ranks. Rank 0 must
     * listen already.
     *
     * @throws org.millrace.PeerLostException if rank 0 has ended or has left
     */
    static ControlPlane meet(Rendezvous rendezvous, int rank, int size, Deadline deadline, JoinOptions options) {
        return begin(rendezvous, new GroupState(RankIdentity.local(rank, options.run()), size).survivingLosses(),
                deadline, options);
    }

    private static ControlPlane begin(Rendezvous rendezvous, GroupState group, Deadline deadline, JoinOptions options) {
        ControlPlane plane = new ControlPlane(group, connect(rendezvous, group, deadline, options.sockets()), options);
        plane.loop.start();
        return plane;
    }

    /**
     * Shows in the process's trace that this rank sets up its communicator. The trace also shows the ranks that this
     * rank's collective calls wait for. The entry ends when the returned object is closed.
     */
    public JoinTrace traceSetUp() {
        JoinTrace setUp = loop == null ? JoinTrace.NONE : JoinTrace.open(rank(), size(), where);
        group.trace(setUp);
        return setUp;
    }

    private ControlPlane complete(Rendezvous rendezvous, Deadline deadline, Consumer<ControlPlane> begun) {
        try {
            begun.accept(this);
            where = rendezvous.toString();
            group.awaitComplete(deadline, where);
            return this;
        } catch (MillraceException e) {
            tellOthers(e);
            close();
            throw e;
        }
    }

    private static ControlLoop connect(Rendezvous rendezvous, GroupState group, Deadline deadline,
            SocketOptions sockets) {
        try {
            Selector selector = Selector.open();
            try {
                return group.self().rank() == 0
                        ? Coordinator.open(group, rendezvous.open(group.self(), group.size()), selector, sockets)
                        : new BootstrapClient(selector, group.self(), group.size(), sockets).connect(rendezvous, group,
                                deadline);
            } catch (IOException | RuntimeException e) {
                selector.close();
                throw e;
            }
        } catch (IOException e) {
            throw new MillraceException(
                    "rank " + group.self().rank() + " cannot join the group at " + rendezvous + ": " + e, e);
        }
    }

    public int rank() {
        return group.self().rank();
    }

    public int size() {
        return group.size();
    }

    /**
     * Calls the program's listener on a separate thread, because the listener may block and may call the communicator.
     * The process does not end before the call has returned.
     */
    public void tell(Consumer<CommunicatorListener> what) {
        Thread.ofPlatform().daemon(false).name("listener").start(() -> what.accept(options.listener()));
    }

    /**
     * Distributes the bytes of each rank to all ranks. Collective. Waits for the slowest rank, at most for the deadline
     * of {@link #join}.
     *
     * @param mine bytes of this rank, at most {@link #MAX_GATHER_BYTES}; ranks may pass different numbers of bytes
     * @return bytes of each rank, by rank; owned by the caller
     */
    public byte[][] allGather(byte[] mine) {
        if (mine.length > MAX_GATHER_BYTES) {
            throw new IllegalArgumentException(
                    "allGather of " + mine.length + " bytes by rank " + rank() + "; the limit is " + MAX_GATHER_BYTES);
        }
        return gather(Call.ALL_GATHER, mine);
    }

    /**
     * Performs {@link #allGather} as a part of another call of the program, such as {@link #split}. Error messages
     * contain the name of that call.
     */
    byte[][] gather(Call call, byte[] mine) {
        return call(call, mine, deadline());
    }

    /** Returns when all ranks have called this method. Collective. Waits at most for the deadline of {@link #join}. */
    public void barrier() {
        call(Call.BARRIER, new byte[0], deadline());
    }

    /**
     * Returns when all ranks have called this method, like {@link #barrier()}. Collective. Waits at most for
     * {@code deadline}.
     */
    public void barrier(Duration deadline) {
        call(Call.BARRIER, new byte[0], Deadline.in(deadline));
    }

    /**
     * Waits until the other ranks leave, too. A rank that does not leave is not reported as a failure.
     *
     * @param patience {@code MILLRACE_CLOSE_DEADLINE}, counted from {@code begun}
     * @param begun    value of {@link System#nanoTime()} when this rank began to leave
     * @return null if all ranks leave; otherwise the reason why this rank leaves alone: a
     *         {@link org.millrace.DeadlineException} if another rank does not leave in time
     */
    public @Nullable MillraceException leaveTogether(Duration patience, long begun) {
        try {
            Contribution own = group.contribute(Call.CLOSE, new byte[0]);
            say(own);
            group.awaitParts(own, Deadline.since(begun, patience).of("MILLRACE_CLOSE_DEADLINE"));
            return null;
        } catch (MillraceException lateOrGone) {
            return lateOrGone;
        }
    }

    /**
     * Sends a message to one rank. Does not wait. Safe from any thread.
     *
     * @param tag  identifies the message among all messages of this rank to that rank; may be used again once the
     *             message was read
     * @param data at most {@link #MAX_MESSAGE_BYTES} bytes
     * @throws IllegalArgumentException if the rank does not exist, or the message is too long
     */
    public void send(int to, long tag, byte[] data) {
        if (to < 0 || to >= size() || to == rank() || data.length > MAX_MESSAGE_BYTES) {
            throw new IllegalArgumentException("message of rank " + rank() + " to rank " + to + " of " + size() + ", "
                    + data.length + " bytes;" + " it must go to another rank and have at most " + MAX_MESSAGE_BYTES);
        }
        say(new PeerMessage(rank(), to, tag, data.clone()));
    }

    /**
     * Removes and returns the message that another rank sent to this rank with the given tag; null if the message has
     * not arrived. Does not wait. Safe from any thread.
     */
    public byte @Nullable [] receive(int from, long tag) {
        return group.take(from, tag);
    }

    /**
     * Divides the ranks of this group into new groups. Collective. Waits at most for the deadline of {@link #join}, in
     * each of several steps.
     *
     * @param color number of the new group, equal for its ranks; less than 0 for a rank that joins no new group
     * @param key   sort key of this rank in the new group; ranks with equal keys keep their present order
     * @return this rank's end of the new group's control plane; null if the rank joins no new group
     */
    public @Nullable ControlPlane split(int color, int key) {
        return Split.agree(this, color, key);
    }

    void descendsBy(Recovery.Descent from) {
        descent = from;
    }

    /**
     * Ends the set-up of this group: returns when all ranks have called this method. Collective. In a recovery, the
     * members decide together that the group is complete. If a member is missing, this method throws on all members.
     */
    public void complete() {
        if (descent == null) {
            barrier();
        } else {
            descent.completion().run();
            descent = descent.completed();
        }
    }

    private Deadline deadline() {
        Deadline ofCompletion = descent == null ? null : descent.deadline();
        return ofCompletion == null ? Deadline.in(options.deadline()).of("MILLRACE_CONNECT_DEADLINE")
                : ofCompletion.orIn(options.deadline());
    }

    /** Returns the time within which ranks must connect to each other in the set-up of their communicator. */
    public Duration setUpTime() {
        return Duration.ofNanos(Math.max(1, deadline().remainingNanos()));
    }

    Recovery.@Nullable Descent descent() {
        return descent;
    }

    JoinOptions options() {
        return options;
    }

    /** Returns an address of this machine at which other ranks of the group can reach it. */
    InetAddress address() {
        return loop == null ? InetAddress.getLoopbackAddress() : loop.address();
    }

    /**
     * Completes the earlier barrier whose wait was interrupted, if any: waits for the other ranks. If this wait is
     * interrupted, too, throws a failure.
     */
    private void takeInterrupted(Deadline deadline) {
        Contribution earlier = interrupted;
        if (earlier != null) {
            try {
                group.awaitParts(earlier, deadline);
                interrupted = null;
            } catch (OperationInterruptedException again) {
                throw new CommunicatorException(again.getMessage(), rank(), CommunicatorException.NO_RANK,
                        earlier.collective().call, null);
            }
        }
    }

    private byte[][] call(Call collective, byte[] mine, Deadline deadline) {
        if (!inCollective.compareAndSet(false, true)) {
            throw new IllegalStateException(collective.call + " of rank " + rank()
                    + " while another thread is in a collective call of the same control plane");
        }
        Contribution own = null;
        try {
            takeInterrupted(deadline);
            own = group.contribute(collective, mine);
            say(own);
            return group.awaitParts(own, deadline);
        } catch (MillraceException e) {
            if (own != null && collective == Call.BARRIER && e instanceof OperationInterruptedException) {
                interrupted = own; // no failure: the other ranks can complete the barrier
            } else {
                tellOthers(e);
            }
            throw e;
        } finally {
            inCollective.set(false);
        }
    }

    /**
     * Reports the failure of this rank's communicator to all other ranks, and ends this rank's collective calls. Only
     * the first call has an effect. Does not wait. The message is sent before {@link #close} returns.
     *
     * @param thrown failure; other ranks throw an exception of the same kind, with this rank's number, process and host
     *               before its message. An {@link Error}, or an exception without a message, is reported with the name
     *               of its class
     */
    public void fail(Throwable thrown) {
        RemoteFailure own = RemoteFailure.of(rank(), thrown);
        if (group.poison(own)) {
            say(new Failed(own));
        }
    }

    /**
     * Reports a failure to the other ranks, unless another rank has already reported a failure to them.
     */
    private void tellOthers(MillraceException e) {
        if (failure() == null) {
            fail(e);
        }
    }

    /** Waits until a condition has a result, and returns the result; null if the deadline passes first. */
    <T> @Nullable T await(Supplier<@Nullable T> condition, Deadline deadline) {
        return group.await(condition, deadline);
    }

    /** Returns whether a rank is lost or has left, or this rank can no longer exchange messages with any rank. */
    boolean isGone(int rank) {
        return group.isGone(rank);
    }

    /** Leaves immediately. Unsent messages may be lost, and other ranks may count this rank as lost. */
    void drop() {
        group.close();
        if (loop != null) {
            loop.leave(Duration.ZERO);
        }
    }

    private void say(Message message) {
        if (loop != null) {
            loop.say(message);
        }
    }

    /**
     * Returns the first failure that another rank reported, or the loss of a rank; null if no failure is known. A
     * volatile read, suitable for polling.
     */
    public @Nullable RemoteFailure failure() {
        return group.failure();
    }

    /**
     * Sets a listener. The control thread calls the listener when {@link #failure} or {@link #receive} may have a new
     * result. This method also calls the listener once, for earlier events.
     *
     * @param listener listener that must not block; replaces the previous listener
     */
    public void onEvent(Runnable listener) {
        group.onEvent(listener);
    }

    /**
     * Leaves the group like {@link #close}, and returns immediately. The control thread ends soon afterwards. If the
     * process ends before the thread, messages may be lost.
     */
    public void closeLater() {
        closeLater(SHUTDOWN);
    }

    void closeLater(Duration patience) {
        group.close();
        if (loop != null) {
            loop.leaveLater(patience);
        }
    }

    /**
     * Leaves the group. Leaving does not count as a failure. On the other ranks, only a collective call that still
     * needs this rank fails. Ends this rank's own collective call and its control thread. Takes a round trip, or two
     * seconds if a signal has stopped the process of another rank.
     */
    @Override
    public void close() {
        group.close();
        if (loop != null) {
            loop.leave(SHUTDOWN);
        }
    }
}
