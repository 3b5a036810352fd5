package org.millrace.trace;

import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.Link.Sign;
import org.millrace.trace.TracedCommunicator.Operation;
import org.millrace.trace.TracedRank.ProcessState;
import org.millrace.trace.Verdict.Cause;

/** A communicator that possibly hangs, with the methods that all analyses share. */
class HangingGroup {

    /** Maximum time from the moment when a process gets a core again until the process continues, in nanoseconds. */
    private static final long MAX_LATE_NANOS = 1_000_000_000;

    final Links links;
    final Kernels kernels;
    final Duration quiet;

    /** @param quiet time without progress after which a connection counts as waiting */
    HangingGroup(Links links, Duration quiet) {
        this.links = links;
        this.kernels = new Kernels(links.members());
        this.quiet = quiet;
    }

    Verdict verdict(Cause cause, @Nullable TracedRank culprit, @Nullable TracedRank peer, @Nullable Link link,
            @Nullable Operation operation, String detail, Duration still) {
        long moved = links.gin().stream().mapToLong(each -> each.queue().lastChange()).reduce(lastChange(), Math::max);
        return new Verdict(cause, links.hash(), culprit, peer, link, operation, detail, null, null, moved, still,
                pids());
    }

    /** Makes the given checks in their order. Returns the first verdict; null if no check returns a verdict. */
    @SafeVarargs
    static @Nullable Verdict firstOf(Supplier<@Nullable Verdict>... questions) {
        for (Supplier<@Nullable Verdict> question : questions) {
            Verdict verdict = question.get();
            if (verdict != null) {
                return verdict;
            }
        }
        return null;
    }

    static @Nullable Link first(List<Link> links) {
        return links.isEmpty() ? null : links.getFirst();
    }

    /** Returns the first given link that begins or ends at this rank; null without such a link. */
    static @Nullable Link linkOf(TracedRank rank, List<Link> links) {
        return links.stream().filter(link -> link.from() == rank || link.to() == rank).findFirst().orElse(null);
    }

    static @Nullable TracedRank otherEnd(@Nullable Link link, TracedRank rank) {
        return link == null ? null : link.from() == rank ? link.to() : link.from();
    }

    Set<Long> pids() {
        return links.members()
                .stream()
                .map(member -> member.process().identity().pid())
                .collect(Collectors.toUnmodifiableSet());
    }

    /** Returns the nanoseconds since the last event on a connection; -1 if this time is shorter than {@link #quiet}. */
    long stillness(Link link) {
        long since = now() - link.lastChange();
        return since >= quiet.toNanos() ? since : -1;
    }

    /**
     * Returns the reference time of verdicts: the time when the first trace of a living process was read. A value that
     * is read later was the same at the reference time, unless it has changed since then. A change counts as progress.
     * Verdicts are therefore right for the reference time, even if the reading of all traces takes long. A process of
     * another host has another clock. For such a process, the last heartbeat is used instead of the time of the
     * reading.
     */
    long now() {
        List<TracedRank> alive =
                links.members().stream().filter(member -> member.state() != ProcessState.DEAD).toList();
        OptionalLong here =
                alive.stream().filter(TracedRank::isHere).mapToLong(member -> member.process().read()).min();
        OptionalLong elsewhere = alive.stream()
                .filter(member -> !member.isHere())
                .mapToLong(member -> member.process().heartbeat())
                .max();
        return LongStream.concat(here.stream(), elsewhere.stream())
                .max()
                .orElseGet(() -> links.members().getFirst().process().read());
    }

    /**
     * Returns whether all running processes had a core recently. If the result is false, a process may seem to hang
     * although it waits for a core, or for a process without a core. A process without a core also could not write its
     * state.
     */
    boolean hadCores() {
        return links.members()
                .stream()
                .filter(member -> member.state() == ProcessState.RUNNING)
                .allMatch(member -> now() - member.process().lastLate() >= lateNanos(quiet));
    }

    static long lateNanos(Duration quiet) {
        return Math.min(quiet.toNanos(), MAX_LATE_NANOS);
    }

    Duration still(List<Link> waiting) {
        return Duration.ofNanos(Math.max(0, waiting.stream().mapToLong(this::stillness).max().orElse(0)));
    }

    long lastChange() {
        return links.all().stream().mapToLong(Link::lastChange).reduce(kernels.lastChange(), Math::max);
    }

    /**
     * Returns a rank's operation: the first operation that has not ended, if the ends of operations are known, and the
     * last operation otherwise.
     */
    static @Nullable Operation operation(@Nullable TracedRank member) {
        return member == null || member.communicator() == null ? null : member.communicator().present();
    }

    static @Nullable Operation collective(TracedRank member, long sequence) {
        return member.communicator() == null ? null
                : member.communicator()
                        .last()
                        .stream()
                        .filter(each -> each.peer() < 0 && each.sequence() == sequence)
                        .findFirst()
                        .orElse(null);
    }

    @Nullable
    Verdict wire(List<Link> waiting) {
        Link oldest = waiting.stream()
                .filter(link -> link.sign() == Sign.ON_THE_WIRE)
                .max(Comparator.comparingLong(this::stillness))
                .orElse(null);
        return oldest == null ? null
                : verdict(Cause.WIRE, oldest.from(), oldest.to(), oldest, operation(oldest.from()),
                        oldest.network() + ", " + oldest.channelText() + ", step " + oldest.step()
                                + (oldest.from() == null || oldest.to() == null
                                        ? "; the other end is not visible from here, and its process may be stopped"
                                        : "; the receiving kernel has room for it"),
                        still(waiting));
    }

    /** Returns a connection with arrived data that the receiving kernel could take but does not take. */
    @Nullable
    Link root(List<Link> waiting) {
        return untaken(waiting).stream().filter(link -> !waitsItself(link)).findFirst().orElse(null);
    }

    static List<Link> untaken(List<Link> waiting) {
        return waiting.stream().filter(link -> link.sign() == Sign.NOT_CONSUMED).toList();
    }

    @Nullable
    Verdict notConsumed(List<Link> waiting, @Nullable Link found) {
        Link root = found == null ? untaken(waiting).stream().findFirst().orElse(null) : found;
        return root == null ? null
                : verdict(Cause.NOT_CONSUMED, root.to(), root.from(), root, operation(root.to()),
                        root.channelText() + ", step " + root.step() + ", which "
                                + (root.from() == null ? root.peerText() : root.from().shortly()) + " has sent",
                        still(waiting));
    }

    /**
     * Returns whether the kernel that should take the data of a connection is itself waiting, because another rank does
     * not take the kernel's result.
     */
    boolean waitsItself(Link link) {
        return link.to() == null || links.all()
                .stream()
                .anyMatch(next -> next.from() == link.to() && next.channel() == link.channel() && next.isFull()
                        && next.sign() == Sign.NOT_CONSUMED);
    }
}
