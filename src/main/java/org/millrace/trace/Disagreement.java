package org.millrace.trace;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TracedCommunicator.Operation;
import org.millrace.trace.Verdict.Cause;

/** Finds ranks that run different operations, or operations of different sizes. */
final class Disagreement extends HangingGroup {

    Disagreement(Links links, Duration quiet) {
        super(links, quiet);
    }

    @Nullable
    Verdict disagreement(List<Link> waiting) {
        for (TracedRank finder : links.members()) {
            TracedRank other = finder.differsFrom(links.members());
            if (other != null && Objects.requireNonNull(finder.communicator()).differsAt() >= 0) {
                return found(finder, other, Objects.requireNonNull(finder.communicator()).differsAt(), waiting);
            }
        }
        return firstOf(() -> remembered(waiting), () -> transfers(links.members(), waiting), () -> forgotten(waiting));
    }

    /**
     * Returns a verdict if ranks have found that a send and its receive do not match, and no trace contains these
     * operations any longer. The verdict names the rank that is involved in most of the mismatches. The verdict also
     * names the second rank of one of these mismatches.
     */
    private @Nullable Verdict forgotten(List<Link> waiting) {
        // Pairs of ranks: a rank that found a mismatch, and the rank that it differs from.
        List<TracedRank> involved = new ArrayList<>();
        for (TracedRank member : links.members()) {
            TracedRank other = member.differsFrom(links.members());
            if (other != null) {
                involved.add(member);
                involved.add(other);
            }
        }
        if (involved.isEmpty()) {
            return null;
        }
        TracedRank most =
                Collections.max(involved, Comparator.comparing(each -> Collections.frequency(involved, each)));
        int at = involved.indexOf(most);
        TracedRank finder = involved.get(at & ~1);
        return verdict(Cause.DISAGREEMENT, most, involved.get(at ^ 1), first(waiting), null,
                messageOr(finder, "of a send and its receive"), still(waiting));
    }

    private static String messageOr(TracedRank finder, String otherwise) {
        return finder.process()
                .messages()
                .stream()
                .map(TracedProcess.Message::text)
                .filter(text -> text.contains("disagree"))
                .findFirst()
                .orElse(otherwise);
    }

    /**
     * Returns a verdict about the two ends of a connection. The ends have found that they run different collectives
     * with the same number. The verdict names the leading end if more than half of the ranks remember the lagging end's
     * collective. Otherwise it names the lagging end. A rank that does not remember this collective counts as ahead: it
     * has probably completed the leading end's collective.
     */
    private Verdict found(TracedRank finder, TracedRank other, long number, List<Link> waiting) {
        TracedRank behind = other.lastCollective() < finder.lastCollective() ? other : finder;
        TracedRank ahead = behind == finder ? other : finder;
        Operation mine = collective(behind, number);
        long withMine = links.members()
                .stream()
                .map(each -> collective(each, number))
                .filter(each -> each != null && mine != null && agree(mine, each))
                .count();
        boolean aheadIsWrong = 2 * withMine > links.members().size();
        TracedRank wrong = aheadIsWrong ? ahead : behind;
        Operation its = collective(wrong, number);
        Operation theirs = links.members()
                .stream()
                .map(each -> collective(each, number))
                .filter(each -> each != null && its != null && !agree(its, each))
                .findFirst()
                .orElse(aheadIsWrong ? mine : null);
        String detail = its != null && theirs != null
                ? "it has enqueued " + Verdict.words(its) + ", and they have enqueued " + Verdict.words(theirs)
                : messageOr(finder, "of collective #" + number);
        return verdict(Cause.DISAGREEMENT, wrong, wrong == ahead ? behind : ahead, first(waiting),
                its == null ? theirs : its, detail, still(waiting));
    }

    /**
     * Compares the collectives with the same number that the ranks remember. A rank is suspect if no other rank
     * remembers the same collective under the number. The verdict names a suspect rank in three cases. First, several
     * other ranks remember the number and agree. Second, a single other rank remembers the number, and the suspect rank
     * is behind all other ranks. In this case, the ranks that do not remember the number have completed the single
     * other rank's collective. Third, only two ranks report collectives. The verdict then names the first of these two
     * ranks.
     */
    private @Nullable Verdict remembered(List<Link> waiting) {
        List<TracedRank> knowing = links.members().stream().filter(TracedRank::knowsCollectives).toList();
        for (TracedRank member : knowing) {
            for (Operation mine : Objects.requireNonNull(member.communicator()).last()) {
                List<Operation> others = knowing.stream()
                        .filter(each -> each != member)
                        .map(each -> collective(each, mine.sequence()))
                        .filter(Objects::nonNull)
                        .toList();
                if (mine.peer() < 0 && !others.isEmpty() && others.stream().noneMatch(other -> agree(mine, other))
                        && (others.size() > 1 ? agree(others.get(0), others.get(1))
                                : knowing.size() == 2 || knowing.stream()
                                        .allMatch(each -> each == member
                                                || member.lastCollective() < each.lastCollective()))) {
                    return verdict(Cause.DISAGREEMENT, member, null, first(waiting), mine, "it has enqueued "
                            + Verdict.words(mine) + ", and they have enqueued " + Verdict.words(others.getFirst()),
                            still(waiting));
                }
            }
        }
        return null;
    }

    /** Returns a verdict if the two halves of a transfer do not match. Names the rank with most mismatches. */
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
                : verdict(Cause.DISAGREEMENT, most, first.from == most ? first.to : first.from, first(waiting),
                        first.from == most ? first.send : first.receive,
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
