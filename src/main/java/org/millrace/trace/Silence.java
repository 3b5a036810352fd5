package org.millrace.trace;

import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TracedCommunicator.Operation;
import org.millrace.trace.Verdict.Cause;

/** A link over which nothing comes any more, and a rank that has connections over it. */
record Silence(TracedRank of, TracedSilence link) {

    /** The longest of some ranks of this host; also of connections that have failed since, if {@code lost}. */
    static @Nullable Silence longest(List<TracedRank> ranks, boolean lost) {
        return ranks.stream()
                .flatMap(rank -> rank.process().silences().stream().map(link -> new Silence(rank, link)))
                .filter(each -> each.link.state() == TracedState.OPEN
                        || lost && each.link.state() == TracedState.FAILED)
                .min(Comparator.comparingLong(each -> each.link.since()))
                .orElse(null);
    }

    /** What to say of it; {@code hash} is 0 if no communicator stands still for it. */
    Verdict verdict(long hash, @Nullable Operation operation, long now, Set<Long> members) {
        boolean open = link.state() == TracedState.OPEN;
        return new Verdict(Cause.SILENT, hash, of, null, null, operation,
                "nothing comes back on the connection of " + of.words() + " with " + link.peer() + ", the first of "
                        + link.streams() + " over it",
                link, link.since(), Duration.ofNanos((open ? now : link.closed()) - link.since()), members);
    }
}
