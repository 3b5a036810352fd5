package org.millrace.cli.matrix;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Consumer;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.Stream;
import org.millrace.cli.console.FailureText;
import org.millrace.cli.launch.RankEvent;
import org.millrace.cli.launch.RankWorker;
import org.millrace.cli.perf.CheckedCollectives;

/**
 * One rank's way through groups: a communicator for each, on which it runs the group's cells. What fails ends the
 * group, and the next one is begun.
 */
final class MatrixWorker implements RankWorker {

    /**
     * For all cells of a communicator, which take less than a second. Longer than an operation may stand still, which
     * says more of what is wrong.
     */
    private static final Duration PATIENCE = Duration.ofMinutes(5);
    private static final int LARGEST = 200 << 10;
    /** Bytes: one element or two; no multiple of anything; several chunks, as buffers are of 64 KiB. */
    private static final List<Integer> SIZES = List.of(8, 4021, LARGEST - 1237);

    private final List<CellGroup> groups;
    private final int rank;
    private final String rendezvous;
    private final Map<String, String> settings;
    private final long seed;
    private final Consumer<RankEvent> events;
    private volatile boolean aborted;
    private volatile Communicator joined;

    MatrixWorker(List<CellGroup> groups, int rank, String rendezvous, Map<String, String> settings, long seed,
            Consumer<RankEvent> events) {
        this.groups = groups;
        this.rank = rank;
        this.rendezvous = rendezvous;
        this.settings = settings;
        this.seed = seed;
        this.events = events;
    }

    @Override
    public void run() {
        try {
            groups.forEach(this::run);
            events.accept(new RankEvent.Finished(rank));
        } catch (Throwable failure) { // whatever it is, it must be heard of
            StringWriter trace = new StringWriter();
            failure.printStackTrace(new PrintWriter(trace, true));
            events.accept(new RankEvent.Failed(rank, FailureText.of(failure), trace.toString(), false));
        }
    }

    @Override
    public void abort() {
        aborted = true;
        Communicator communicator = joined;
        if (communicator != null) {
            communicator.abort();
        }
    }

    private void run(CellGroup group) {
        if (aborted) {
            throw new MillraceException("the run was ended");
        }
        int[] done = {0};
        String where = rendezvous + "-" + group.number();
        try (Arena arena = Arena.ofShared();
                Communicator communicator = Millrace.join(where, rank, group.ranks(), group.settings(settings))) {
            joined = communicator;
            try (Stream stream = communicator.device().newStream()) {
                check(group, communicator, stream, arena, done);
            }
        } catch (RuntimeException failure) {
            for (Cell left : group.cells().subList(done[0], group.cells().size())) {
                events.accept(new RankEvent.Checked(rank, left.number(), 0, 0, "", FailureText.of(failure)));
            }
        } finally {
            joined = null;
        }
    }

    /**
     * Aborts here, where stream and communicator are still open: their close() would wait for operations that may never
     * end.
     */
    private void check(CellGroup group, Communicator communicator, Stream stream, Arena arena, int[] done) {
        try (CheckedCollectives checks =
                new CheckedCollectives(communicator, stream, arena, LARGEST, PATIENCE, group.mode() == Mode.PTR)) {
            for (Cell cell : group.cells()) {
                events.accept(check(group, cell, communicator, checks));
                done[0]++;
            }
        } catch (RuntimeException failure) {
            communicator.abort();
            throw failure;
        }
    }

    private RankEvent check(CellGroup group, Cell cell, Communicator communicator, CheckedCollectives checks) {
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
            long wrongNow = checks.countWrong(operands + i, cell.operation(), elements, reduction + i, SIZES.get(i),
                    inPlace ^ i == 1);
            RouteMismatch found = communicator.route()
                    .map(group::difference)
                    .orElseGet(() -> new RouteMismatch("",
                            "the communicator does not say how " + cell.operation().label() + " travelled", false));
            boolean asAsked = found.equals(RouteMismatch.NONE);
            ran += asAsked ? 1 : 0;
            wrong += asAsked ? wrongNow : 0; // what ran another way is that way's cell
            difference = difference.failure().isEmpty() && !found.equals(RouteMismatch.NONE) ? found : difference;
        }
        return new RankEvent.Checked(rank, cell.number(), wrong, ran, difference.refusal(), difference.failure());
    }
}
