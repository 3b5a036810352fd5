package org.millrace.cli.rehearsal;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.millrace.MillraceException;
import org.millrace.rehearsal.RecordedRun.Call;
import org.millrace.rehearsal.RecordedRun;

/**
 * Operations that each rank of a recorded communicator repeats. If a rank's recording lacks the first or the last
 * operations, the operations of all ranks begin and end with a collective that all ranks have recorded.
 */
final class ReplayPlan {

    /**
     * Operations of one kernel, after a pause of the program.
     *
     * @param afterEnd whether the program waited for its previous operations before the pause
     * @param nanos    duration of the pause, in nanoseconds. If {@code afterEnd} is true, the pause begins when the
     *                 previous operations end. If it is false, the pause begins when the program calls the previous
     *                 operations.
     */
    public record Launch(List<Call> calls, boolean afterEnd, long nanos) {
    }

    private final int size;
    private final int others;
    private final Map<Integer, List<Call>> calls = new TreeMap<>();
    private final boolean overlap;

    private ReplayPlan(RecordedRun run, long communicator, int others, boolean overlap) {
        this.others = others;
        this.overlap = overlap;
        Map<Integer, List<Call>> all = run.byRank().get(communicator);
        size = all.values().iterator().next().getFirst().group().size();
        for (int rank = 0; rank < size; rank++) {
            List<Call> own = all.get(rank);
            if (own == null) {
                throw new MillraceException("communicator " + Long.toHexString(communicator) + " has " + size
                        + " ranks, and rank " + rank + " was not recorded: set MILLRACE_RECORD for all of them, and"
                        + " bring their files into one directory");
            }
            calls.put(rank, own.stream().sorted(Comparator.comparingLong(Call::number)).toList());
        }
        align(run.truncated() || run.lost() > 0);
        requireThatTransfersMeet();
    }

    /**
     * Creates a plan to repeat a recording.
     *
     * @param which   number of the communicator; empty for the communicator with the most operations
     * @param overlap whether the program continues while its operations run. If so, its pauses overlap with its
     *                operations
     * @throws MillraceException if required records are missing; the message names them
     */
    public static ReplayPlan of(RecordedRun run, Optional<Long> which, boolean overlap) {
        Map<Long, Map<Integer, List<Call>>> all = run.byRank();
        long chosen = which.orElseGet(() -> all.entrySet()
                .stream()
                .max(Comparator.comparingLong(each -> each.getValue().values().stream().mapToLong(List::size).sum()))
                .orElseThrow(() -> new MillraceException("the recording contains no operations; under libnccl they"
                        + " are recorded only if NCCL supports profiler plugins"))
                .getKey());
        if (!all.containsKey(chosen)) {
            throw new MillraceException(
                    "the recording contains no communicator " + Long.toHexString(chosen) + "; it contains: "
                            + all.keySet().stream().map(Long::toHexString).collect(Collectors.joining(", ")));
        }
        return new ReplayPlan(run, chosen, all.size() - 1, overlap);
    }

    /**
     * Keeps only the calls from the first to the last collective that all ranks have recorded.
     *
     * @param isPartOfAll whether the recording has lost records. If it has lost none and all ranks recorded the same
     *                    collectives, all calls are kept.
     */
    private void align(boolean isPartOfAll) {
        long first = 0;
        long last = Long.MAX_VALUE;
        boolean differ = false;
        for (List<Call> own : calls.values()) {
            long[] collectives = own.stream().filter(call -> !call.isTransfer()).mapToLong(Call::sequence).toArray();
            if (collectives.length == 0) {
                if (isPartOfAll) {
                    throw new MillraceException("the oldest operations were overwritten, and the others contain no"
                            + " collective by which ranks can be aligned; increase MILLRACE_RECORD_BYTES");
                }
                return;
            }
            differ |= first != 0 && first != collectives[0]
                    || last != Long.MAX_VALUE && last != collectives[collectives.length - 1];
            first = Math.max(first, collectives[0]);
            last = Math.min(last, collectives[collectives.length - 1]);
        }
        if (!isPartOfAll && !differ) {
            return;
        }
        if (first > last) {
            throw new MillraceException("the operations that were not overwritten contain no collective of all"
                    + " ranks; increase MILLRACE_RECORD_BYTES");
        }
        long from = first;
        long to = last;
        calls.replaceAll((rank, own) -> own.subList(indexOf(own, from), indexOf(own, to) + 1));
    }

    private static int indexOf(List<Call> own, long sequence) {
        for (int i = 0; i < own.size(); i++) {
            if (!own.get(i).isTransfer() && own.get(i).sequence() == sequence) {
                return i;
            }
        }
        throw new MillraceException("collective " + sequence + " is missing: it was not recorded");
    }

    /** Checks that each send of a rank has a receive of its peer. Without a receive, the replay would wait forever. */
    private void requireThatTransfersMeet() {
        Map<List<Integer>, Integer> open = new HashMap<>();
        calls.forEach((rank, own) -> own.stream().filter(Call::isTransfer).forEach(call -> {
            boolean sends = call.kind().equals(RecordedRun.SEND);
            open.merge(sends ? List.of(rank, call.peer()) : List.of(call.peer(), rank), sends ? 1 : -1, Integer::sum);
        }));
        open.forEach((pair, more) -> {
            if (more != 0) {
                throw new MillraceException("rank " + pair.getFirst() + " sends " + Math.abs(more)
                        + (more > 0 ? " times more to rank " : " times less to rank ") + pair.getLast()
                        + " than that receives: some operations are missing; record again with more"
                        + " MILLRACE_RECORD_BYTES, and let the program come to its end");
            }
        });
    }

    /** {@return number of ranks} */
    public int size() {
        return size;
    }

    /** {@return number of recorded communicators that are not repeated} */
    public int others() {
        return others;
    }

    /** {@return calls that a rank repeats, in their order} */
    public List<Call> calls(int rank) {
        return calls.get(rank);
    }

    /**
     * {@return the collectives of the warm-up: one of each kind and size} The warm-up is needed because the first run
     * of a collective takes longer than later runs.
     */
    public List<Call> warmUp() {
        Set<RecordedRun.Kind> seen = new HashSet<>();
        return calls.get(0).stream().filter(call -> !call.isTransfer() && seen.add(call.what())).toList();
    }

    /**
     * {@return operations that a rank repeats, by kernel. If the kernels are unknown, all sends and receives between
     * two collectives form one kernel, because they may have been a group}
     */
    public List<Launch> launches(int rank) {
        List<List<Call>> groups = new ArrayList<>();
        for (Call call : calls.get(rank)) {
            Call before = groups.isEmpty() ? null : groups.getLast().getLast();
            if (before != null && before.launch() == call.launch()
                    && (call.launch() >= 0 || before.isTransfer() && call.isTransfer())) {
                groups.getLast().add(call);
            } else {
                groups.add(new ArrayList<>(List.of(call)));
            }
        }
        List<Launch> launches = new ArrayList<>();
        long called = 0;
        long ended = Long.MAX_VALUE;
        for (List<Call> group : groups) {
            long now = group.getFirst().enqueued();
            boolean afterEnd = !overlap && now >= ended;
            launches.add(new Launch(group, afterEnd, called == 0 ? 0 : now - (afterEnd ? ended : called)));
            called = now;
            ended = group.stream().mapToLong(call -> call.ended() == 0 ? Long.MAX_VALUE : call.ended()).max().orElse(0);
        }
        return launches;
    }
}
