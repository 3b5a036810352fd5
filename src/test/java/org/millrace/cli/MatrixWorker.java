package org.millrace.cli;

import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.Operation;
import org.millrace.cli.base.FailureText;
import org.millrace.cli.perf.CheckedCollectives;
import org.millrace.cli.perf.CollectiveCall;
import org.millrace.cli.perf.RandomOperands;
import org.millrace.cli.perf.Reduction;
import org.millrace.cli.run.RankEvent;
import org.millrace.cli.run.RankWorker;
import org.millrace.cli.run.RunDeadline;

/**
 * Runs one rank through the groups of cells. All cells of a group run on one communicator. A failure ends the group,
 * and the next group begins.
 */
final class MatrixWorker implements RankWorker {

    /** Report about a cell that a rank has finished. */
    record CellReport(int rank, int cell, long wrong, int ran, String refusal, String failure) implements RankEvent {
    }

    /**
     * Timeout for all cells of a communicator. Together the cells take less than a second. The timeout is longer than
     * the limit for a stalled operation, because the report of a stall explains more than a timeout.
     */
    private static final Duration TIMEOUT = Duration.ofMinutes(5);
    private static final int LARGEST = 200 << 10;
    /** Sizes in bytes: one to eight elements, an odd size, and several chunks. Connections have buffers of 64 KiB. */
    private static final List<Integer> SIZES = List.of(8, 4021, LARGEST - 1237);

    private final List<CellGroup> groups;
    private final int rank;
    private final String rendezvous;
    private final Map<String, String> settings;
    private final long seed;
    private volatile boolean aborted;
    private volatile @Nullable Communicator joined;

    MatrixWorker(List<CellGroup> groups, int rank, String rendezvous, Map<String, String> settings, long seed) {
        this.groups = groups;
        this.rank = rank;
        this.rendezvous = rendezvous;
        this.settings = settings;
        this.seed = seed;
    }

    @Override
    public void run(Reporter reporter) {
        groups.forEach(group -> run(group, reporter));
    }

    @Override
    public void abort() {
        aborted = true;
        Communicator communicator = joined;
        if (communicator != null) {
            communicator.abort();
        }
    }

    private void run(CellGroup group, Reporter reporter) {
        if (aborted) {
            throw new MillraceException("the run was ended");
        }
        int[] done = {0};
        String where = rendezvous + "-" + group.number();
        try (Arena arena = Arena.ofShared();
                Communicator communicator = Millrace.join(where, rank, group.ranks(), group.settings(settings))) {
            joined = communicator;
            try (DeviceStream stream = communicator.device().newStream()) {
                check(group, communicator, stream, arena, done, reporter);
            }
        } catch (RuntimeException failure) {
            for (CellGroup.Cell left : group.cells().subList(done[0], group.cells().size())) {
                reporter.tell(new CellReport(rank, left.number(), 0, 0, "", FailureText.of(failure)));
            }
        } finally {
            joined = null;
        }
    }

    /**
     * Runs the cells of a group. After a failure this method aborts, while stream and communicator are still open.
     * Their close() would wait for operations that may never end.
     */
    private void check(CellGroup group, Communicator communicator, DeviceStream stream, Arena arena, int[] done,
            Reporter reporter) {
        try (CheckedCollectives checks = new CheckedCollectives(communicator, stream, arena, LARGEST,
                RunDeadline.after(TIMEOUT), group.mode() == CellGroup.Mode.PTR)) {
            for (CellGroup.Cell cell : group.cells()) {
                reporter.tell(check(group, cell, communicator, checks));
                done[0]++;
            }
        } catch (RuntimeException failure) {
            communicator.abort();
            throw failure;
        }
    }

    private CellReport check(CellGroup group, CellGroup.Cell cell, Communicator communicator,
            CheckedCollectives checks) {
        Random random = new Random(group.seed(seed, cell));
        int type = random.nextInt(DataType.values().length);
        int reduction = random.nextInt(Integer.MAX_VALUE);
        boolean inPlace = random.nextBoolean();
        long operands = random.nextLong();
        long wrong = 0;
        int ran = 0;
        RouteMismatch difference = RouteMismatch.NONE;
        for (int i = 0; i < SIZES.size() && !difference.general(); i++) {
            DataType elements = DataType.values()[(type + i) % DataType.values().length];
            long wrongNow = countWrong(checks, new CollectiveCall(cell.operation(), group.ranks()), operands + i,
                    elements, reduction + i, SIZES.get(i), inPlace ^ i == 1);
            RouteMismatch found = communicator.route()
                    .map(group::difference)
                    .orElseGet(() -> new RouteMismatch("",
                            "the communicator does not say how " + cell.operation().label() + " travelled", false));
            boolean asAsked = found.equals(RouteMismatch.NONE);
            ran += asAsked ? 1 : 0;
            wrong += asAsked ? wrongNow : 0; // errors on another route count for the cell of that route
            difference = difference.failure().isEmpty() && !found.equals(RouteMismatch.NONE) ? found : difference;
        }
        return new CellReport(rank, cell.number(), wrong, ran, difference.refusal(), difference.failure());
    }

    /**
     * @param seed      determines the operands, independent of earlier operations
     * @param reduction any number; it selects the reduction. Ignored if nothing is reduced
     * @param bytes     size of the larger operand. It is rounded down to an equal number of elements for each rank, at
     *                  least one
     * @param inPlace   whether to run in place if possible
     */
    private static long countWrong(CheckedCollectives checks, CollectiveCall call, long seed, DataType type,
            int reduction, long bytes, boolean inPlace) {
        Operation operation = call.operation();
        Reduction chosen =
                Reduction.values()[operation.reduces() ? Math.floorMod(reduction, Reduction.values().length) : 0];
        boolean oneOperand = inPlace && operation.hasInPlace();
        return checks.countWrong(checks.place(call, type, chosen,
                Math.max(operation.parts(call.ranks()), bytes / type.bytes()), oneOperand),
                RandomOperands.of(seed, 0, oneOperand));
    }
}
