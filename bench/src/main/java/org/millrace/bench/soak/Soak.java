package org.millrace.bench.soak;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.millrace.MillraceException;
import org.millrace.trace.ProcessTrace;
import org.millrace.trace.TraceReader;
import org.millrace.trace.TracedConnection;

/**
 * Groups join, run random operations and end in random ways, for the given time. Every element is compared, and the
 * resources of the process are recorded. The exit status is 1 if an element was wrong, a rank hung, or resources grew.
 *
 * <pre>
 *   MALLOC_ARENA_MAX=1 java -cp bench/target/millrace-bench.jar org.millrace.bench.soak.Soak MINUTES [SEED]
 * </pre>
 */
public final class Soak {

    /** Timeout in seconds, longer than any step of a group. */
    private static final long TIMEOUT_SECONDS = 180;
    private static final int OPERATIONS = 200;
    private static final int ROUNDS_PER_LINE = 50;
    /** Number of the latest lines whose minimum shows growth, because memory outside of the heap varies. */
    private static final int LATEST = 10;
    /** Number of rounds after which a JVM has allocated everything that it needs. */
    private static final int WARM_ROUNDS = 200;
    private static final String[] NETWORKS = {"auto", "shm", "socket"};
    /** Buffer sizes, mostly small: a step is an eighth of the buffer, so small buffers cause many steps. */
    private static final String[] BUFFERS = {"32K", "32K", "1M"};

    /** End of a group. */
    private enum End {
        CLOSE, ABORT, KILL
    }

    private final Path directory;
    private final Random random;
    private final ExecutorService threads =
            Executors.newThreadPerTaskExecutor(Thread.ofPlatform().daemon().name("soak-rank-", 0).factory());
    private long joins;
    private long operations;
    private long wrong;
    private long faults;
    private long kills;
    private long steps;
    /**
     * For each connection's entry in the trace: the connection that used it last, and the number of its counted steps.
     */
    private final Map<Integer, Counted> counted = new HashMap<>();

    private record Counted(long generation, long steps) {
    }

    private Soak(Path directory, long seed) {
        this.directory = directory;
        this.random = new Random(seed);
    }

    /** Runs for the minutes given first, with the seed given second. */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 0 || !arguments[0].matches("\\d+(\\.\\d+)?")) {
            System.err.println("usage: org.millrace.bench.soak.Soak MINUTES [SEED]");
            System.exit(2);
        }
        long seed = arguments.length > 1 ? Long.parseLong(arguments[1]) : System.nanoTime();
        System.out.println("seed " + seed);
        boolean well = new Soak(Files.createTempDirectory("millrace-soak-"), seed)
                .run((long) (Double.parseDouble(arguments[0]) * TimeUnit.MINUTES.toNanos(1)));
        System.exit(well ? 0 : 1);
    }

    private boolean run(long nanos) throws Exception {
        long begin = System.nanoTime();
        Holdings first = null;
        Deque<Holdings> latest = new ArrayDeque<>();
        for (int round = 1; System.nanoTime() - begin < nanos; round++) {
            round();
            if (round == WARM_ROUNDS) {
                first = Holdings.now();
            }
            if (round % ROUNDS_PER_LINE == 0) {
                latest.addLast(Holdings.now());
                if (latest.size() > LATEST) {
                    latest.removeFirst();
                }
                System.out.println(
                        (System.nanoTime() - begin) / 1_000_000_000L + " s: " + this + "; " + latest.getLast());
            }
        }
        Holdings last = latest.stream().reduce(Holdings.now(), Holdings::withLessOutside);
        System.out.println("after " + WARM_ROUNDS + " groups: " + first + "\nat the end:      " + last + "\n" + this);
        return wrong == 0 && faults == 0 && (first == null || last.isFlatBeside(first));
    }

    private void round() throws Exception {
        int size = 2 + random.nextInt(3);
        int kind = random.nextInt(40);
        End end = kind == 0 ? End.KILL : kind < 5 ? End.ABORT : End.CLOSE;
        int count = 1 + random.nextInt(OPERATIONS);
        long seed = random.nextLong();
        Map<String, String> settings = settings();
        String rendezvous = "file:" + directory.resolve("group");
        Process victim = end == End.KILL ? start(rendezvous, size, seed, settings) : null;
        List<SoakRank> ranks = new ArrayList<>();
        List<Future<?>> running = new ArrayList<>();
        for (int rank = 0; rank < size - (victim == null ? 0 : 1); rank++) {
            SoakRank each = new SoakRank(rendezvous, rank, size, settings, seed);
            ranks.add(each);
            boolean aborts = end == End.ABORT && rank == 0;
            running.add(threads.submit(() -> each.run(victim == null ? count : Integer.MAX_VALUE, aborts)));
        }
        if (victim != null) {
            kill(victim, ranks.getFirst());
        }
        for (Future<?> each : running) {
            finish(each, end);
        }
        joins += size;
        for (SoakRank each : ranks) {
            operations += each.operations();
            wrong += each.wrong();
        }
        countSteps();
    }

    /**
     * Counts the steps of both ends of this process's network connections, from its trace. The trace keeps connections
     * that were closed last.
     */
    private void countSteps() throws IOException {
        ProcessTrace trace = ProcessTrace.current();
        if (trace == null) {
            return;
        }
        for (TracedConnection each : TraceReader.read(trace.path()).connections()) {
            Counted before = counted.get(each.block());
            long now = each.done() - each.identity().firstStep();
            steps += now - (before != null && before.generation == each.generation() ? before.steps : 0);
            counted.put(each.block(), new Counted(each.generation(), now));
        }
    }

    private Map<String, String> settings() {
        Map<String, String> settings = new HashMap<>(Map.of("MILLRACE_STALL_DEADLINE", "60s",
                // on a shared machine a process may get no core for longer than the usual 30 s
                "MILLRACE_CONNECT_DEADLINE", "120s"));
        settings.put("MILLRACE_NET", NETWORKS[random.nextInt(NETWORKS.length)]);
        settings.put("NCCL_P2P_DISABLE", random.nextBoolean() ? "1" : "0");
        settings.put("NCCL_BUFFSIZE", BUFFERS[random.nextInt(BUFFERS.length)]);
        if (random.nextInt(8) == 0) {
            settings.put("MILLRACE_TLS", "1");
            settings.put("MILLRACE_SECRET", "of the soak");
        }
        return settings;
    }

    private static Process start(String rendezvous, int size, long seed, Map<String, String> settings)
            throws IOException {
        List<String> command =
                new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED", "-cp", System.getProperty("java.class.path"),
                        SoakRank.class.getName(), rendezvous, Integer.toString(size - 1), Integer.toString(size),
                        Long.toString(seed)));
        settings.forEach((name, value) -> command.add(name + "=" + value));
        return new ProcessBuilder(command).redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start();
    }

    /** Kills a process in the middle of its work. */
    private void kill(Process victim, SoakRank other) throws InterruptedException {
        for (int i = 0; other.operations() < 5 && i < TIMEOUT_SECONDS * 100; i++) {
            Thread.sleep(10);
        }
        victim.destroyForcibly().waitFor();
        kills++;
    }

    /** A group that ends normally reports nothing. In other groups every rank must learn of the end soon. */
    private void finish(Future<?> rank, End end) throws InterruptedException {
        try {
            rank.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            if (end == End.KILL) {
                fault("a rank did not hear that its peer was killed", null);
            }
        } catch (ExecutionException e) {
            if (end == End.CLOSE || !(e.getCause() instanceof MillraceException)) {
                fault("a rank of a group that was to " + end + " failed", e.getCause());
            }
        } catch (TimeoutException e) {
            fault("a rank hangs", e);
            System.exit(1);
        }
    }

    private void fault(String what, Throwable why) {
        faults++;
        System.out.println(what + ": " + why);
        if (why != null) {
            why.printStackTrace(System.out);
        }
    }

    @Override
    public String toString() {
        return joins + " joins, " + operations + " operations, " + steps + " steps, " + kills + " kills, #wrong "
                + wrong + ", " + faults + " faults";
    }
}
