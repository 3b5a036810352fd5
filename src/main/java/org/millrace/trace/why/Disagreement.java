package org.millrace.trace.why;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.reader.TracedCommunicator.Operation;
import org.millrace.trace.why.Verdict.Cause;

/** Ranks that run different operations, or of different sizes. */
final class Disagreement extends HangingGroup {

    Disagreement(Links links, Duration quiet) {
        super(links, quiet);
    }

    /** Of each collective that all have enqueued: whoever is alone with what it says of it is wrong. */
    @Nullable
    Verdict disagreement(List<Link> waiting) {
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
        return transfers(links.members(), waiting);
    }

    /** Halves of one transfer that do not fit: the rank is named that is in most of these. */
    private @Nullable Verdict transfers(List<TracedRank> members, List<Link> waiting) {
        List<Mismatch> all = new ArrayList<>();
        for (TracedRank from : members) {
            for (Operation send : from.operations()) {
                TracedRank to = members.stream()
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
        TracedRank most = members.stream()
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

    private static boolean agree(Operation one, Operation other) {
        return one.name().equals(other.name()) && one.count() == other.count() && one.type() == other.type()
                && one.root() == other.root() && one.how().equals(other.how());
    }
}
