package org.millrace.bench.jvm;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * One rank of {@code bench/jvm.sh}: {@code JvmRank CLASS LATER DIRECTORY RANK SIZE}. Two ranks measure round trips, and
 * all-reduces if the class has them. More ranks measure all-reduces. {@code bench/jvm/mpi.c} does the same in C.
 *
 * <p>
 * Each operation runs for {@value #SECONDS} s in the fresh process. All of them then repeat until LATER seconds have
 * passed, and are measured again. At the end every element of an operation is compared, for each length.
 *
 * <p>
 * Rank 0 prints a line for each operation, with tabs between: {@code time}, the operation, its bytes, microseconds at
 * first, microseconds later. Each rank prints the number of compared bytes and the number of wrong elements. The exit
 * status is 1 if an element was wrong.
 */
public final class JvmRank {

    static final int LARGEST_TRIP = 64 << 10;
    /** Bytes of the largest all-reduce. */
    public static final int LARGEST_SUM = 64 << 20;

    private static final double SECONDS = 0.3;
    /** Time after which a batch of operations is not made longer, in nanoseconds. */
    private static final long BATCH_NANOS = 10_000_000;
    private static final int CHECKS = 2;
    private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT;

    private interface Operation {
        void run(int bytes) throws IOException;
    }

    private record Timed(String name, int bytes, Operation operation) {
    }

    private final Messages messages;
    private final int rank;
    private final int size;
    private final List<Timed> operations = new ArrayList<>();
    private long checked;
    private long wrong;

    JvmRank(Messages messages, int rank, int size) {
        this.messages = messages;
        this.rank = rank;
        this.size = size;
        if (size == 2) {
            for (int bytes : new int[] {64, LARGEST_TRIP}) {
                operations.add(new Timed("trip", bytes, this::trip));
            }
        }
        if (messages.reduces()) {
            for (int bytes : new int[] {8, 1 << 10, 64 << 10, 1 << 20, 8 << 20, LARGEST_SUM}) {
                operations.add(new Timed("sum", bytes, messages::allReduce));
            }
        }
    }

    /**
     * Measures, and prints the results.
     *
     * @param arguments see the class
     * @throws Exception if a rank is lost, or the class does not exist
     */
    public static void main(String[] arguments) throws Exception {
        Meeting meeting =
                new Meeting(Path.of(arguments[2]), Integer.parseInt(arguments[3]), Integer.parseInt(arguments[4]));
        Class<?> library = Class.forName(arguments[0]);
        JvmRank rank;
        try (Messages messages = (Messages) library.getConstructor(Meeting.class).newInstance(meeting)) {
            rank = new JvmRank(messages, meeting.rank(), meeting.size());
            rank.measure((long) (Double.parseDouble(arguments[1]) * 1e9));
        }
        System.exit(rank.wrong == 0 ? 0 : 1);
    }

    private void measure(long later) throws IOException {
        messages.sent().fill((byte) 0); // zeros, because sums of sums would overflow where a library adds in place
        messages.received().fill((byte) 0);
        long start = System.nanoTime();
        double[] fresh = pass();
        while (agree(System.nanoTime() - start < later ? 1 : 0) > 0) {
            pass();
        }
        double[] steady = pass();
        check();
        StringBuilder lines = new StringBuilder();
        for (int i = 0; rank == 0 && i < fresh.length; i++) {
            Timed timed = operations.get(i);
            lines.append(String.format(Locale.ROOT, "time\t%s\t%d\t%.3f\t%.3f%n", timed.name, timed.bytes, fresh[i],
                    steady[i]));
        }
        lines.append(String.format(Locale.ROOT, "checked\t%d\t%d%n", checked, wrong));
        System.out.print(lines); // one call, because the ranks share the output
    }

    private double[] pass() throws IOException {
        double[] micros = new double[operations.size()];
        for (int i = 0; i < micros.length; i++) {
            micros[i] = run(operations.get(i));
        }
        return micros;
    }

    /** Returns the microseconds of an operation, averaged over the operations until the time has passed on rank 0. */
    private double run(Timed timed) throws IOException {
        long end = System.nanoTime() + (long) (SECONDS * 1e9);
        long taken = 0;
        long count = 0;
        int batch = 1;
        while ((batch = agree(batch)) > 0) {
            long start = System.nanoTime();
            for (int i = 0; i < batch; i++) {
                timed.operation.run(timed.bytes);
            }
            long now = System.nanoTime();
            taken += now - start;
            count += batch;
            batch = now >= end ? 0 : now - start < BATCH_NANOS ? 2 * batch : batch;
        }
        return taken / 1e3 / count;
    }

    /** Returns the number that rank 0 passes, on every rank. */
    private int agree(int number) throws IOException {
        MemorySegment sent = messages.sent();
        if (size == 2 && rank == 1) {
            messages.receive(64);
            int agreed = (int) messages.received().get(FLOAT, 0);
            messages.send(64);
            return agreed;
        }
        sent.set(FLOAT, 0, rank == 0 ? number : 0);
        if (size == 2) {
            trip(64);
        } else {
            messages.allReduce(8);
            number = (int) messages.received().get(FLOAT, 0);
        }
        sent.set(FLOAT, 0, 0);
        return number;
    }

    private void trip(int bytes) throws IOException {
        if (rank == 0) {
            messages.send(bytes);
            messages.receive(bytes);
        } else {
            messages.receive(bytes);
            messages.send(bytes);
        }
    }

    private void check() throws IOException {
        for (Timed timed : operations) {
            for (int seed = 0; seed < CHECKS; seed++) {
                check(timed, seed);
            }
        }
    }

    private void check(Timed timed, int seed) throws IOException {
        messages.received().fill((byte) 0xff);
        boolean sum = timed.name.equals("sum");
        messages.flush();
        for (int i = 0; i < timed.bytes / Float.BYTES; i++) {
            messages.sent().setAtIndex(FLOAT, i, value(rank, i, seed));
        }
        timed.operation.run(timed.bytes);
        for (int i = 0; i < timed.bytes / Float.BYTES; i++) {
            float expected = sum ? 0 : value(1 - rank, i, seed);
            for (int other = 0; sum && other < size; other++) {
                expected += value(other, i, seed);
            }
            if (messages.received().getAtIndex(FLOAT, i) != expected) {
                wrong++;
            }
        }
        checked += timed.bytes;
    }

    /** Small integers, with exact sums in any order. */
    private static float value(int of, int element, int seed) {
        return (element * 7L + of * 13 + seed * 29 + 1) % 97;
    }
}
