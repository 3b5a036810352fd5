package org.millrace.bootstrap;

import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.AbortedException;
import org.millrace.CommunicatorException;
import org.millrace.DeadlineException;
import org.millrace.ExcludedException;
import org.millrace.MillraceException;
import org.millrace.MismatchException;
import org.millrace.PeerLostException;
import org.millrace.bootstrap.Split.SplitRendezvous;
import org.millrace.net.connection.ListeningPorts;

/**
 * Agreement of the living ranks of a group, also after losses. The ranks make numbered decisions: a common boolean
 * value, or the members of the next group.
 *
 * <p>
 * <b>Liveness.</b> Each rank listens from the start of the group until it closes or has left by {@link #shrink}. A
 * refused connection therefore shows that a rank is gone. The operating system accepts connections for a stopped
 * process, so a stopped rank is not gone, and the others wait for it until their deadline.
 *
 * <p>
 * <b>Messages.</b> The lowest rank that is not gone coordinates. It is rank 0 of a control plane of its own, which
 * continues without lost members. A rank that loses its coordinator asks the next coordinator, and never returns to a
 * lower rank. So a coordinator has members with higher ranks only.
 *
 * <pre>
 *   member                                coordinator
 *     Request {flag, accepted proposal}    ─▶  one from each rank that is not gone, until the deadline
 *     ◀─  Waiting                              at intervals, so that the member waits longer than the coordinator
 *     ◀─  Proposal {decision}                  only without a place: an accepted proposal, or else its own
 *     Acceptance                           ─▶  from a majority of the group
 *     ◀─  Decision {decision}                  or Failed, if agree fails at the coordinator
 * </pre>
 *
 * <b>Uniqueness.</b> With a {@link DecisionPlace}, the first proposal there is the decision. Without one, the
 * coordinators are the ballots of a Paxos agreement: a majority of the group must answer the coordinator, which adopts
 * the accepted proposal of the highest coordinator, and a majority must accept the proposal.
 *
 * <p>
 * If the group of a decision is not completed, because a further rank is lost, its members make the next decision. A
 * group that descends from another group continues the numbers of the other group's decisions. So two parts of a group
 * that failed at different moments cannot both continue.
 *
 * <p>
 * One thread at a time calls {@link #shrink} and {@link #agree}. {@link #close} ends the calls of other threads.
 */
public final class Recovery implements AutoCloseable {

    /**
     * Descent of a group from a first group.
     *
     * @param id      text that identifies the first group
     * @param number  number of the next decision
     * @param origins number of each rank in the first group
     * @param place   key of the place of the decisions; empty if a majority decides
     */
    record Descent(String id, int number, int[] origins, String place) {
    }

    /** Kind of a decision. The ordinal of a constant is sent over the network. */
    enum Kind {
        AGREE, SHRINK
    }

    /**
     * @param flag    agreed value; true for a decision about the members
     * @param members members of the next group, as numbered in the first group
     * @param meeting invitation to the next group; empty for an agreed value
     */
    record Decision(Kind kind, boolean flag, BitSet members, byte[] meeting) {

        byte[] encode() {
            byte[] bits = members.toByteArray();
            return ByteBuffer.allocate(4 * Integer.BYTES + bits.length + meeting.length)
                    .putInt(kind.ordinal())
                    .putInt(flag ? 1 : 0)
                    .putInt(bits.length)
                    .put(bits)
                    .putInt(meeting.length)
                    .put(meeting)
                    .array();
        }

        static Decision decode(byte[] bytes) {
            RankLetter letter = new RankLetter(0, "a decision", bytes);
            Decision decision = new Decision(Kind.values()[letter.number("its kind", 0, Kind.values().length - 1)],
                    letter.number("its value", 0, 1) == 1, BitSet.valueOf(letter.sized("members")),
                    letter.sized("an invitation"));
            letter.end();
            return decision;
        }
    }

    /**
     * Request of a rank.
     *
     * @param ballot   coordinator of the accepted proposal; -1 if this rank has accepted none
     * @param proposal accepted proposal; empty if none
     */
    record Request(boolean flag, int ballot, byte[] proposal) {

        byte[] encode() {
            return ByteBuffer.allocate(3 * Integer.BYTES + proposal.length)
                    .putInt(flag ? 1 : 0)
                    .putInt(ballot)
                    .putInt(proposal.length)
                    .put(proposal)
                    .array();
        }

        static Request decode(int rank, byte[] bytes) {
            RankLetter letter = new RankLetter(rank, "a recovery", bytes);
            Request request = new Request(letter.number("its value", 0, 1) == 1,
                    letter.number("its ballot", -1, Integer.MAX_VALUE), letter.sized("a proposal"));
            letter.end();
            return request;
        }
    }

    /** Message of a coordinator. */
    private record Answer(long tag, byte[] bytes) {
    }

    private static final Logger LOG = LogManager.getLogger(Recovery.class);
    // Tags of messages. The low bytes are the number of the decision. The tag of a request also contains its kind.
    static final long REQUEST = 1L << 56;
    static final int KIND_SHIFT = 48;
    static final long PROPOSAL = 2L << 56;
    static final long ACCEPTANCE = 3L << 56;
    static final long DECISION = 4L << 56;
    /**
     * Tag of all messages that tell a member to wait. It contains no number, so that a new message replaces an unread
     * one.
     */
    static final long WAITING = 5L << 56;
    private static final long FAILED = 6L << 56;
    private static final byte[] NOTHING = {};
    /** Marks the loss of a coordinator. */
    private static final Answer GONE = new Answer(0, NOTHING);
    /** Bounds of the time between two checks whether a rank still listens. */
    private static final Duration MIN_PAUSE = Duration.ofMillis(20);
    private static final Duration MAX_PAUSE = Duration.ofSeconds(1);
    /**
     * Minimum time to wait for a rank after an earlier wait. Ranks notice a failure at different times, and the set-up
     * or the release of a communicator may take seconds where cores are scarce.
     */
    private static final Duration MIN_WAIT = Duration.ofSeconds(5);
    /** Minimum number of checks within a deadline. */
    private static final int CHECKS = 8;
    private static final int CHECK_MILLIS = 500;

    private final ControlPlane group;
    private final int self;
    private final JoinOptions options;
    /** Listener of this rank; null in a group of one, which no rank asks. */
    private final @Nullable ServerSocketChannel listener;
    /** Meeting place of each coordinator and its members, by rank. */
    final @Nullable SplitRendezvous[] meetings;
    private final String id;
    private final int[] origins;
    /** Key of the place; empty if a majority decides. A group and its descendants decide in the same way. */
    private final String placeKey;
    /** Place of the decisions; null if only a majority decides. */
    final @Nullable DecisionPlace place;
    /** Ranks that take part in the next decision. */
    private final BitSet members = new BitSet();
    private int number;
    /** Decision about the members that {@link #agree} has received, for the next call; null if there is none. */
    private byte @Nullable [] kept;
    /** Decision before the next one, for ranks that have missed it; null if there is none. */
    private byte @Nullable [] last;
    private int coordinator;
    /** Proposal that this rank has accepted for the next decision, and its ballot; -1 if there is none. */
    private int ballot = -1;
    private byte[] accepted = NOTHING;
    /** Listener of the next group that this rank has proposed; null if this rank has proposed no group. */
    private @Nullable ServerSocketChannel next;
    /** Control plane of the coordinator; null until it is needed. */
    private volatile @Nullable ControlPlane star;
    private volatile boolean closed;

    private Recovery(ControlPlane group, @Nullable ServerSocketChannel listener) throws IOException {
        this.group = group;
        this.self = group.rank();
        this.options = group.options().ofOneRun();
        this.listener = listener;
        this.meetings = new SplitRendezvous[group.size()];
        Descent descent = group.descent();
        byte[] invitation = listener == null ? NOTHING
                : Split.invitation((InetSocketAddress) listener.getLocalAddress(), Secret.randomHex());
        byte[] name = (descent == null ? Secret.randomHex() : descent.id).getBytes(StandardCharsets.UTF_8);
        String itsKey = DecisionPlace.key(options.place());
        byte[] key = itsKey.getBytes(StandardCharsets.UTF_8);
        byte[][] letters =
                group.allGather(ByteBuffer.allocate(invitation.length + 2 * Integer.BYTES + name.length + key.length)
                        .put(invitation)
                        .putInt(name.length)
                        .put(name)
                        .putInt(key.length)
                        .put(key)
                        .array());
        String first = "";
        boolean isShared = key.length > 0;
        for (int rank = 0; rank < letters.length; rank++) {
            RankLetter letter = new RankLetter(rank, "its recovery", letters[rank]);
            meetings[rank] =
                    listener == null ? null : SplitRendezvous.of(letter, rank == self ? listener : null, group);
            String itsName = letter.text("a name");
            first = rank == 0 ? itsName : first;
            isShared &= Arrays.equals(letter.sized("a place"), key);
            letter.end();
        }
        id = first;
        number = descent == null ? 0 : descent.number;
        origins = descent == null ? IntStream.range(0, group.size()).toArray() : descent.origins;
        placeKey = descent != null ? descent.place : isShared ? itsKey : "";
        if (!placeKey.isEmpty() && !(isShared && placeKey.equals(itsKey))) {
            throw new MillraceException("rank " + self + ": the directory of the decisions, " + options.place()
                    + ", is no longer the one of the first group (MILLRACE_DECISION_DIR)");
        }
        place = placeKey.isEmpty() ? null : new DecisionPlace(Objects.requireNonNull(options.place()), id);
        members.set(0, group.size());
    }

    /** Opens the recovery of a group. Collective. */
    public static Recovery open(ControlPlane group) {
        ServerSocketChannel listener = null;
        try {
            if (group.size() > 1) {
                listener = Rendezvous.bind(new InetSocketAddress(group.address(), 0), "for a recovery");
            }
            return new Recovery(group, listener);
        } catch (IOException | RuntimeException e) {
            if (listener != null) {
                ListeningPorts.close(listener);
            }
            throw e instanceof RuntimeException unchecked ? unchecked
                    : new MillraceException("rank " + group.rank() + " cannot listen for a recovery: " + e, e);
        }
    }

    /**
     * Makes a new group of the living ranks. Collective for them. Called once.
     *
     * @param allowed  time to wait for a rank that is not gone, and for the completion of the new group. Each further
     *                 wait takes at most half of this time, or {@link #MIN_WAIT}
     * @param begun    value of {@link System#nanoTime()} from which the time counts
     * @param assemble completes this rank's part of the new group. If it fails, the remaining ranks decide again
     * @return result of {@code assemble}
     * @throws ExcludedException if other ranks continue without this rank, or may do so
     */
    public <T> T shrink(Duration allowed, long begun, Function<ControlPlane, T> assemble) {
        Deadline deadline = Deadline.since(begun, allowed);
        MillraceException failed = null;
        while (true) {
            Decision decision = decide(Kind.SHRINK, true, deadline);
            if (decision.kind != Kind.SHRINK) {
                continue;
            }
            List<Integer> ranks = members.stream().filter(rank -> decision.members.get(origins[rank])).boxed().toList();
            if (failed != null && ranks.size() == members.cardinality()) {
                throw failed;
            }
            members.clear();
            ranks.forEach(members::set);
            try {
                return assemble.apply(join(decision, ranks, later(deadline)));
            } catch (MillraceException e) {
                stopIfInterrupted(e);
                stopIfClosed();
                LOG.info("rank {}: the new group of {} ranks was not completed: {}", self, ranks.size(),
                        e.getMessage());
                failed = e;
            }
        }
    }

    /**
     * Returns whether all living ranks have passed true, with the same result on each. Collective for them. Waits at
     * most for the deadline of the join.
     *
     * @throws DeadlineException if a living rank does not call this method in time
     * @throws ExcludedException if other ranks continue without this rank, or if the living ranks are no majority and
     *                           there is no place to decide
     * @throws MismatchException if other ranks have called shrink. The next call of shrink joins them
     */
    public boolean agree(boolean value) {
        return decide(Kind.AGREE, value, Deadline.in(options.deadline()).of("MILLRACE_CONNECT_DEADLINE")).flag;
    }

    private Decision decide(Kind kind, boolean flag, Deadline deadline) {
        byte[] told = kept;
        while (told == null && coordinator < self) {
            told = members.get(coordinator) ? ask(kind, flag, later(deadline)) : null;
            if (told == null) {
                leaveCoordinator();
                coordinator++;
            }
        }
        try {
            told = told == null ? coordinate(kind, flag, later(deadline)) : told;
        } catch (DeadlineException | ExcludedException e) {
            ControlPlane at = star;
            if (kind == Kind.AGREE && at != null) {
                int late = e.peer().orElse(CommunicatorException.NO_RANK);
                byte[] failure = ByteBuffer.allocate(Integer.BYTES).putInt(late).array();
                IntStream.range(1, at.size()).forEach(to -> at.send(to, FAILED | number, failure));
            }
            throw e;
        }
        Decision decision = Decision.decode(told);
        kept = decision.kind == Kind.SHRINK ? told : null;
        if (kept != null && !decision.members.get(origins[self])) {
            close();
            throw new ExcludedException("rank " + self + ": the other ranks continue without it, because it did not"
                    + " call shrink within their deadline", self);
        }
        if (kept != null && kind == Kind.AGREE) {
            throw new MismatchException("rank " + self + ": it called agree, and other ranks have called shrink", self,
                    CommunicatorException.NO_RANK, null, null);
        }
        kept = null;
        last = told;
        number++;
        ballot = -1;
        accepted = NOTHING;
        return decision;
    }

    /**
     * Returns the deadline of one more wait. If most of the time has passed, the wait may take half of the time again,
     * and at least {@link #MIN_WAIT}.
     */
    private static Deadline later(Deadline deadline) {
        Duration half = deadline.allowed().dividedBy(2);
        return deadline.remainingNanos() > half.toNanos() ? deadline
                : Deadline.in(half.compareTo(MIN_WAIT) < 0 ? MIN_WAIT : half).of(deadline.setting());
    }

    /** Returns the control plane of the current coordinator. */
    private ControlPlane star(Deadline deadline) {
        ControlPlane at = star;
        if (at == null) {
            at = ControlPlane.meet(meetings[coordinator], self - coordinator, group.size(), deadline, options);
            star = at;
            stopIfClosed();
        }
        return at;
    }

    private void leaveCoordinator() {
        ControlPlane at = star;
        if (at != null) {
            at.drop();
            star = null;
        }
    }

    /** Asks the coordinator for the decision. Returns null if the coordinator is gone, or late for a new group. */
    private byte @Nullable [] ask(Kind kind, boolean flag, Deadline deadline) {
        try {
            ControlPlane at = star(deadline);
            at.receive(0, FAILED | number); // removes the failure of an earlier call
            at.send(0, requestTag(kind, number), new Request(flag, ballot, accepted).encode());
            Deadline until = deadline;
            Answer told;
            while ((told = at.await(() -> next(at), until)) != null) {
                if (told.tag == (PROPOSAL | number)) {
                    ballot = coordinator;
                    accepted = told.bytes;
                    at.send(0, ACCEPTANCE | number, NOTHING);
                } else if (told.tag == (FAILED | number) && kind == Kind.AGREE) {
                    throw failed(new RankLetter(coordinator, "a failure", told.bytes).number());
                } else if (told == GONE || told.tag == (DECISION | number)) {
                    break;
                }
                until = later(deadline);
            }
            stopIfClosed();
            if (told == null) {
                throw new DeadlineException("rank " + self + ": rank " + coordinator + " has not taken part in the"
                        + " agreement within " + deadline, self, coordinator, null, null);
            }
            return told == GONE ? null : told.bytes;
        } catch (MillraceException e) {
            stopIfInterrupted(e);
            stopIfClosed();
            if (kind == Kind.AGREE && (e instanceof DeadlineException || e instanceof ExcludedException)) {
                throw e;
            }
            LOG.debug("rank {} continues without rank {}", self, coordinator, e);
            return null;
        }
    }

    /** Returns the next event at the coordinator; null if there is none. */
    private @Nullable Answer next(ControlPlane at) {
        for (long tag : new long[] {DECISION | number, PROPOSAL | number, FAILED | number, WAITING}) {
            byte[] bytes = at.receive(0, tag);
            if (bytes != null) {
                return new Answer(tag, bytes);
            }
        }
        return at.isGone(0) ? GONE : null;
    }

    /** Returns the coordinator's exception. {@code late} is the absent rank, or -1 if there is no majority. */
    private CommunicatorException failed(int late) {
        String what = "rank " + self + ": the agreement failed at rank " + coordinator + ": ";
        return late < 0 ? new ExcludedException(what + "the living ranks are no majority", self)
                : new DeadlineException(what + "rank " + late + " has not taken part in time", self, late, null, null);
    }

    /** Makes the decision with the members that ask this rank. */
    private byte[] coordinate(Kind kind, boolean flag, Deadline deadline) {
        BitSet awaited = (BitSet) members.clone();
        awaited.clear(0, self + 1);
        Request[] requests = new Request[group.size()];
        requests[self] = new Request(flag, ballot, accepted);
        ControlPlane at = awaited.isEmpty() ? null : star(deadline);
        Duration pause = MIN_PAUSE;
        boolean isDecided = place != null && Files.exists(place.file(number));
        while (!awaited.isEmpty() && !deadline.expired() && !isDecided) {
            at.await(() -> take(at, requestTag(kind, number), awaited, requests), deadline.orIn(pause));
            stopIfClosed();
            remove(awaited, this::isGone);
            IntStream.range(self + 1, requests.length)
                    .filter(rank -> requests[rank] != null)
                    .forEach(rank -> at.send(rank - self, WAITING, NOTHING));
            // An earlier coordinator may have told only some ranks of its decision.
            IntStream.range(1, last == null ? 1 : at.size())
                    .filter(to -> Stream.of(Kind.values())
                            .anyMatch(each -> at.receive(to, requestTag(each, number - 1)) != null))
                    .forEach(to -> at.send(to, DECISION | number - 1, last));
            Duration most = deadline.allowed().dividedBy(CHECKS);
            pause = pause.multipliedBy(2);
            pause = Stream.of(pause, most, MAX_PAUSE).min(Comparator.naturalOrder()).get();
        }
        if (kind == Kind.AGREE && !awaited.isEmpty() && !isDecided) {
            throw new DeadlineException("rank " + self + ": ranks " + awaited + " have not taken part in the agreement"
                    + " within " + deadline, self, awaited.nextSetBit(0), null, null);
        }
        BitSet present = new BitSet();
        IntStream.range(self, requests.length)
                .filter(rank -> requests[rank] != null && (rank == self || !at.isGone(rank - self)))
                .forEach(present::set);
        Request latest = present.stream()
                .mapToObj(rank -> requests[rank])
                .max(Comparator.comparingInt(Request::ballot))
                .orElseThrow();
        byte[] proposal = latest.ballot >= 0 ? latest.proposal
                : propose(kind, present.stream().allMatch(rank -> requests[rank].flag), present);
        byte[] decision = place == null ? vote(at, present, proposal, later(deadline)) : place.decide(number, proposal);
        sendAll(at, present, DECISION | number, decision);
        return decision;
    }

    /** Reads the requests that have arrived. Returns null if requests of ranks that are not gone are missing. */
    private @Nullable BitSet take(ControlPlane at, long tag, BitSet awaited, Request[] requests) {
        remove(awaited, rank -> {
            byte[] request = at.receive(rank - self, tag);
            requests[rank] = request == null ? null : Request.decode(rank, request);
            return request != null || at.isGone(rank - self);
        });
        return awaited.isEmpty() ? awaited : null;
    }

    private static void remove(BitSet ranks, IntPredicate condition) {
        for (int rank = ranks.nextSetBit(0); rank >= 0; rank = ranks.nextSetBit(rank + 1)) {
            if (condition.test(rank)) {
                ranks.clear(rank);
            }
        }
    }

    private void sendAll(@Nullable ControlPlane at, BitSet ranks, long tag, byte[] data) {
        ranks.stream().filter(rank -> rank != self).forEach(rank -> at.send(rank - self, tag, data));
    }

    private byte[] propose(Kind kind, boolean flag, BitSet present) {
        BitSet of = new BitSet();
        present.stream().forEach(rank -> of.set(origins[rank]));
        byte[] meeting = NOTHING;
        if (kind == Kind.SHRINK && present.cardinality() > 1) {
            try {
                closeNext();
                next = Rendezvous.bind(new InetSocketAddress(group.address(), 0), "for the next group");
                meeting = Split.invitation((InetSocketAddress) next.getLocalAddress(), Secret.randomHex());
            } catch (IOException e) {
                throw new MillraceException("rank " + self + " cannot listen for the next group: " + e, e);
            }
        }
        return new Decision(kind, flag, of, meeting).encode();
    }

    /** Lets a majority of the group accept a proposal, which then is the decision. */
    private byte[] vote(@Nullable ControlPlane at, BitSet present, byte[] proposal, Deadline deadline) {
        BitSet votes = new BitSet();
        votes.set(self);
        if (isMajority(present)) {
            ballot = self;
            accepted = proposal;
            sendAll(at, present, PROPOSAL | number, proposal);
            if (at != null) {
                at.await(() -> {
                    present.stream()
                            .filter(rank -> rank != self && at.receive(rank - self, ACCEPTANCE | number) != null)
                            .forEach(votes::set);
                    return isMajority(votes) ? votes : null;
                }, deadline);
                stopIfClosed();
            }
        }
        if (!isMajority(votes)) {
            throw new ExcludedException("rank " + self + ": " + present.cardinality() + " of " + group.size()
                    + " ranks can agree, which is no majority. Fewer ranks can continue under millrace run, with a"
                    + " file: rendezvous, or with MILLRACE_DECISION_DIR, if all ranks are on one host", self);
        }
        return proposal;
    }

    private boolean isMajority(BitSet ranks) {
        return 2 * ranks.cardinality() > group.size();
    }

    /** Joins the group of a decision. */
    private ControlPlane join(Decision decision, List<Integer> ranks, Deadline deadline) {
        int rank = ranks.indexOf(self);
        SplitRendezvous meeting = null;
        if (ranks.size() > 1) {
            RankLetter letter = new RankLetter(ranks.getFirst(), "the next group", decision.meeting);
            meeting = SplitRendezvous.of(letter, rank == 0 ? next : null, group);
            letter.end();
            next = rank == 0 ? null : next;
        }
        closeNext();
        ControlPlane at = star;
        ControlPlane made = ControlPlane.join(meeting, rank, ranks.size(), options, deadline, begun -> {
            if (rank == 0) {
                at.onEvent(() -> failIfGone(at, ranks, begun));
            }
        });
        if (at != null) {
            at.onEvent(() -> {});
        }
        made.descendsBy(new Descent(id, number, ranks.stream().mapToInt(each -> origins[each]).toArray(), placeKey));
        return made;
    }

    /** Ends the wait for a rank that is lost before it joins the next group. */
    private void failIfGone(ControlPlane at, List<Integer> ranks, ControlPlane begun) {
        ranks.stream()
                .filter(rank -> rank != self && at.isGone(rank - self))
                .findFirst()
                .ifPresent(rank -> begun.fail(new PeerLostException("rank " + rank + " is lost during the recovery",
                        ranks.indexOf(self), ranks.indexOf(rank), null, null)));
    }

    /** Returns whether a rank certainly no longer listens. */
    private boolean isGone(int rank) {
        try (SocketChannel channel = SocketChannel.open()) {
            channel.socket().connect(meetings[rank].address(), CHECK_MILLIS);
            return false;
        } catch (ConnectException e) {
            return BootstrapClient.isRefusal(e);
        } catch (IOException e) {
            return false;
        }
    }

    private static long requestTag(Kind kind, int number) {
        return REQUEST | (long) kind.ordinal() << KIND_SHIFT | number;
    }

    private void stopIfClosed() {
        if (closed) {
            leaveCoordinator();
            throw new AbortedException("rank " + self + " has closed the communicator during the recovery", self,
                    CommunicatorException.NO_RANK, null, null);
        }
    }

    private static void stopIfInterrupted(MillraceException e) {
        if (Thread.currentThread().isInterrupted()) {
            throw e;
        }
    }

    private void closeNext() {
        if (next != null) {
            ListeningPorts.close(next);
            next = null;
        }
    }

    /** Returns whether this rank has left. Safe from any thread. */
    public boolean isClosed() {
        return closed;
    }

    /** Leaves the agreement. From now on, this rank counts as gone. Safe from any thread, and may be called twice. */
    @Override
    public void close() {
        closed = true;
        ControlPlane at = star;
        if (at != null && at.rank() > 0) {
            at.drop();
        } else if (at != null) {
            at.close(); // sends the decision first
        }
        closeNext();
        if (listener != null) {
            ListeningPorts.close(listener);
        }
    }
}
