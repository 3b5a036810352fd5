package org.millrace.trace.why;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.reader.TracedCommunicator.Operation;
import org.millrace.trace.reader.TracedConnection;
import org.millrace.trace.reader.TracedProcess;
import org.millrace.trace.reader.TracedState;
import org.millrace.trace.why.Kernels.Missing;
import org.millrace.trace.why.Link.Sign;
import org.millrace.trace.why.Verdict.Cause;

/**
 * Finds what a communicator's ranks wait for. Where several things are wrong the one is named from which the others
 * follow: a process that is gone or stopped before a connection, a connection before a kernel. Of kernels that do not
 * take what has arrived the one is meant that could: one with no room to post what it would make of it waits itself,
 * for the next rank.
 */
public final class Hang {

    /** A process that had no core is given so long to go on. */
    private static final long MOST_LATE_NANOS = 1_000_000_000;

    private final Links links;
    private final Kernels kernels;
    private final Duration quiet;
    private final long hash;

    private Hang(long hash, Links links, Duration quiet) {
        this.hash = hash;
        this.links = links;
        this.kernels = new Kernels(links.members());
        this.quiet = quiet;
    }

    /** Verdicts on the processes of this host, by the states that their kernel tells. */
    public static List<Verdict> verdicts(List<TracedProcess> processes, Duration quiet) {
        return verdicts(processes, quiet, ProcessState::of);
    }

    /**
     * A verdict for each communicator in which something waits.
     *
     * @param processes all that have written down anything
     * @param quiet     for how long a connection has stood still that counts
     * @param states    of the processes
     */
    static List<Verdict> verdicts(List<TracedProcess> processes, Duration quiet,
            Function<TracedProcess, ProcessState> states) {
        List<Verdict> verdicts = new ArrayList<>();
        for (Links communicator : Links.of(processes, states)) {
            Verdict verdict = new Hang(communicator.hash(), communicator, quiet).verdict();
            if (verdict != null) {
                verdicts.add(verdict);
            }
        }
        return verdicts;
    }

    private Verdict verdict(Cause cause, @Nullable TracedRank culprit, @Nullable TracedRank peer, @Nullable Link link,
            @Nullable Operation operation, String detail, Duration still) {
        return new Verdict(cause, hash, culprit, peer, link, operation, detail, still,
                links.members()
                        .stream()
                        .map(member -> member.process().identity().pid())
                        .collect(Collectors.toUnmodifiableSet()));
    }

    private @Nullable Verdict verdict() {
        if (links.members().stream().allMatch(member -> member.state() == ProcessState.DEAD)) {
            return null;
        }
        Verdict verdict = gone();
        if (verdict != null) {
            return verdict;
        }
        List<Link> waiting =
                links.all().stream().filter(link -> link.sign() != Sign.NONE && stillness(link) >= 0).toList();
        boolean failed = links.members().stream().anyMatch(TracedRank::hasFailed);
        boolean stands = kernels.areTold() ? standsStill() : waitsInOperations();
        if (waiting.isEmpty() && !failed && !stands) {
            return null;
        }
        verdict = stopped(waiting);
        if (verdict == null) {
            verdict = disagreement(waiting);
        }
        if (verdict == null) {
            verdict = failed(waiting);
        }
        if (failed) { // its kernels have left, and what lies there is nobody's any more
            return verdict == null ? communicator() : verdict;
        }
        if (verdict != null) {
            return verdict;
        }
        return kernels.areTold() ? stands ? told(waiting) : null : untold(waiting);
    }

    /** Where it is known of each rank what its kernels are in. */
    private @Nullable Verdict told(List<Link> waiting) {
        Verdict verdict = inFunction();
        if (verdict == null) {
            verdict = missing();
        }
        if ((verdict == null || verdict.cause() == Cause.NOT_BEGUN) && links.members()
                .stream()
                .anyMatch(member -> member.waitsForCore(Math.min(quiet.toNanos(), MOST_LATE_NANOS)))) {
            return null;
        }
        if (verdict == null) {
            verdict = wire(waiting);
        }
        if (verdict == null) {
            verdict = outside();
        }
        return verdict == null ? notConsumed(waiting, root(waiting)) : verdict;
    }

    private @Nullable Verdict outside() {
        TracedRank rank = kernels.outsider();
        if (rank == null) {
            return null;
        }
        Link link = shows(rank, null);
        TracedRank peer = link == null ? null : link.from() == rank ? link.to() : link.from();
        return verdict(rank.hasPending() ? Cause.NOT_BEGUN : Cause.NOT_LAUNCHED, rank, peer, link, null,
                (rank.hasPending() ? "what is before it on its stream has not ended" : "; all others are in one")
                        + over(link, peer),
                Duration.ofNanos(now() - lastChange()));
    }

    private @Nullable Verdict untold(List<Link> waiting) {
        Verdict verdict = wire(waiting);
        return verdict == null ? kernel(waiting) : verdict;
    }

    /**
     * Whether somebody is in an operation, and nothing has moved in the communicator for long, though all had a core to
     * move and to write it down.
     */
    private boolean standsStill() {
        return links.members().stream().anyMatch(TracedRank::isInside) && now() - lastChange() >= quiet.toNanos()
                && links.members()
                        .stream()
                        .filter(member -> member.state() == ProcessState.RUNNING)
                        .allMatch(member -> now() - member.lastLate() >= Math.min(quiet.toNanos(), MOST_LATE_NANOS));
    }

    /** A rank whose kernels do not go on: what a stream has called does not return. */
    private @Nullable Verdict inFunction() {
        TracedRank stuck = links.members()
                .stream()
                .filter(member -> member.inFunction() > 0 && (member.isInside() || member.hasPending()))
                .max(Comparator.comparingLong(TracedRank::inFunction))
                .orElse(null);
        if (stuck == null) {
            return null;
        }
        Link link = shows(stuck, null);
        TracedRank peer = link == null ? null : link.from() == stuck ? link.to() : link.from();
        return verdict(Cause.NOT_CONSUMED, stuck, peer, link, operation(stuck),
                "a function that one of its streams has called does not return" + over(link, peer),
                Duration.ofNanos(stuck.inFunction()));
    }

    /** A rank that has not come to what others are in. */
    private @Nullable Verdict missing() {
        Missing missing = kernels.missing();
        if (missing == null) {
            return null;
        }
        Link link = shows(missing.rank(), missing.waiting());
        TracedRank peer = link == null ? missing.waiting() : link.from() == missing.rank() ? link.to() : link.from();
        return verdict(missing.enqueued() ? Cause.NOT_BEGUN : Cause.NOT_LAUNCHED, missing.rank(), peer, link,
                missing.operation(),
                (missing.enqueued() ? "what is before it on its stream has not ended" : last(missing))
                        + over(link, peer),
                Duration.ofNanos(now() - lastChange()));
    }

    private static String last(Missing missing) {
        return missing.operation().peer() >= 0 ? ""
                : missing.rank().lastCollective() < 0 ? "; it has launched none"
                        : "; the last that it has launched is #" + missing.rank().lastCollective();
    }

    /** The connection of a rank that shows best that another waits for it. */
    private @Nullable Link shows(TracedRank rank, @Nullable TracedRank waiting) {
        return links.all()
                .stream()
                .filter(link -> link.from() == rank && link.to() != null || link.to() == rank && link.from() != null)
                .min(Comparator.comparing((Link link) -> !link.joins(rank, waiting))
                        .thenComparing(link -> link.sign() == Sign.NONE)
                        .thenComparing(link -> link.to() != rank))
                .orElse(null);
    }

    private static String over(@Nullable Link link, @Nullable TracedRank peer) {
        return peer == null ? ""
                : "; " + peer.shortly() + " waits for it"
                        + (link == null ? "" : " (" + link.network() + ", " + link.channelText() + ")");
    }

    private long lastChange() {
        return links.all().stream().mapToLong(Link::lastChange).reduce(kernels.lastChange(), Math::max);
    }

    /** The first rank that failed, in its own words. */
    private @Nullable Verdict communicator() {
        TracedRank first = links.members()
                .stream()
                .filter(TracedRank::hasFailed)
                .min(Comparator.comparingLong(member -> Objects.requireNonNull(member.communicator()).closed()))
                .orElseThrow();
        long when = Objects.requireNonNull(first.communicator()).closed();
        if (now() - when < quiet.toNanos()) {
            return null; // others may have something better to say
        }
        String words = first.process()
                .messages()
                .stream()
                .filter(message -> message.time() - when >= 0)
                .findFirst()
                .map(message -> message.text())
                .orElse("it has not said why");
        return verdict(Cause.FAILED, first, null, null, operation(first), words, Duration.ZERO);
    }

    /** Nanoseconds since anything happened on a connection; negative while that is not long enough to count. */
    private long stillness(Link link) {
        long since = now() - link.lastChange();
        return since >= quiet.toNanos() ? since : -1;
    }

    /** By the clocks of those who live: what comes from another host has another clock, and its own last word. */
    private long now() {
        return links.members()
                .stream()
                .filter(member -> member.state() != ProcessState.DEAD && member.state() != ProcessState.STOPPED)
                .mapToLong(member -> member.state() == ProcessState.UNKNOWN ? member.process().heartbeat()
                        : member.process().read())
                .max()
                .orElseGet(() -> links.members().getFirst().process().read());
    }

    private Duration still(List<Link> waiting) {
        return waiting.stream()
                .mapToLong(this::stillness)
                .filter(nanos -> nanos >= 0)
                .max()
                .stream()
                .mapToObj(Duration::ofNanos)
                .findFirst()
                .orElse(Duration.ZERO);
    }

    private @Nullable Verdict gone() {
        TracedRank first = links.members()
                .stream()
                .filter(member -> member.state() == ProcessState.DEAD)
                .min(Comparator.comparingLong(member -> member.process().heartbeat()))
                .orElse(null);
        if (first == null) {
            return null;
        }
        Link link = links.all()
                .stream()
                .filter(each -> each.from() == first || each.to() == first)
                .findFirst()
                .orElse(null);
        TracedRank peer = link == null ? null : link.from() == first ? link.to() : link.from();
        String last = first.process().messages().isEmpty() ? "it has left without a word"
                : "its last words: " + first.process().messages().getLast().text();
        return verdict(Cause.GONE, first, peer, link, operation(first), last,
                Duration.ofNanos(Math.max(0, now() - first.process().heartbeat())));
    }

    private @Nullable Verdict stopped(List<Link> waiting) {
        for (TracedRank member : links.members()) {
            if (member.state() == ProcessState.STOPPED) {
                Link link = waiting.stream()
                        .filter(each -> each.from() == member || each.to() == member)
                        .findFirst()
                        .orElse(null);
                TracedRank peer = link == null ? null : link.from() == member ? link.to() : link.from();
                return verdict(Cause.STOPPED, member, peer, link, operation(member),
                        peer == null ? "the others wait for it" : peer.shortly() + " waits for it", still(waiting));
            }
        }
        return null;
    }

    private @Nullable Verdict failed(List<Link> waiting) {
        Link first = waiting.stream()
                .filter(link -> link.sign() == Sign.FAILED)
                .min(Comparator.comparingLong(Hang::failedAt))
                .orElse(null);
        if (first == null) {
            return null;
        }
        TracedConnection end = first.sender() != null && first.sender().state() == TracedState.FAILED ? first.sender()
                : Objects.requireNonNull(first.receiver());
        return verdict(Cause.CUT, first.from(), first.to(), first, operation(first.from()),
                end.identity().name() + ", after " + end.frames() + " frames and step " + end.done(), still(waiting));
    }

    private static long failedAt(Link link) {
        return Math.min(failedAt(link.sender()), failedAt(link.receiver()));
    }

    private static long failedAt(@Nullable TracedConnection end) {
        return end == null || end.state() != TracedState.FAILED ? Long.MAX_VALUE : end.closed();
    }

    /** Of each collective that all have enqueued: whoever is alone with what it says of it is wrong. */
    private @Nullable Verdict disagreement(List<Link> waiting) {
        List<TracedRank> told = links.members().stream().filter(TracedRank::tellsCollectives).toList();
        for (TracedRank member : told) {
            for (Operation mine : Objects.requireNonNull(member.communicator()).last()) {
                List<Operation> others = told.stream()
                        .filter(each -> each != member)
                        .map(each -> collective(each, mine.sequence()))
                        .filter(Objects::nonNull)
                        .toList();
                if (mine.peer() < 0 && !others.isEmpty() && others.stream().noneMatch(other -> agree(mine, other))
                        && (others.size() == 1 || agree(others.get(0), others.get(1)))) {
                    return verdict(Cause.DISAGREEMENT, member, null, waiting.isEmpty() ? null : waiting.getFirst(),
                            mine, "it has enqueued " + Verdict.words(mine) + ", and they have enqueued "
                                    + Verdict.words(others.getFirst()),
                            still(waiting));
                }
            }
        }
        return transfers(told, waiting);
    }

    /** Halves of one transfer that do not fit: the rank is named that is in most of these. */
    private @Nullable Verdict transfers(List<TracedRank> told, List<Link> waiting) {
        List<Mismatch> all = new ArrayList<>();
        for (TracedRank from : told) {
            for (Operation send : from.operations()) {
                TracedRank to = told.stream()
                        .filter(each -> each.rank() == send.peer() && each != from)
                        .findFirst()
                        .orElse(null);
                if (send.peer() >= 0 && send.sequence() >= 0 && send.name().equals("send") && to != null) {
                    to.operations()
                            .stream()
                            .filter(half -> half.peer() == from.rank() && half.name().equals("receive")
                                    && half.sequence() == send.sequence()
                                    && (half.count() != send.count() || half.type() != send.type()))
                            .forEach(half -> all.add(new Mismatch(from, send, to, half)));
                }
            }
        }
        TracedRank most = told.stream()
                .max(Comparator.comparingLong(rank -> all.stream().filter(each -> each.isOf(rank)).count()))
                .orElse(null);
        Mismatch first = all.stream().filter(each -> each.isOf(most)).findFirst().orElse(null);
        return first == null ? null
                : verdict(Cause.DISAGREEMENT, most, first.from == most ? first.to : first.from,
                        waiting.isEmpty() ? null : waiting.getFirst(), first.from == most ? first.send : first.receive,
                        first.from.shortly() + " has enqueued " + Verdict.words(first.send) + ", and "
                                + first.to.shortly() + " " + Verdict.words(first.receive),
                        still(waiting));
    }

    private record Mismatch(TracedRank from, Operation send, TracedRank to, Operation receive) {

        boolean isOf(@Nullable TracedRank rank) {
            return rank == from || rank == to;
        }
    }

    private static @Nullable Operation collective(TracedRank member, long sequence) {
        return member.communicator() == null ? null
                : member.communicator()
                        .last()
                        .stream()
                        .filter(each -> each.peer() < 0 && each.sequence() == sequence)
                        .findFirst()
                        .orElse(null);
    }

    private static boolean agree(Operation one, Operation other) {
        return one.name().equals(other.name()) && one.count() == other.count() && one.type() == other.type()
                && one.root() == other.root() && one.how().equals(other.how());
    }

    private @Nullable Verdict wire(List<Link> waiting) {
        Link oldest = waiting.stream()
                .filter(link -> link.sign() == Sign.ON_THE_WIRE)
                .max(Comparator.comparingLong(this::stillness))
                .orElse(null);
        return oldest == null ? null
                : verdict(Cause.WIRE, oldest.from(), oldest.to(), oldest, operation(oldest.from()),
                        oldest.network() + ", " + oldest.channelText() + ", step " + oldest.step()
                                + "; the receiving kernel has room for it",
                        still(waiting));
    }

    private @Nullable Verdict kernel(List<Link> waiting) {
        Link root = root(waiting);
        long newest = links.members().stream().mapToLong(TracedRank::lastCollective).max().orElse(-1);
        TracedRank behind = root != null && root.to() != null ? root.to() : hindmost(newest);
        if (behind != null && behind.tellsCollectives() && behind.lastCollective() < newest && hasDoneAll(behind)
                && (root == null || !isOfLaunched(root, behind))) {
            return notLaunched(behind, root, waiting);
        }
        return notConsumed(waiting, root);
    }

    /** What has arrived at a kernel that could take it, and does not. */
    private @Nullable Link root(List<Link> waiting) {
        return untaken(waiting).stream().filter(link -> !waitsItself(link)).findFirst().orElse(null);
    }

    private static List<Link> untaken(List<Link> waiting) {
        return waiting.stream().filter(link -> link.sign() == Sign.NOT_CONSUMED).toList();
    }

    private @Nullable Verdict notConsumed(List<Link> waiting, @Nullable Link found) {
        Link root = found == null ? untaken(waiting).stream().findFirst().orElse(null) : found;
        return root == null ? null
                : verdict(Cause.NOT_CONSUMED, root.to(), root.from(), root, operation(root.to()),
                        root.channelText() + ", step " + root.step() + ", which "
                                + (root.from() == null ? root.peerText() : root.from().shortly()) + " has sent",
                        still(waiting));
    }

    /**
     * Whether a rank's kernels have ended as far as can be seen: all ranks enqueue ahead of their kernels, and differ
     * in how far, so that one with less may be stuck in what it has. Where nobody tells of kernels, one that has posted
     * something since the last was enqueued is at least in the last.
     */
    private boolean hasDoneAll(TracedRank member) {
        if (member.communicator() == null || member.communicator().last().isEmpty()) {
            return true;
        }
        Operation last = member.communicator().last().getLast();
        if (last.started() != 0 || last.ended() != 0) {
            return last.ended() != 0;
        }
        return links.all()
                .stream()
                .filter(link -> link.from() == member && link.sender() != null)
                .mapToLong(link -> lastPosted(Objects.requireNonNull(link.sender())))
                .max()
                .stream()
                .allMatch(posted -> posted - last.enqueued() >= 0);
    }

    private static long lastPosted(TracedConnection sender) {
        return sender.last().isEmpty() ? sender.lastChange() : sender.last().getLast().taken();
    }

    /**
     * Whether what waits for a rank is surely part of what the rank has enqueued: it was sent before its sender had
     * enqueued any more than that.
     */
    private static boolean isOfLaunched(Link link, TracedRank receiver) {
        if (link.sender() == null || link.receiver() == null || link.from() == null) {
            return false;
        }
        long step = link.receiver().consumed();
        Operation next = collective(link.from(), receiver.lastCollective() + 1);
        if (next == null) {
            return link.from().lastCollective() <= receiver.lastCollective();
        }
        return link.sender()
                .last()
                .stream()
                .filter(frame -> frame.end() - step > 0)
                .findFirst()
                .stream()
                .anyMatch(frame -> frame.taken() - next.enqueued() < 0);
    }

    private Verdict notLaunched(TracedRank behind, @Nullable Link root, List<Link> waiting) {
        Operation missing = links.members()
                .stream()
                .map(member -> collective(member, behind.lastCollective() + 1))
                .filter(Objects::nonNull)
                .findFirst()
                .orElse(null);
        Link link = root != null ? root
                : waiting.stream()
                        .filter(each -> each.to() == behind || each.from() == behind)
                        .findFirst()
                        .orElse(null);
        long ahead = links.members().stream().filter(each -> each.lastCollective() > behind.lastCollective()).count();
        return verdict(Cause.NOT_LAUNCHED, behind, link == null ? null : link.to() == behind ? link.from() : link.to(),
                link, missing, "; " + ahead + (ahead == 1 ? " rank has" : " ranks have"), still(waiting));
    }

    /** The rank that has enqueued less than the others, if there is one. */
    private @Nullable TracedRank hindmost(long newest) {
        List<TracedRank> behind = links.members()
                .stream()
                .filter(member -> member.tellsCollectives() && member.lastCollective() < newest)
                .sorted(Comparator.comparingLong(TracedRank::lastCollective))
                .toList();
        return behind.isEmpty() || behind.size() > 1 && behind.get(0).lastCollective() == behind.get(1).lastCollective()
                && waitsSomewhere(behind.get(0)) ? null : behind.getFirst();
    }

    private boolean waitsSomewhere(TracedRank member) {
        return links.all().stream().anyMatch(link -> link.from() == member && link.isFull());
    }

    /** Whether the kernel that should take this waits for somebody who should take what it has made of it. */
    private boolean waitsItself(Link link) {
        Set<TracedRank> seen = new HashSet<>();
        return link.to() == null || links.all()
                .stream()
                .anyMatch(next -> next.from() == link.to() && next.channel() == link.channel() && next.isFull()
                        && next.sign() == Sign.NOT_CONSUMED && seen.add(next.from()));
    }

    /** Whether ranks differ in what they have enqueued, for long: then somebody waits without a mark in memory. */
    private boolean waitsInOperations() {
        long newest = Long.MIN_VALUE;
        long oldest = Long.MAX_VALUE;
        long last = Long.MIN_VALUE;
        for (TracedRank member : links.members()) {
            if (member.communicator() != null && member.tellsCollectives()) {
                newest = Math.max(newest, member.lastCollective());
                oldest = Math.min(oldest, member.lastCollective());
                for (Operation operation : member.communicator().last()) {
                    last = Math.max(last, operation.enqueued());
                }
            }
        }
        for (Link link : links.all()) {
            last = Math.max(last, link.lastChange());
        }
        return newest > oldest && now() - last >= quiet.toNanos();
    }

    /** What a rank is in: the first operation that has not ended, where that is known; else its last. */
    private static @Nullable Operation operation(@Nullable TracedRank member) {
        if (member == null || member.communicator() == null || member.communicator().last().isEmpty()) {
            return null;
        }
        List<Operation> last = member.communicator().last();
        boolean told = last.stream().anyMatch(each -> each.ended() != 0);
        return told ? last.stream().filter(each -> each.ended() == 0).findFirst().orElse(last.getLast())
                : last.getLast();
    }
}
