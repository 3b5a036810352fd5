package org.millrace.trace;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TracedCommunicator.Operation;
import org.millrace.trace.TracedRank.ProcessState;

/**
 * What kernels wait for, where all ranks tell when each begins and ends: the ranks that have not come to the oldest
 * operation that others are in. Who is in an operation itself waits, and is passed over.
 */
final class Kernels {

    /**
     * A rank that is waited for.
     *
     * @param operation what it is, as the one that waits has it
     * @param enqueued  whether the rank has enqueued it, and only its kernel has not begun
     */
    record Missing(TracedRank rank, TracedRank waiting, Operation operation, boolean enqueued) {
    }

    private final List<TracedRank> members;

    Kernels(List<TracedRank> members) {
        this.members = members;
    }

    boolean areTold() {
        return members.stream().allMatch(TracedRank::tellsKernels);
    }

    /** When anything was heard of an operation last. */
    long lastChange() {
        return members.stream()
                .map(TracedRank::communicator)
                .filter(Objects::nonNull)
                .flatMap(communicator -> communicator.last().stream())
                .mapToLong(each -> Math.max(each.enqueued(), Math.max(each.started(), each.ended())))
                .max()
                .orElse(Long.MIN_VALUE);
    }

    /** The first rank that is waited for, and waits for nobody itself; null if there is none. */
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
     * The only rank that is in nothing while all others are in something, if so much was enqueued since that it is not
     * remembered what; null if there is none.
     */
    @Nullable
    TracedRank outsider() {
        List<TracedRank> outside = members.stream().filter(member -> !member.isInside()).toList();
        return outside.size() == 1 && members.size() > 1 ? outside.getFirst() : null;
    }

    /** The oldest that others are in and that this rank has a part in, as far as they remember it; null if none is. */
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
            if (other != waiting && other.tellsCollectives() && other.lastCollective() < operation.sequence()) {
                // what it has enqueued before comes first
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

    /** The other half of a send is the receive of the same number, and the other way round. */
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
