package org.millrace.bootstrap;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.time.Duration;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.AbortedException;
import org.millrace.Communicator;
import org.millrace.CommunicatorException;
import org.millrace.DeadlineException;
import org.millrace.ExcludedException;
import org.millrace.MillraceException;
import org.millrace.MismatchException;
import org.millrace.PeerLostException;
import org.millrace.bootstrap.Decision.Request;
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
 * <b>Messages.</b> The lowest rank that is not gone coordinates. The coordinator is rank 0 of a separate control plane,
 * which continues after the loss of members. A rank that loses its coordinator asks the next coordinator, and never
 * returns to a lower rank. All members of a coordinator therefore have higher ranks.
 *
 * <pre>
 *   member                                coordinator
 *     Request {flag, accepted proposal}    ─▶  one from each rank that is not gone, until the deadline
 *     ◀─  Waiting                              at intervals, so that the member waits longer than the coordinator
 *     ◀─  Proposal {decision}                  only without a place: an accepted or a new proposal
 *     Acceptance                           ─▶  from a majority of the group
 *     ◀─  Decision {decision}                  or Failed, if agree fails at the coordinator
 * </pre>
 *
 * <b>Uniqueness.</b> With a {@link DecisionPlace}, the first proposal there is the decision. Without a decision place,
 * the ranks make a Paxos agreement, and each coordinator is a ballot. A majority of the group must send requests to the
 * coordinator. If the requests contain accepted proposals, the coordinator adopts the proposal of the highest earlier
 * coordinator. A majority of the group must then accept the coordinator's proposal.
 *
 * <p>
 * <b>Completion.</b> Once a member has completed its part of a new group, it asks for the next decision of the old
 * group. If all members have completed their parts, this decision states that the group is complete. Otherwise the
 * decision has the members of a next group. Therefore either all living members get the same new group, or no member
 * gets it. The decisions of a complete group have higher numbers than the decisions of the previous group.
 *
 * <p>
 * One thread at a time calls {@link #shrink} and {@link #agree}. {@link #close} ends the calls of other threads.
 */
public final class Recovery implements AutoCloseable {

    /**
     * Origin of a group. A recovery makes a group from another group, and all these groups descend from a first group.
     *
     * @param id         text that identifies the first group
     * @param number     number of the next decision
     * @param origins    number of each rank in the first group
     * @param place      key of the place of the decisions; empty if a majority decides
     * @param deadline   deadline of all collective calls before the completion; null after the completion
     * @param completion decides with all members that the group is complete; throws if it is not
     */
    record Descent(String id, int number, int[] origins, String place, @Nullable Deadline deadline,
            Runnable completion) {

        /** Returns the origin of the complete group. This origin does not refer to the earlier group. */
        Descent completed() {
            return new Descent(id, number, origins, place, null, () -> {});
        }
    }

    /**
     * Kinds of messages between a coordinator and its members, and a constant for the loss of a coordinator. The
     * ordinal of a constant is sent over the network. The first two constants are requests, and also the kinds of a
     * decision.
     */
    enum Mail {
        AGREE, SHRINK, PROPOSAL, ACCEPTANCE, DECISION, FAILED, WAITING, GONE;

        /** Returns the tag of a message of this kind about the decision with the given number. */
        long tag(int number) {
            return (long) ordinal() << Integer.SIZE | number;
        }
    }

    private record Event(Mail mail, byte[] data) {
    }

    private static final Logger LOG = LogManager.getLogger(Recovery.class);
    private static final byte[] NOTHING = {};
    private static final List<Mail> ANSWERS = List.of(Mail.DECISION, Mail.PROPOSAL, Mail.FAILED, Mail.WAITING);
    /**
     * Minimum duration of each wait for ranks, except the first wait. Ranks notice a failure at different times, and
     * the set-up or the release of a communicator may take seconds where cores are scarce.
     */
    private static final Duration MIN_WAIT = Duration.ofSeconds(5);
    /** Maximum number of attempts to complete the same group. */
    private static final int MAX_ATTEMPTS = 2;

    private final ControlPlane group;
    private final int self;
    private final JoinOptions options;
    /** Listener of this rank; null in a group of one rank, which no other rank can ask. */
    private final @Nullable ServerSocketChannel listener;
    /** Meeting place of each coordinator and its members, by the coordinator's rank. */
    final @Nullable SplitRendezvous[] meetings;
    private final String id;
    private final int[] origins;
    /** Key of the place; empty if a majority decides. A group and its descendants decide in the same way. */
    private final String placeKey;
    /** Place of the decisions; null if only a majority decides. */
    final @Nullable DecisionPlace place;
    /** Ranks that take part in the next decision. */
    private final BitSet members = new BitSet();
    /** Lower ranks that were late as coordinators. They may be alive and decide without this rank. */
    private final BitSet late = new BitSet();
    private int number;
    /** Number of calls of {@link #agree} since the last decision. */
    private int calls;
    /** Decision that the next call of {@link #shrink} applies; null if that call has to ask for a decision. */
    private @Nullable Decision pending;
    /** Most recent decision, kept for ranks that have missed it; null before the first decision. */
    private byte @Nullable [] last;
    private int coordinator;
    /** Rank of the coordinator whose proposal for the next decision this rank has accepted; -1 if none. */
    private int ballot = -1;
    /** Proposal that this rank has accepted for the next decision; empty if none. */
    private byte[] accepted = NOTHING;
    /** Listener of the next group; null unless this rank is the first rank of the next group. */
    private @Nullable ServerSocketChannel next;
    /** Control plane of the current coordinator and its members; null until it is needed. */
    private volatile @Nullable ControlPlane star;
    private volatile boolean closed;

    private Recovery(ControlPlane group, @Nullable ServerSocketChannel listener) throws IOException {
        this.group = group;
        this.self = group.rank();
        this.options = group.options().ofOneRun();
        this.listener = listener;
        this.meetings = new SplitRendezvous[group.size()];
        Descent descent = group.descent();
        String itsKey = options.place() == null ? "" : options.place().key();
        byte[][] letters = group.allGather(new LetterWriter().text(descent == null ? Secret.randomHex() : descent.id)
                .text(itsKey)
                .sized(listener == null ? NOTHING : Split.invitation(listener))
                .bytes());
        id = new RankLetter(0, "its recovery", letters[0]).text("a name");
        boolean isShared = !itsKey.isEmpty();
        for (int rank = 0; rank < letters.length; rank++) {
            RankLetter letter = new RankLetter(rank, "its recovery", letters[rank]);
            letter.text("a name");
            isShared &= letter.text("a place").equals(itsKey);
            byte[] invitation = letter.sized("an invitation");
            meetings[rank] = listener == null ? null
                    : SplitRendezvous.of(rank, invitation, rank == self ? listener : null, group);
            letter.end();
        }
        number = descent == null ? 0 : descent.number;
        origins = descent == null ? IntStream.range(0, group.size()).toArray() : descent.origins;
        placeKey = descent != null ? descent.place : isShared ? itsKey : "";
        if (!placeKey.isEmpty() && !(isShared && placeKey.equals(itsKey))) {
            throw new MillraceException("rank " + self + ": the directory of the decisions, " + options.place()
                    + ", is no longer the one of the first group (MILLRACE_DECISION_DIR)");
        }
        place = placeKey.isEmpty() ? null : new DecisionPlace(Objects.requireNonNull(options.place()).directory(), id);
        members.set(0, group.size());
    }

    /** Opens the recovery of a group. Collective. */
    public static Recovery open(ControlPlane group) {
        try {
            ServerSocketChannel listener = group.size() == 1 ? null
                    : Rendezvous.bind(new InetSocketAddress(group.address(), 0), "recovery", "");
            try {
                return new Recovery(group, listener);
            } catch (IOException | RuntimeException e) {
                close(listener);
                throw e;
            }
        } catch (IOException e) {
            throw new MillraceException("rank " + group.rank() + " cannot listen for a recovery: " + e, e);
        }
    }

    /**
     * Makes a new group of the living ranks. All living ranks call this method, once on each rank.
     *
     * @param allowed  deadline of {@link Communicator#shrink(Duration)}. The comment of that method states the time of
     *                 each wait. In two cases, the next wait has the whole time again: a coordinator was late, or fewer
     *                 than half of the living ranks have asked this rank
     * @param begun    value of {@link System#nanoTime()} at which the time of {@code allowed} begins
     * @param assemble completes this rank's part of the new group, and calls {@link ControlPlane#complete} as the last
     *                 step that may fail. If a member fails, the remaining ranks decide again
     * @return result of {@code assemble}
     * @throws ExcludedException     if other ranks continue or may continue without this rank
     * @throws CommunicatorException if two attempts to complete the same group failed. The peer is the rank that caused
     *                               the failure, as numbered in this group
     */
    public <T> T shrink(Duration allowed, long begun, Function<ControlPlane, T> assemble) {
        Deadline deadline = Deadline.since(begun, allowed);
        MillraceException failed = null;
        int attempts = 0;
        while (true) {
            Decision decision = requireMember(pending == null ? decide(Mail.SHRINK, false, deadline) : pending);
            pending = null;
            if (decision.kind() != Mail.SHRINK) {
                continue;
            }
            if (decision.flag() && failed != null) {
                // This rank completed its part of the group, and later released this part. The other members keep the
                // group.
                close();
                throw failed;
            }
            LOG.info("rank {}: the members of the next group are {}", self, decision.members());
            List<Integer> ranks =
                    members.stream().filter(rank -> decision.members().get(origins[rank])).boxed().toList();
            attempts = ranks.size() == members.cardinality() ? attempts + 1 : 1;
            if (failed != null && attempts > MAX_ATTEMPTS) {
                throw failed;
            }
            members.clear();
            ranks.forEach(members::set);
            try {
                return assemble.apply(join(decision, ranks, deadline.again(MIN_WAIT).of("deadline of shrink")));
            } catch (MillraceException e) {
                stopIfInterrupted(e);
                if (closed && e instanceof ExcludedException) {
                    throw e;
                }
                stopIfClosed();
                failed = incomplete(ranks, e);
                LOG.info("{}", failed.getMessage());
            }
        }
    }

    /**
     * Decides with the other members whether the new group is complete.
     *
     * @throws CommunicatorException if the new group is not complete; the decision then has the members of the next
     *                               group
     */
    private void complete(ControlPlane made, List<Integer> ranks, Deadline deadline) {
        try {
            // A member that cannot complete its part asks for this decision only after the deadline.
            pending = requireMember(decide(Mail.SHRINK, true, deadline.plus(MIN_WAIT)));
        } catch (ExcludedException e) {
            if (closed) {
                throw e;
            }
            // The living ranks do not form a majority of the old group. The other ranks may have completed the new
            // group, and only a majority of the new group can continue. This rank must therefore remain in the new
            // group.
            return;
        }
        if (pending.kind() != Mail.SHRINK || !pending.flag()) {
            RemoteFailure failure = made.failure();
            int missing = IntStream.range(0, ranks.size())
                    .filter(rank -> !pending.members().get(origins[ranks.get(rank)]))
                    .findFirst()
                    .orElse(CommunicatorException.NO_RANK);
            throw failure != null ? failure.exception(made.rank())
                    : new PeerLostException("a member has not completed its part", made.rank(), missing, null, null);
        }
    }

    /** Returns the exception of a group that was not completed, with ranks as numbered in the failed group. */
    private MillraceException incomplete(List<Integer> ranks, MillraceException e) {
        RemoteFailure failure = RemoteFailure.of(self, e);
        int peer = failure.peer() < 0 ? CommunicatorException.NO_RANK : ranks.get(failure.peer());
        return failure.kind()
                .exception(
                        "rank " + self + ": the new group of ranks " + ranks + " was not completed"
                                + (peer < 0 ? ": " : " because of rank " + peer + ": ") + e.getMessage(),
                        self, peer, null);
    }

    /**
     * Returns whether all living ranks have passed true. All living ranks call this method and get the same result.
     * Waits at most as long as the deadline of the join allows.
     *
     * @throws CommunicatorException as {@link Communicator#agree} does
     */
    public boolean agree(boolean value) {
        Deadline deadline = Deadline.in(options.deadline()).of("MILLRACE_CONNECT_DEADLINE");
        while (pending == null) {
            int call = ++calls;
            Decision decision = decide(Mail.AGREE, value, deadline);
            if (decision.kind() == Mail.SHRINK) {
                pending = decision;
            } else if (decision.call() >= call) {
                return decision.flag();
            }
            // A lower number means that the decision is about an earlier call, which failed on this rank. This rank
            // then asks again, because this rank's present call matches the next call of the other ranks.
        }
        requireMember(pending);
        throw new MismatchException("rank " + self + ": it called agree, and other ranks have called shrink", self,
                CommunicatorException.NO_RANK, null, null);
    }

    /** Returns the next decision, which this rank asks for or makes. */
    private Decision decide(Mail kind, boolean flag, Deadline deadline) {
        byte[] told = null;
        while (told == null && coordinator < self) {
            Deadline wait = deadline.extended(MIN_WAIT);
            told = members.get(coordinator) ? ask(kind, flag, wait) : null;
            if (told == null) {
                if (wait.expired()) {
                    late.set(coordinator);
                    // The coordinator was late. Another rank may have asked it shortly before this rank's deadline.
                    // That rank asks this rank only after its own deadline, so the wait for requests gets a new
                    // deadline.
                    deadline = deadline.again(MIN_WAIT);
                }
                leaveCoordinator();
                coordinator++;
            }
        }
        try {
            told = told == null ? coordinate(kind, flag, deadline.extended(MIN_WAIT)) : told;
        } catch (DeadlineException | ExcludedException e) {
            ControlPlane at = star;
            if (kind == Mail.AGREE && at != null) {
                byte[] failure = new LetterWriter().number(e.peer().orElse(CommunicatorException.NO_RANK)).bytes();
                IntStream.range(1, at.size()).forEach(to -> at.send(to, Mail.FAILED.tag(number), failure));
            }
            throw e;
        }
        Decision decision = Decision.decode(told);
        last = new Decision(decision.kind(), decision.flag(), decision.call(), decision.members()).encode();
        number++;
        calls = 0;
        ballot = -1;
        accepted = NOTHING;
        return decision;
    }

    /** Throws if a decision excludes this rank. Later calls throw, too. */
    private Decision requireMember(Decision decision) {
        if (decision.kind() == Mail.SHRINK && !decision.members().get(origins[self])) {
            pending = decision;
            close();
            throw new ExcludedException("rank " + self + ": the other ranks continue without it, because it was"
                    + " not with them when they decided", self);
        }
        return decision;
    }

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

    /**
     * Asks the coordinator for the decision. Returns null if the coordinator is gone. If the coordinator is late,
     * returns null for {@link #shrink}, and throws for {@link #agree}.
     */
    private byte @Nullable [] ask(Mail kind, boolean flag, Deadline deadline) {
        try {
            ControlPlane at = star(deadline);
            at.receive(0, Mail.FAILED.tag(number)); // removes a failure message that an earlier call did not read
            at.send(0, kind.tag(number), request(kind, flag).encode());
            for (Deadline until = deadline;; until = deadline.extended(MIN_WAIT)) {
                Event event = at.await(() -> next(at), until);
                stopIfClosed();
                if (event == null) {
                    throw new DeadlineException("rank " + self + ": rank " + coordinator + " has not taken part in the"
                            + " agreement within " + deadline, self, coordinator, null, null);
                }
                if (event.mail == Mail.PROPOSAL) {
                    ballot = coordinator;
                    accepted = event.data;
                    at.send(0, Mail.ACCEPTANCE.tag(number), NOTHING);
                } else if (event.mail == Mail.FAILED && kind == Mail.AGREE) {
                    throw failed(new RankLetter(coordinator, "a failure", event.data).number());
                } else if (event.mail == Mail.DECISION || event.mail == Mail.GONE) {
                    return event.mail == Mail.GONE ? null : event.data;
                }
            }
        } catch (MillraceException e) {
            stopIfInterrupted(e);
            stopIfClosed();
            if (kind == Mail.AGREE && (e instanceof DeadlineException || e instanceof ExcludedException)) {
                throw e;
            }
            LOG.debug("rank {} continues without rank {}", self, coordinator, e);
            return null;
        }
    }

    /**
     * Returns the next message of the coordinator, or {@link Mail#GONE} if the coordinator is lost; null if it is not
     * lost and has sent no message.
     */
    private @Nullable Event next(ControlPlane at) {
        for (Mail mail : ANSWERS) {
            byte[] data = at.receive(0, mail.tag(number));
            if (data != null) {
                return new Event(mail, data);
            }
        }
        return at.isGone(0) ? new Event(Mail.GONE, NOTHING) : null;
    }

    /**
     * Returns the exception for a failure that the coordinator has reported. {@code late} is the absent rank; -1 if the
     * living ranks do not form a majority.
     */
    private CommunicatorException failed(int late) {
        String what = "rank " + self + ": the agreement failed at rank " + coordinator + ": ";
        return late < 0 ? new ExcludedException(what + "the living ranks are no majority", self)
                : new DeadlineException(what + "rank " + late + " has not taken part in time", self, late, null, null);
    }

    private Request request(Mail kind, boolean flag) {
        return new Request(flag, kind == Mail.AGREE ? calls : 0, ballot, accepted);
    }

    /** Makes the decision with the members that ask this rank. */
    private byte[] coordinate(Mail kind, boolean flag, Deadline deadline) {
        late.and(members);
        BitSet living = (BitSet) members.clone();
        living.clear(0, self);
        ControlPlane at = living.cardinality() == 1 && late.isEmpty() ? null : star(deadline);
        Requests requests = new Requests(self, request(kind, flag), kind, number, at, living, group.size());
        BitSet present = requests.await(meetings, last, this::isDecided, deadline);
        if (kind == Mail.AGREE && !present.equals(living) && !isDecided()) {
            living.andNot(present);
            throw new DeadlineException("rank " + self + ": ranks " + living + " have not taken part in the agreement"
                    + " within " + deadline, self, living.nextSetBit(0), null, null);
        }
        living.or(late);
        if (place != null && 2 * present.cardinality() < living.cardinality()) {
            // Most living ranks have not asked this rank. They may have asked another coordinator. This rank waits for
            // their requests once more, for the whole duration of the deadline.
            present = requests.await(meetings, last, this::isDecided, deadline.again(MIN_WAIT));
        }
        stopIfClosed();
        byte[] proposal = requests.proposal(present, members, origins);
        byte[] decision = place == null ? vote(at, present, proposal, deadline.extended(MIN_WAIT))
                : place.decide(number, proposal);
        BitSet invited = Decision.decode(decision).members();
        byte[] invitation = invite(Decision.decode(decision));
        others(present).forEach(rank -> at.send(rank - self, Mail.DECISION.tag(number),
                invited.get(origins[rank]) ? invitation : decision));
        return invitation;
    }

    /** Returns whether the decision exists already. Throws if this rank has closed the communicator. */
    private boolean isDecided() {
        stopIfClosed();
        return place != null && place.isDecided(number);
    }

    private IntStream others(BitSet ranks) {
        return ranks.stream().filter(rank -> rank != self);
    }

    /**
     * Returns a decision as bytes. If this rank is the first of the decided group, the bytes contain an invitation to
     * the group. Without an invitation, the group cannot be completed, and the ranks make another decision.
     */
    private byte[] invite(Decision decision) {
        BitSet of = decision.members();
        if (decision.kind() == Mail.SHRINK && !decision.flag() && of.cardinality() > 1
                && of.nextSetBit(0) == origins[self]) {
            try {
                close(next);
                next = Rendezvous.bind(new InetSocketAddress(group.address(), 0), "next group", "");
                return new Decision(decision.kind(), decision.flag(), 0, of, Split.invitation(next)).encode();
            } catch (IOException e) {
                throw new MillraceException("rank " + self + " cannot listen for the next group: " + e, e);
            }
        }
        return decision.encode();
    }

    /**
     * Asks the present members to accept a proposal. The proposal is the decision if a majority of the group accepts
     * it.
     */
    private byte[] vote(@Nullable ControlPlane at, BitSet present, byte[] proposal, Deadline deadline) {
        BitSet votes = new BitSet();
        votes.set(self);
        if (at != null && isMajority(present)) {
            ballot = self;
            accepted = proposal;
            others(present).forEach(rank -> at.send(rank - self, Mail.PROPOSAL.tag(number), proposal));
            at.await(() -> {
                IntStream.of(others(present).filter(rank -> at.isGone(rank - self)).toArray()).forEach(present::clear);
                others(present).filter(rank -> at.receive(rank - self, Mail.ACCEPTANCE.tag(number)) != null)
                        .forEach(votes::set);
                return isMajority(votes) || !isMajority(present) ? votes : null;
            }, deadline);
            stopIfClosed();
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

    private ControlPlane join(Decision decision, List<Integer> ranks, Deadline deadline) {
        int rank = ranks.indexOf(self);
        if (ranks.size() > 1 && decision.meeting().length == 0) {
            throw new PeerLostException("rank " + ranks.getFirst() + " did not invite it", rank, 0, null, null);
        }
        SplitRendezvous meeting = ranks.size() == 1 ? null
                : SplitRendezvous.of(ranks.getFirst(), decision.meeting(), rank == 0 ? next : null, group);
        if (rank != 0) {
            close(next);
        }
        next = null;
        ControlPlane at = star;
        ControlPlane made = ControlPlane.join(meeting, rank, ranks.size(), options, deadline, begun -> {
            if (rank == 0) {
                at.onEvent(() -> failIfGone(at, ranks, begun));
            }
        });
        if (at != null) {
            at.onEvent(() -> {});
        }
        // The next decision of this group is about the completion.
        made.descendsBy(new Descent(id, number + 1, ranks.stream().mapToInt(each -> origins[each]).toArray(), placeKey,
                deadline, () -> complete(made, ranks, deadline)));
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

    private static void close(@Nullable ServerSocketChannel listener) {
        if (listener != null) {
            ListeningPorts.close(listener);
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
            at.close(); // close() delivers the decision before it ends the connections
        }
        close(next);
        close(listener);
    }
}
