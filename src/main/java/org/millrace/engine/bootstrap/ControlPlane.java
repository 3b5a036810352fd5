package org.millrace.engine.bootstrap;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.channels.Selector;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.millrace.CommunicatorListener;
import org.millrace.MillraceException;
import org.millrace.engine.bootstrap.Message.Call;
import org.millrace.engine.bootstrap.Message.Contribution;
import org.millrace.engine.bootstrap.Message.Failed;
import org.millrace.engine.bootstrap.Message.PeerMessage;
import org.millrace.net.socket.SocketOptions;

/**
 * One rank's connection to the other ranks of its group, for everything but data: they find each other, exchange what
 * they need for their set-up, and tell each other of failures.
 *
 * <p>
 * {@link #allGather} and {@link #barrier} are collective: all ranks make the same calls in the same order, each from
 * one thread at a time. The first failure, this rank's or another's, ends every collective call, now and later. Such a
 * call throws {@link MillraceException} if a rank failed, left, does not come, or made another call, and the others are
 * told. {@link #fail}, {@link #failure} and {@link #close} are safe from any thread at any moment.
 *
 * <p>
 * After rank 0 has closed its end the others can no longer tell each other anything. A program that wants failures to
 * be told to the very end calls {@link #barrier} before {@link #close}.
 */
public final class ControlPlane implements AutoCloseable {

    /** Most that one rank may give to {@link #allGather}, in bytes. */
    public static final int MAX_GATHER_BYTES = MessageCodec.MAX_DATA;

    /** Longest message from one rank to another, in bytes. */
    public static final int MAX_MESSAGE_BYTES = 4096;

    /**
     * How long a leaving rank waits until the others have read its shutdown message. They read at once, unless their
     * process is stopped.
     */
    private static final Duration SHUTDOWN = Duration.ofSeconds(2);

    private final GroupState group;
    /** Null in a group of one, where there is nobody to talk to. */
    private final @Nullable ControlLoop loop;
    private final JoinOptions options;
    private final AtomicBoolean inCollective = new AtomicBoolean();

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
     * Joins a group. Returns when all ranks are there.
     *
     * @param rendezvous {@code file:PATH}, a file that rank 0 makes, that all ranks can read, and that is gone once the
     *                   group is complete; or {@code tcp:HOST:PORT}, where rank 0 listens until the group is complete
     * @throws IllegalArgumentException if an argument is not usable
     * @throws MillraceException        if the group did not come together; the message names the ranks that are
     *                                  missing, or the one that does not fit and why. The ranks that are there are told
     */
    public static ControlPlane join(String rendezvous, int rank, int size, JoinOptions options) {
        if (size < 1 || rank < 0 || rank >= size) {
            throw new IllegalArgumentException(
                    "rank " + rank + " of " + size + ": a group has 1 or more ranks, numbered from 0 to size - 1");
        }
        return join(Rendezvous.parse(rendezvous, options), rank, size, options);
    }

    static ControlPlane join(Rendezvous rendezvous, int rank, int size, JoinOptions options) {
        GroupState group = new GroupState(RankIdentity.local(rank), size);
        if (size == 1) {
            return new ControlPlane(group, null, options);
        }
        Deadline deadline = Deadline.in(options.deadline());
        ControlPlane plane = new ControlPlane(group, connect(rendezvous, group, deadline, options.sockets()), options);
        try {
            plane.loop.start();
            group.awaitComplete(deadline, rendezvous.toString());
            return plane;
        } catch (MillraceException e) {
            plane.tellOthers(e);
            plane.close();
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
     * Tells the program. On a thread of its own, as a listener may wait and may call the communicator; the process does
     * not end before it has been told.
     */
    public void tell(Consumer<CommunicatorListener> what) {
        Thread.ofPlatform().daemon(false).name("listener").start(() -> what.accept(options.listener()));
    }

    /**
     * Gives every rank what every rank has. Collective; waits for the slowest rank, at most for the deadline of
     * {@link #join}.
     *
     * @param mine this rank's bytes, at most {@link #MAX_GATHER_BYTES}; each rank may give another number of them
     * @return the bytes of every rank, by rank; the caller's to keep
     */
    public byte[][] allGather(byte[] mine) {
        if (mine.length > MAX_GATHER_BYTES) {
            throw new IllegalArgumentException(
                    "allGather of " + mine.length + " bytes by rank " + rank() + "; the limit is " + MAX_GATHER_BYTES);
        }
        return gather(Call.ALL_GATHER, mine);
    }

    /** Does the same as {@link #allGather} for a call of the program, which messages name. */
    byte[][] gather(Call call, byte[] mine) {
        return call(call, mine, Deadline.in(options.deadline()).of("MILLRACE_CONNECT_DEADLINE"));
    }

    /**
     * Returns when every rank has called it. Collective; waits at most for the deadline of {@link #join}.
     */
    public void barrier() {
        call(Call.BARRIER, new byte[0], Deadline.in(options.deadline()).of("MILLRACE_CONNECT_DEADLINE"));
    }

    /** The same, with another deadline. */
    public void barrier(Duration deadline) {
        call(Call.BARRIER, new byte[0], Deadline.in(deadline));
    }

    /**
     * Waits for the other ranks to leave, too. Fails no rank.
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
     * Sends something to one rank. Does not wait. Safe from any thread.
     *
     * @param tag  tells it from other messages of this rank to that one; may be used again once the message was read
     * @param data at most {@link #MAX_MESSAGE_BYTES}
     * @throws IllegalArgumentException if there is no such rank, or the message is too long
     */
    public void send(int to, long tag, byte[] data) {
        if (to < 0 || to >= size() || to == rank() || data.length > MAX_MESSAGE_BYTES) {
            throw new IllegalArgumentException("message of rank " + rank() + " to rank " + to + " of " + size() + ", "
                    + data.length + " bytes;" + " it must go to another rank and have at most " + MAX_MESSAGE_BYTES);
        }
        say(new PeerMessage(rank(), to, tag, data.clone()));
    }

    /** What another rank sent to this one, once; null if it has not come. Does not wait. Safe from any thread. */
    public byte @Nullable [] receive(int from, long tag) {
        return group.take(from, tag);
    }

    /**
     * Makes new groups of the ranks of this one. Collective; waits at most for the deadline of {@link #join}, several
     * times.
     *
     * @param color ranks that give the same one come together; less than 0 for those that want no new group
     * @param key   the new ranks are in the order of the keys, and of the ranks here where keys are the same
     */
    public @Nullable ControlPlane split(int color, int key) {
        return Split.agree(this, color, key);
    }

    JoinOptions options() {
        return options;
    }

    /** An address of this machine at which other ranks of the group can reach it. */
    InetAddress address() {
        return loop == null ? InetAddress.getLoopbackAddress() : loop.address();
    }

    private byte[][] call(Call collective, byte[] mine, Deadline deadline) {
        if (!inCollective.compareAndSet(false, true)) {
            throw new IllegalStateException(collective.call + " of rank " + rank()
                    + " while another thread is in a collective call of the same control plane");
        }
        try {
            Contribution own = group.contribute(collective, mine);
            say(own);
            return group.awaitParts(own, deadline);
        } catch (MillraceException e) {
            tellOthers(e);
            throw e;
        } finally {
            inCollective.set(false);
        }
    }

    /**
     * Tells all other ranks that this rank's communicator failed, and ends this rank's collective calls. The first call
     * counts, later ones do nothing. Does not wait: the message is on its way when {@link #close} returns.
     *
     * @param thrown what failed: the others throw the same kind, with this rank's number, process and host before its
     *               message; an error that says nothing is told by its name
     */
    public void fail(Throwable thrown) {
        RemoteFailure own = RemoteFailure.of(rank(), thrown);
        if (group.poison(own)) {
            say(new Failed(own));
        }
    }

    /** A failure that another rank told is known to all. */
    private void tellOthers(MillraceException e) {
        if (failure() == null) {
            fail(e);
        }
    }

    private void say(Message message) {
        if (loop != null) {
            loop.say(message);
        }
    }

    /**
     * The first failure that another rank told, or the loss of a rank; null as long as nothing is known to have failed.
     * A volatile read: made to be polled.
     */
    public @Nullable RemoteFailure failure() {
        return group.failure();
    }

    /**
     * Has a listener called when {@link #failure} or {@link #receive} may have something new, from the control thread;
     * and once at once, for what came before.
     *
     * @param listener must not block; takes the place of the one before
     */
    public void onEvent(Runnable listener) {
        group.onEvent(listener);
    }

    /**
     * Leaves the group. Not a failure: only a collective call that still needs this rank fails. Ends this rank's own
     * collective call and its thread. Takes a round trip, or two seconds if another process is stopped.
     */
    @Override
    public void close() {
        group.close();
        if (loop != null) {
            loop.leave(SHUTDOWN);
        }
    }
}
