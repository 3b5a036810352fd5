import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
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
 * Loses random ranks of a training loop, and checks that the others continue: {@code bench/recovery.sh [TRIALS [SEED]]}.
 * In each trial, 5 processes train a model. One or two of them, rank 0 included, are killed (SIGKILL) or stopped
 * (SIGSTOP) at random moments. The others shrink the group and continue. Each trial checks their number, their order,
 * that their weights are equal bit for bit, and that their loss is that of a training in one process. Stopped processes
 * then resume, must be excluded, and take part in the next trial.
 */
public final class Losses {

    private static final int RANKS = 5;
    private static final int FEATURES = 16;
    private static final int ROWS = 4096;
    private static final float RATE = 0.5f;
    private static final int BEFORE = 5;
    private static final int AFTER = 200;
    private static final int MAX_PAUSE_MILLIS = 300;
    /** Maximum time between two losses. The others still train then. */
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
            drive(Integer.parseInt(arguments[0]), Long.parseLong(arguments[1]));
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
                double loss = communicator.allReduce(loss(communicator.rank(), communicator.size(), null), ReduceOp.SUM);
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

    private static final BlockingQueue<Line> LINES = new LinkedBlockingQueue<>();
    private static final Process[] PROCESSES = new Process[RANKS];

    private static void start(int rank) throws IOException {
        Process process = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "--enable-native-access=ALL-UNNAMED", "-cp",
                System.getProperty("java.class.path"), Losses.class.getName(), "rank")
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        PROCESSES[rank] = process;
        Thread.ofPlatform().daemon().start(() -> process.inputReader(StandardCharsets.UTF_8).lines()
                .forEach(line -> LINES.add(new Line(rank, System.nanoTime(), line.split(" ")))));
    }

    private static void signal(int rank, String name) throws Exception {
        new ProcessBuilder("kill", "-" + name, String.valueOf(PROCESSES[rank].pid())).inheritIO().start().waitFor();
    }

    /** Waits for a line with a word from each of the ranks. */
    private static Line[] await(TreeSet<Integer> ranks, String word, List<Line> others) throws InterruptedException {
        Line[] found = new Line[RANKS];
        TreeSet<Integer> missing = new TreeSet<>(ranks);
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(TRIAL_SECONDS);
        while (!missing.isEmpty()) {
            Line line = LINES.poll(end - System.nanoTime(), TimeUnit.NANOSECONDS);
            if (line == null || line.words[0].equals("wrong")) {
                others.forEach(each -> System.err.println("rank " + each.rank + ": " + String.join(" ", each.words)));
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

    private static void drive(int trials, long seed) throws Exception {
        Path directory = Files.createTempDirectory("millrace-losses");
        Random random = new Random(seed);
        List<Double> killed = new ArrayList<>();
        List<Double> stopped = new ArrayList<>();
        List<Double> shrinks = new ArrayList<>();
        int zeros = 0;
        int losses = 0;
        for (int rank = 0; rank < RANKS; rank++) {
            start(rank);
        }
        try {
            for (int trial = 0; trial < trials; trial++) {
                for (int rank = 0; rank < RANKS; rank++) {
                    PROCESSES[rank].outputWriter().write("file:" + directory.resolve("trial-" + trial) + " " + rank + "\n");
                    PROCESSES[rank].outputWriter().flush();
                }
                TreeSet<Integer> living = new TreeSet<>(List.of(0, 1, 2, 3, 4));
                await(living, "trains", new ArrayList<>());
                TreeSet<Integer> stops = new TreeSet<>();
                String what = "";
                Thread.sleep(random.nextInt(MAX_PAUSE_MILLIS));
                long begun = System.nanoTime();
                for (int count = random.nextInt(1, 3); count > 0; count--) {
                    int victim = (int) living.toArray()[random.nextInt(living.size())];
                    boolean isStop = random.nextBoolean();
                    signal(victim, isStop ? "STOP" : "KILL");
                    living.remove(victim);
                    losses++;
                    zeros += victim == 0 ? 1 : 0;
                    what += (isStop ? " stop " : " kill ") + victim;
                    if (isStop) {
                        stops.add(victim);
                    }
                    if (random.nextBoolean()) {
                        Thread.sleep(random.nextInt(MAX_BETWEEN_MILLIS));
                    }
                }
                List<Line> others = new ArrayList<>();
                Line[] done = await(living, "done", others);
                check(living, done);
                double seconds = others.stream().filter(line -> line.words[0].equals("first"))
                        .mapToLong(line -> line.nanos).max().orElseThrow() / 1e9 - begun / 1e9;
                double shrink = others.stream().filter(line -> line.words[0].equals("shrunk"))
                        .mapToLong(line -> Long.parseLong(line.words[1])).max().orElseThrow() / 1e6;
                (stops.isEmpty() ? killed : stopped).add(seconds);
                if (stops.isEmpty()) {
                    shrinks.add(shrink);
                }
                for (int rank : stops) {
                    signal(rank, "CONT");
                }
                await(stops, "excluded", new ArrayList<>());
                System.out.printf(Locale.ROOT, "%3d:%s: continues after %.3f s, shrink %.3f s%n", trial, what, seconds,
                        shrink);
                for (int rank = 0; rank < RANKS; rank++) {
                    if (!living.contains(rank) && !stops.contains(rank)) {
                        PROCESSES[rank].waitFor();
                        start(rank);
                    }
                }
            }
            System.out.printf(Locale.ROOT, "%d trials, %d losses, %d of them rank 0; all continued and are right%n", trials,
                    losses, zeros);
            report("killed: first step after the first loss", killed);
            report("killed: shrink alone", shrinks);
            report("with a stopped rank (stall deadline " + STALL + ", shrink deadline 5s): first step", stopped);
        } finally {
            for (Process process : PROCESSES) {
                process.destroyForcibly();
            }
            try (Stream<Path> files = Files.walk(directory)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
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
        require(Math.abs(loss - Double.parseDouble(first.words[5])) < 1e-4 * loss, "loss " + loss, List.of(first.words));
    }

    private static void require(boolean condition, String what, List<String> words) {
        if (!condition) {
            throw new AssertionError("expected " + what + ", got " + words);
        }
    }

    private static void report(String what, List<Double> seconds) {
        List<Double> sorted = seconds.stream().sorted().toList();
        if (!sorted.isEmpty()) {
            System.out.printf(Locale.ROOT, "%s: %d times, median %.3f s, longest %.3f s%n", what, sorted.size(),
                    sorted.get(sorted.size() / 2), sorted.getLast());
        }
    }
}
