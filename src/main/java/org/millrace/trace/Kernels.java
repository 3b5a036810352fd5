package org.millrace.trace;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TracedCommunicator.Operation;
import org.millrace.trace.TracedRank.ProcessState;

/**
 * Finds the rank that kernels wait for, if all ranks report when each kernel begins and ends. Candidates are the ranks
 * that have not reached the oldest operation that other ranks are in. A candidate that is in another operation is
 * skipped, because it waits, too.
 */
final class Kernels {

    /**
     * A rank that another rank waits for.
     *
     * @param operation awaited operation, as the waiting rank reports it
     * @param enqueued  whether the missing rank has an enqueued operation with a kernel that has not begun
     */
    record Missing(TracedRank rank, TracedRank waiting, Operation operation, boolean enqueued) {
    }

    private final List<TracedRank> members;

    Kernels(List<TracedRank> members) {
        this.members = members;
    }

    boolean areReported() {
        return members.stream().allMatch(TracedRank::reportsKernels);
    }

    /** Returns the time of the last event of any operation. */
    long lastChange() {
        return members.stream()
                .map(TracedRank::communicator)
                .filter(Objects::nonNull)
                .flatMap(communicator -> communicator.last().stream())
                .mapToLong(each -> Math.max(each.enqueued(), Math.max(each.started(), each.ended())))
                .max()
                .orElse(Long.MIN_VALUE);
    }

    /**
     * Returns the first rank that other ranks wait for and that does not wait itself; null if no such rank was found.
     */
    @Nullable
    Missing missing() {
        List<Missing> all = new ArrayList<>();
        for (TracedRank member : members) {
            for (Operation each : member.pending()) {
                if (member.hasBegun(each) && each.sequence() >= 0) {
                    all.addAll(each.peer() < 0 ? collective(member, each) : transfer(member, each));
                }
            }
        }
        return all.stream()
                .filter(each -> !each.rank.isInside())
                .min((one, other) -> Long.compare(one.operation.enqueued(), other.operation.enqueued()))
                .orElse(null);
    }

    /**
     * Returns the rank that is in no operation, if all other ranks are in an operation; otherwise null. This method
     * uses no operation numbers. It therefore also works if the ranks have enqueued many later operations and no longer
     * remember the awaited operation.
     */
    @Nullable
    TracedRank outsider() {
        List<TracedRank> outside = members.stream().filter(member -> !member.isInside()).toList();
        return outside.size() == 1 && members.size() > 1 ? outside.getFirst() : null;
    }

    /**
     * Returns the oldest operation that other ranks are in and that involves this rank; null if their traces contain
     * none.
     */
    @Nullable
    Operation waitedIn(TracedRank missing) {
        return members.stream()
                .filter(member -> member != missing && member.state() != ProcessState.DEAD)
                .flatMap(member -> member.pending().stream().filter(member::hasBegun))
                .filter(each -> each.peer() < 0 || each.peer() == missing.rank())
                .min((one, other) -> Long.compare(one.enqueued(), other.enqueued()))
                .orElse(null);
    }

    private List<Missing> collective(TracedRank waiting, Operation operation) {
        List<Missing> missing = new ArrayList<>();
        for (TracedRank other : members) {
            if (other != waiting && other.knowsCollectives() && other.lastCollective() < operation.sequence()) {
                // The other rank has not enqueued this operation. If operations of that rank are pending, they have to
                // run first.
                missing.add(new Missing(other, waiting, operation, other.hasPending()));
            } else if (other.pending()
                    .stream()
                    .anyMatch(each -> each.peer() < 0 && each.sequence() == operation.sequence()
                            && !other.hasBegun(each))) {
                missing.add(new Missing(other, waiting, operation, true));
            }
        }
        return missing;
    }

    /**
     * Returns a list with the peer of a transfer if the peer has not begun its half of the transfer, and an empty list
     * otherwise. The other half of a send is the receive of the same number, and vice versa.
     */
    private List<Missing> transfer(TracedRank waiting, Operation half) {
        TracedRank other =
                members.stream().filter(each -> each.rank() == half.peer() && each != waiting).findFirst().orElse(null);
        if (other == null || other.communicator() == null) {
            return List.of();
        }
        List<Operation> halves = other.communicator()
                .last()
                .stream()
                .filter(each -> each.peer() == waiting.rank() && !each.name().equals(half.name()))
                .toList();
        if (halves.isEmpty() || halves.getLast().sequence() < half.sequence()) {
            return List.of(new Missing(other, waiting, half, other.hasPending()));
        }
        return halves.stream().anyMatch(each -> each.sequence() == half.sequence() && !other.hasBegun(each))
                ? List.of(new Missing(other, waiting, half, true))
                : List.of();
    }
}
