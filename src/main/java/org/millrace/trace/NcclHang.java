package org.millrace.trace;

import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TracedCommunicator.Operation;
import org.millrace.trace.Verdict.Cause;

/**
 * Analyzes a communicator of NCCL. Its traces may lack the start and the end of kernels. The analysis therefore uses
 * the operations that the ranks have enqueued, and the state of their connections.
 */
final class NcclHang extends HangingGroup {

    NcclHang(Links links, Duration quiet) {
        super(links, quiet);
    }

    /**
     * Returns whether ranks have enqueued different numbers of operations for a long time. Some rank then waits,
     * although the traces of the connections do not show a wait.
     */
    boolean waitsInOperations() {
        long newest = Long.MIN_VALUE;
        long oldest = Long.MAX_VALUE;
        long last = Long.MIN_VALUE;
        for (TracedRank member : links.members()) {
            if (member.communicator() != null && member.knowsCollectives()) {
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

    @Nullable
    Verdict find(List<Link> waiting) {
        return firstOf(() -> wire(waiting), () -> kernel(waiting));
    }

    private @Nullable Verdict kernel(List<Link> waiting) {
        Link root = root(waiting);
        long newest = links.members().stream().mapToLong(TracedRank::lastCollective).max().orElse(-1);
        TracedRank behind = root != null && root.to() != null ? root.to() : furthestBehind(newest);
        if (behind != null && behind.knowsCollectives() && behind.lastCollective() < newest && hasDoneAll(behind)
                && (root == null || !isOfLaunched(root, behind))) {
            return notLaunched(behind, root, waiting);
        }
        return notConsumed(waiting, root);
    }

    /**
     * Returns whether a rank's kernels have ended, as far as the traces show this. Ranks enqueue different numbers of
     * operations ahead of their kernels. A rank that has enqueued fewer operations than other ranks may therefore still
     * be in one of its operations. If kernels are not reported, the posted steps are used: a rank that has posted a
     * step since it enqueued its last operation is at least in that operation.
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
     * Returns whether the data that waits for a rank certainly belongs to an operation that this rank has enqueued.
     * This is certain if the sender posted the data before it enqueued any operation that this rank has not enqueued.
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
        Link link = root != null ? root : linkOf(behind, waiting);
        long ahead = links.members().stream().filter(each -> each.lastCollective() > behind.lastCollective()).count();
        return verdict(Cause.NOT_LAUNCHED, behind, otherEnd(link, behind), link, missing,
                "; " + ahead + (ahead == 1 ? " rank has" : " ranks have"), still(waiting));
    }

    /**
     * Returns a rank that has enqueued the fewest operations. Returns null if all ranks have enqueued the same number.
     * Also returns null if several ranks have enqueued the fewest operations, and the first of these ranks waits.
     */
    private @Nullable TracedRank furthestBehind(long newest) {
        List<TracedRank> behind = links.members()
                .stream()
                .filter(member -> member.knowsCollectives() && member.lastCollective() < newest)
                .sorted(Comparator.comparingLong(TracedRank::lastCollective))
                .toList();
        return behind.isEmpty() || behind.size() > 1 && behind.get(0).lastCollective() == behind.get(1).lastCollective()
                && waitsSomewhere(behind.get(0)) ? null : behind.getFirst();
    }

    private boolean waitsSomewhere(TracedRank member) {
        return links.all().stream().anyMatch(link -> link.from() == member && link.isFull());
    }
}
