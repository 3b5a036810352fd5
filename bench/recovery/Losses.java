import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.millrace.Communicator;
import org.millrace.CommunicatorException;
import org.millrace.ExcludedException;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.ReduceOp;

/**
 * Loses random ranks of a training loop, and checks that the others continue:
 * {@code Losses TRIALS SEED [FIRST [LANES]]}. The trials from FIRST on are divided among LANES, which run at the same
 * time on different cores. The number of a trial and the seed determine its losses.
 *
 * <p>
 * In each trial, 5 processes train a model. One or two of them, also rank 0, are killed (SIGKILL) or stopped (SIGSTOP)
 * at random moments. The others shrink the group and continue. Each trial checks the order and the number of the
 * remaining ranks, and that the weights are equal bit for bit. It compares the loss with a training in one process.
 * Stopped processes then resume, must be excluded, and take part in the next trial. After a failure, the program keeps
 * the directory of the lane, and prints the decisions and the logs of the ranks. The lane continues with new processes.
 */
public final class Losses {

    private static final int RANKS = 5;
    private static final int FEATURES = 16;
    private static final int ROWS = 4096;
    private static final float RATE = 0.5f;
    private static final int BEFORE = 5;
    private static final int AFTER = 3000;
    private static final int MAX_PAUSE_MILLIS = 300;
    /** Maximum time between two losses. {@link #AFTER} steps take longer, so the others still train then. */
    private static final int MAX_BETWEEN_MILLIS = 100;
    private static final Duration SHRINK = Duration.ofSeconds(5);
    private static final String STALL = "2s";
    private static final int TRIAL_SECONDS = 120;

    private final float[] weights = new float[FEATURES + 1];
    private int step;

    private Losses() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("rank")) {
            serve();
        } else {
            drive(Integer.parseInt(arguments[0]), Long.parseLong(arguments[1]),
                    arguments.length > 2 ? Integer.parseInt(arguments[2]) : 0,
                    arguments.length > 3 ? Integer.parseInt(arguments[3]) : 1);
        }
    }

    // A rank.

    private static void serve() throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = in.readLine()) != null) {
            String[] words = line.split(" ");
            try {
                new Losses().train(words[0], Integer.parseInt(words[1]));
            } catch (ExcludedException excluded) {
                System.out.println("excluded " + excluded.getMessage());
            } catch (Throwable wrong) {
                System.out.println("wrong " + wrong);
                wrong.printStackTrace();
            }
        }
    }

    private void train(String rendezvous, int rank) {
        Communicator communicator = Millrace.builder()
                .rendezvous(rendezvous)
                .rank(rank)
                .size(RANKS)
                .device("host")
                .set("MILLRACE_STALL_DEADLINE", STALL)
                .set("MILLRACE_LATE_DEADLINE", STALL)
                .onLoss(loss -> {})
                .join();
        boolean isShrunk = false;
        while (true) {
            try {
                restore(communicator);
                for (int goal = isShrunk ? step + AFTER : Integer.MAX_VALUE; step < goal;) {
                    step(communicator);
                    if (!isShrunk && step == BEFORE) {
                        System.out.println("trains");
                    } else if (isShrunk && step == goal - AFTER + 1) {
                        System.out.println("first");
                    }
                }
                double own = loss(communicator.rank(), communicator.size(), null);
                double loss = communicator.allReduce(own, ReduceOp.SUM);
                boolean agreed = communicator.agree(true);
                System.out.printf(Locale.ROOT, "done %d %d %d %d %.9f %b%n", communicator.rank(), communicator.size(),
                        step, Arrays.hashCode(weights), loss / ROWS, agreed);
                communicator.close();
                return;
            } catch (CommunicatorException failed) {
                long begun = System.nanoTime();
                communicator = communicator.shrink(SHRINK);
                isShrunk = true;
                System.out.println("shrunk " + (System.nanoTime() - begun) / 1000);
            }
        }
    }

    private void restore(Communicator communicator) {
        int[] at = {step};
        communicator.broadcast(Operand.of(at), 0);
        communicator.broadcast(Operand.of(weights), 0);
        step = at[0];
    }

    private void step(Communicator communicator) {
        float[] gradient = new float[FEATURES + 1];
        loss(communicator.rank(), communicator.size(), gradient);
        communicator.allReduce(Operand.of(gradient), ReduceOp.SUM);
        for (int i = 0; i <= FEATURES; i++) {
            weights[i] -= RATE * gradient[i] / ROWS;
        }
        step++;
    }

    /** Returns the loss over a part of the rows. Adds up the gradient, if it is not null. */
    private double loss(int part, int parts, float[] gradient) {
        double loss = 0;
        for (int row = part; row < ROWS; row += parts) {
            float[] x = DATA[row];
            double sum = weights[FEATURES];
            for (int i = 0; i < FEATURES; i++) {
                sum += weights[i] * x[i];
            }
            double guess = 1 / (1 + Math.exp(-sum));
            int label = x[0] - 2 * x[1] + x[2] * 0.5 > 0.2 ? 1 : 0;
            loss -= Math.log(Math.max(1e-9, label == 1 ? guess : 1 - guess));
            for (int i = 0; gradient != null && i <= FEATURES; i++) {
                gradient[i] += (float) ((guess - label) * (i < FEATURES ? x[i] : 1));
            }
        }
        return loss;
    }

    private static final float[][] DATA = new float[ROWS][FEATURES];
    static {
        Random random = new Random(1);
        for (float[] row : DATA) {
            for (int i = 0; i < FEATURES; i++) {
                row[i] = (float) random.nextGaussian();
            }
        }
    }

    // The driver.

    private record Line(int rank, long nanos, String[] words) {
    }

    /** Results of all lanes. */
    private static final List<Double> KILLED = new ArrayList<>();
    private static final List<Double> STOPPED = new ArrayList<>();
    private static final List<Double> SHRINKS = new ArrayList<>();
    private static final List<String> FAILURES = new ArrayList<>();
    private static int trials;
    private static int losses;
    private static int doubles;
    private static int zeros;

    private static void drive(int count, long seed, int first, int lanes) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int lane = 0; lane < lanes; lane++) {
            int from = first + count * lane / lanes;
            int to = first + count * (lane + 1) / lanes;
            Lane each = new Lane(lane, lanes);
            threads.add(Thread.ofPlatform().start(() -> each.run(seed, from, to)));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        synchronized (Losses.class) {
            System.out.printf(Locale.ROOT,
                    "%d trials (seed %d), %d losses, two losses in %d trials, rank 0 in %d, %d failures%n", trials,
                    seed, losses, doubles, zeros, FAILURES.size());
            report("killed: first step after the first loss", KILLED);
            report("killed: shrink alone", SHRINKS);
            report("with a stopped rank (stall deadline " + STALL + ", shrink deadline 5s): first step", STOPPED);
            FAILURES.forEach(each -> System.out.println("FAILED " + each));
            System.exit(FAILURES.isEmpty() ? 0 : 1);
        }
    }

    private static void report(String what, List<Double> seconds) {
        List<Double> sorted = seconds.stream().sorted().toList();
        if (!sorted.isEmpty()) {
            System.out.printf(Locale.ROOT, "%s: %d times, median %.3f s, longest %.3f s%n", what, sorted.size(),
                    sorted.get(sorted.size() / 2), sorted.getLast());
        }
    }

    /** Five processes, which run one trial after the other. */
    private static final class Lane {

        private final int number;
        private final int lanes;
        private final Path directory;
        private final BlockingQueue<Line> lines = new LinkedBlockingQueue<>();
        private final Process[] processes = new Process[RANKS];

        Lane(int number, int lanes) throws IOException {
            this.number = number;
            this.lanes = lanes;
            this.directory = Files.createTempDirectory("millrace-losses");
        }

        private void start(int rank) throws IOException {
            List<String> words = new ArrayList<>();
            if (lanes > 1) {
                int cores = Runtime.getRuntime().availableProcessors();
                int core = 2 * number % Math.max(2, cores / 2 * 2);
                words.addAll(List.of("taskset", "-c", core + "," + (core + 1)));
            }
            words.addAll(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx64m",
                    "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "--enable-native-access=ALL-UNNAMED",
                    "-Dorg.apache.logging.log4j.simplelog.showdatetime=true",
                    "-Dorg.apache.logging.log4j.simplelog.dateTimeFormat=HH:mm:ss.SSS",
                    "-Dorg.apache.logging.log4j.simplelog.org.millrace.bootstrap.Recovery.level=DEBUG", "-cp",
                    System.getProperty("java.class.path"), Losses.class.getName(), "rank"));
            Path log = directory.resolve("rank-" + rank + ".log");
            Process process = new ProcessBuilder(words)
                    .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile())).start();
            processes[rank] = process;
            Thread.ofPlatform().daemon().start(() -> {
                try {
                    process.inputReader(StandardCharsets.UTF_8).lines()
                            .filter(line -> processes[rank] == process)
                            .forEach(line -> lines.add(new Line(rank, System.nanoTime(), line.split(" "))));
                } catch (UncheckedIOException killed) {
                    // The trial reports a process that ends too early.
                }
            });
        }

        private void signal(int rank, String name) throws Exception {
            new ProcessBuilder("kill", "-" + name, String.valueOf(processes[rank].pid())).inheritIO().start().waitFor();
        }

        /** Waits for a line with a word from each of the ranks. */
        private Line[] await(TreeSet<Integer> ranks, String word, List<Line> others) throws InterruptedException {
            Line[] found = new Line[RANKS];
            TreeSet<Integer> missing = new TreeSet<>(ranks);
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(TRIAL_SECONDS);
            while (!missing.isEmpty()) {
                Line line = lines.poll(end - System.nanoTime(), TimeUnit.NANOSECONDS);
                boolean isExcluded = line != null && line.words[0].equals("excluded") && ranks.contains(line.rank)
                        && !word.equals("excluded");
                if (line == null || line.words[0].equals("wrong") || isExcluded) {
                    throw new AssertionError(line == null ? "ranks " + missing + " have not said " + word
                            : "rank " + line.rank + ": " + String.join(" ", line.words));
                }
                if (line.words[0].equals(word) && missing.remove(line.rank)) {
                    found[line.rank] = line;
                } else {
                    others.add(line);
                }
            }
            return found;
        }

        void run(long seed, int from, int to) {
            try {
                for (int rank = 0; rank < RANKS; rank++) {
                    start(rank);
                }
                for (int trial = from; trial < to; trial++) {
                    List<Line> others = new ArrayList<>();
                    StringBuilder what = new StringBuilder();
                    try {
                        trial(trial, new Random(seed * 1_000_003 + trial), what, others);
                    } catch (Exception | AssertionError failure) {
                        fail("trial " + trial + ":" + what + ": " + failure, others);
                        restart();
                    }
                    synchronized (Losses.class) {
                        trials++;
                    }
                }
                if (Files.notExists(directory.resolve("failed"))) {
                    try (Stream<Path> files = Files.walk(directory)) {
                        files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
                    }
                }
            } catch (Exception failure) {
                fail("lane " + number + ": " + failure, List.of());
            } finally {
                Stream.of(processes).forEach(Process::destroyForcibly);
            }
        }

        private void restart() throws Exception {
            for (int rank = 0; rank < RANKS; rank++) {
                processes[rank].destroyForcibly().waitFor();
                start(rank);
            }
            lines.clear();
        }

        /** Prints the lines, the decisions and the ends of the logs. */
        private void fail(String what, List<Line> said) {
            synchronized (Losses.class) {
                FAILURES.add(what + "; " + directory);
                System.out.println("FAILED " + what + "; kept " + directory);
                said.forEach(each -> System.out.println("  rank " + each.rank + ": " + String.join(" ", each.words)));
                try (Stream<Path> files = Files.walk(directory)) {
                    Files.writeString(directory.resolve("failed"), what);
                    for (Path file : files.filter(Files::isRegularFile).sorted().toList()) {
                        if (file.getParent().getFileName().toString().startsWith("millrace-decisions")) {
                            System.out.println("  decision " + file.getFileName() + " of "
                                    + Files.getLastModifiedTime(file) + ": "
                                    + HexFormat.of().formatHex(Files.readAllBytes(file)));
                        } else if (file.toString().endsWith(".log")) {
                            List<String> log = Files.readAllLines(file);
                            log.subList(Math.max(0, log.size() - 25), log.size())
                                    .forEach(line -> System.out.println("  " + file.getFileName() + ": " + line));
                        }
                    }
                } catch (IOException e) {
                    System.out.println("  " + e);
                }
            }
        }

        private void trial(int trial, Random random, StringBuilder what, List<Line> others) throws Exception {
            for (int rank = 0; rank < RANKS; rank++) {
                processes[rank].outputWriter().write("file:" + directory.resolve("trial-" + trial) + " " + rank + "\n");
                processes[rank].outputWriter().flush();
            }
            TreeSet<Integer> living = new TreeSet<>(List.of(0, 1, 2, 3, 4));
            await(living, "trains", others);
            TreeSet<Integer> stops = new TreeSet<>();
            Thread.sleep(random.nextInt(MAX_PAUSE_MILLIS));
            long begun = System.nanoTime();
            int count = random.nextInt(1, 3);
            for (int each = 0; each < count; each++) {
                int victim = (int) living.toArray()[random.nextInt(living.size())];
                boolean isStop = random.nextBoolean();
                signal(victim, isStop ? "STOP" : "KILL");
                living.remove(victim);
                what.append(isStop ? " stop " : " kill ").append(victim);
                if (isStop) {
                    stops.add(victim);
                }
                if (random.nextBoolean()) {
                    Thread.sleep(random.nextInt(MAX_BETWEEN_MILLIS));
                }
            }
            Line[] done = await(living, "done", others);
            check(living, done);
            double seconds = others.stream().filter(line -> line.words[0].equals("first"))
                    .mapToLong(line -> line.nanos).max().orElseThrow() / 1e9 - begun / 1e9;
            double shrink = others.stream().filter(line -> line.words[0].equals("shrunk"))
                    .mapToLong(line -> Long.parseLong(line.words[1])).max().orElseThrow() / 1e6;
            for (int rank : stops) {
                signal(rank, "CONT");
            }
            await(stops, "excluded", others);
            synchronized (Losses.class) {
                (stops.isEmpty() ? KILLED : STOPPED).add(seconds);
                if (stops.isEmpty()) {
                    SHRINKS.add(shrink);
                }
                losses += count;
                doubles += count - 1;
                zeros += living.contains(0) ? 0 : 1;
                System.out.printf(Locale.ROOT, "%3d:%s: continues after %.3f s, shrink %.3f s%n", trial, what, seconds,
                        shrink);
            }
            for (int rank = 0; rank < RANKS; rank++) {
                if (!living.contains(rank) && !stops.contains(rank)) {
                    processes[rank].waitFor();
                    start(rank);
                }
            }
        }
    }

    private static void check(TreeSet<Integer> living, Line[] done) {
        Losses reference = new Losses();
        int expected = 0;
        Line first = done[living.first()];
        for (int rank : living) {
            List<String> words = List.of(done[rank].words);
            require(words.get(1).equals("" + expected++), "rank in old order", words);
            require(words.get(2).equals("" + living.size()), "size " + living.size(), words);
            require(words.subList(3, 7).equals(List.of(first.words).subList(3, 7)), "equal ranks", words);
        }
        while (reference.step < Integer.parseInt(first.words[3])) {
            float[] gradient = new float[FEATURES + 1];
            reference.loss(0, 1, gradient);
            for (int i = 0; i <= FEATURES; i++) {
                reference.weights[i] -= RATE * gradient[i] / ROWS;
            }
            reference.step++;
        }
        double loss = reference.loss(0, 1, null) / ROWS;
        require(Math.abs(loss - Double.parseDouble(first.words[5])) < 1e-4 * loss, "loss " + loss,
                List.of(first.words));
    }

    private static void require(boolean condition, String what, List<String> words) {
        if (!condition) {
            throw new AssertionError("expected " + what + ", got " + words);
        }
    }
}
