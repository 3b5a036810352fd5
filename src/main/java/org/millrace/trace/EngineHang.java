package org.millrace.trace;

import static java.util.stream.Collectors.joining;

import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.Kernels.Missing;
import org.millrace.trace.Link.Sign;
import org.millrace.trace.Verdict.Cause;

/** Analyzes a communicator with ranks that report the operations of their kernels, as the engine's ranks do. */
final class EngineHang extends HangingGroup {

    private static final int MAX_NAMED = 4;

    EngineHang(Links links, Duration quiet) {
        super(links, quiet);
    }

    /**
     * Returns whether a rank is in an operation, and the communicator has made no progress for long, although all
     * processes had a core. A process without a core makes no progress and cannot write its trace.
     */
    boolean isStalled() {
        return links.members().stream().anyMatch(TracedRank::isInside) && now() - lastChange() >= quiet.toNanos()
                && hadCores();
    }

    @Nullable
    Verdict find(List<Link> waiting) {
        Verdict verdict = firstOf(this::inFunction, this::missing);
        if ((verdict == null || verdict.cause() == Cause.NOT_BEGUN)
                && links.members().stream().anyMatch(member -> member.waitsForCore(lateNanos(quiet)))) {
            return null;
        }
        return verdict != null ? verdict
                : firstOf(() -> wire(waiting), this::outside, () -> notConsumed(waiting, root(waiting)),
                        this::elsewhere);
    }

    /**
     * Returns a verdict about a rank of this host that is in an operation with ranks of other hosts. Called last, if
     * the traces of this host do not show why the operation does not end.
     */
    private @Nullable Verdict elsewhere() {
        TracedRank rank = links.members().stream().filter(TracedRank::isInside).findFirst().orElse(null);
        List<Link> away = links.all()
                .stream()
                .filter(link -> rank != null
                        && (link.from() == rank && link.to() == null || link.to() == rank && link.from() == null))
                .toList();
        return away.isEmpty() ? null
                : verdict(Cause.ELSEWHERE, rank, null, away.getFirst(), operation(rank),
                        away.stream().map(Link::peerText).distinct().limit(MAX_NAMED).collect(joining(", "))
                                + "; whether they are late or stopped is not visible from here: run the command "
                                + "there, or give their traces with --from",
                        Duration.ofNanos(now() - lastChange()));
    }

    private @Nullable Verdict outside() {
        TracedRank rank = kernels.outsider();
        if (rank == null) {
            return null;
        }
        Link link = shows(rank, null);
        TracedRank peer = otherEnd(link, rank);
        return verdict(rank.hasPending() ? Cause.NOT_BEGUN : Cause.NOT_LAUNCHED, rank, peer, link,
                rank.hasPending() ? operation(rank) : kernels.waitedIn(rank),
                (rank.hasPending() ? "what is before it on its stream has not ended" : "; all others are in one")
                        + over(link, peer),
                Duration.ofNanos(now() - lastChange()));
    }

    /**
     * Returns a verdict about a rank with kernels that do not advance, because a host function of the rank's stream
     * does not return.
     */
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
        TracedRank peer = otherEnd(link, stuck);
        return verdict(Cause.NOT_CONSUMED, stuck, peer, link, operation(stuck),
                "a function that one of its streams has called does not return" + over(link, peer),
                Duration.ofNanos(stuck.inFunction()));
    }

    /** Returns a verdict about a rank that has not reached the operation that other ranks are in. */
    private @Nullable Verdict missing() {
        Missing missing = kernels.missing();
        if (missing == null) {
            return null;
        }
        Link link = shows(missing.rank(), missing.waiting());
        TracedRank peer = link == null ? missing.waiting() : otherEnd(link, missing.rank());
        return verdict(missing.enqueued() ? Cause.NOT_BEGUN : Cause.NOT_LAUNCHED, missing.rank(), peer, link,
                missing.enqueued() && !missing.rank().pending().isEmpty() ? missing.rank().pending().getFirst()
                        : missing.operation(),
                (missing.enqueued() ? "what is before it on its stream has not ended" : last(missing))
                        + over(link, peer),
                Duration.ofNanos(now() - lastChange()));
    }

    private static String last(Missing missing) {
        return missing.operation().peer() >= 0 ? ""
                : missing.rank().lastCollective() < 0 ? "; it has launched none"
                        : "; the last that it has launched is #" + missing.rank().lastCollective();
    }

    /**
     * Returns one of a rank's connections: the connection that shows most clearly that another rank waits for this
     * rank.
     */
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
}
