package org.millrace.bench.soak;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.millrace.trace.Hang;
import org.millrace.trace.TraceReader;
import org.millrace.trace.TracedProcess.Message;
import org.millrace.trace.TracedProcess;
import org.millrace.trace.Verdict.Cause;
import org.millrace.trace.Verdict;

/**
 * Healthy jobs with ranks that pause at random, some for longer than a verdict needs. Meanwhile the program requests
 * verdicts repeatedly. A verdict is right if it names a rank that has not launched, that paused before its launch, and
 * that had not launched when the verdict's last reading began. Every other verdict is false, and so is every report
 * that the ranks log themselves. The exit status is 1 if one was false, or if a job failed.
 *
 * <pre>
 *   java -cp bench/target/millrace-bench.jar org.millrace.bench.soak.SlowJob MINUTES [SEED]
 * </pre>
 */
public final class SlowJob {

    private static final Duration QUIET = Duration.ofSeconds(1);
    private static final long EVERY_MILLIS = 100;
    /**
     * Maximum time from a reading of the traces to a rank's own report, which a thread prepares and which reads all
     * files first.
     */
    private static final long SAID_NANOS = 1_000_000_000;
    private static final int OPERATIONS = 60;
    private static final long TIMEOUT_NANOS = TimeUnit.MINUTES.toNanos(20);
    private static final String[] NETWORKS = {"auto", "auto", "shm", "socket"};
    private static final Pattern PAUSE = Pattern.compile("pause (\\d+) (\\d+)");
    private static final Pattern TOLD = Pattern.compile("nothing moves: Rank (\\d+) \\(.*has not launched.*");

    /**
     * A report that rank {@code rank} has not launched, made between two times of the host's clock. The rank is -1 for
     * any other report.
     */
    private record Told(long from, long to, int rank, String sentence) {
    }

    private final Path directory;
    private final Random random;
    private final Set<String> heard = new HashSet<>();
    private long jobs;
    private long asked;
    private long slowestNanos;
    private long right;
    private long wrong;

    private SlowJob(Path directory, long seed) {
        this.directory = directory;
        this.random = new Random(seed);
    }

    /** Runs for the minutes given first, with the seed given second. */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 0 || !arguments[0].matches("\\d+(\\.\\d+)?")) {
            System.err.println("usage: org.millrace.bench.soak.SlowJob MINUTES [SEED]");
            System.exit(2);
        }
        long seed = arguments.length > 1 ? Long.parseLong(arguments[1]) : System.nanoTime();
        System.out.println("seed " + seed);
        long end = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * TimeUnit.MINUTES.toNanos(1));
        SlowJob slow = new SlowJob(Files.createTempDirectory("millrace-slow-"), seed);
        boolean well = true;
        while (well && System.nanoTime() - end < 0) {
            well = slow.job();
            System.out.println(slow);
        }
        System.exit(well && slow.wrong == 0 ? 0 : 1);
    }

    private boolean job() throws Exception {
        int size = 2 + random.nextInt(4);
        long seed = random.nextLong();
        String network = NETWORKS[random.nextInt(NETWORKS.length)];
        String delay = "delay:frame=" + (1 + random.nextInt(50)) + ",polls=10";
        List<Process> ranks = new ArrayList<>();
        for (int rank = 0; rank < size; rank++) {
            List<String> command =
                    new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                            "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m",
                            "--enable-native-access=ALL-UNNAMED", "-cp", System.getProperty("java.class.path"),
                            SlowRank.class.getName(), "file:" + directory.resolve("group"), Integer.toString(rank),
                            Integer.toString(size), Long.toString(seed), Integer.toString(OPERATIONS),
                            "MILLRACE_NET=" + network, "MILLRACE_STALL_REPORT=2s", "MILLRACE_STALL_DEADLINE=300s",
                            "MILLRACE_CONNECT_DEADLINE=300s", "MILLRACE_TRACE_DIRECTORY=" + directory));
            if (!network.equals("auto")) {
                command.add("MILLRACE_FAULT=" + delay);
            }
            ranks.add(new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output(rank)).start());
        }
        List<Told> told = new ArrayList<>();
        long end = System.nanoTime() + TIMEOUT_NANOS;
        while (ranks.stream().anyMatch(Process::isAlive) && System.nanoTime() - end < 0) {
            ask(told);
            Thread.sleep(EVERY_MILLIS);
        }
        jobs++;
        List<List<long[]>> pauses = new ArrayList<>();
        boolean well = true;
        for (int rank = 0; rank < size; rank++) {
            String printed = Files.readString(output(rank).toPath());
            if (!printed.contains("done\n")) {
                well = false;
                System.out.println("rank " + rank + " over " + network + " did not end:\n" + printed);
            }
            pauses.add(PAUSE.matcher(printed)
                    .results()
                    .map(each -> new long[] {Long.parseLong(each.group(1)), Long.parseLong(each.group(2))})
                    .toList());
        }
        ranks.forEach(Process::destroyForcibly);
        for (Told each : told) {
            judge(each, pauses, network);
        }
        return well;
    }

    private java.io.File output(int rank) {
        return directory.resolve("output-" + rank).toFile();
    }

    private void ask(List<Told> told) throws IOException {
        long begun = System.nanoTime();
        long[] from = new long[1];
        List<TracedProcess> processes = new ArrayList<>();
        List<Verdict> verdicts = Hang.verdicts(() -> {
            from[0] = System.nanoTime();
            processes.clear();
            processes.addAll(TraceReader.readAll(directory, (file, problem) -> {}));
            return List.copyOf(processes);
        }, QUIET);
        long to = System.nanoTime();
        for (Verdict verdict : verdicts) {
            told.add(new Told(from[0], to, verdict.cause() == Cause.NOT_LAUNCHED ? verdict.rank() : -1,
                    verdict.sentence()));
        }
        slowestNanos = Math.max(slowestNanos, to - begun);
        asked++;
        for (TracedProcess process : processes) {
            for (Message message : process.messages()) {
                if (heard.add(process.identity().pid() + " " + message.time())) {
                    Matcher words = TOLD.matcher(message.text());
                    told.add(new Told(message.time() - SAID_NANOS, message.time(),
                            words.matches() ? Integer.parseInt(words.group(1)) : -1, message.text()));
                }
            }
        }
    }

    private void judge(Told told, List<List<long[]>> pauses, String network) {
        if (told.rank >= 0 && pauses.get(told.rank)
                .stream()
                .anyMatch(pause -> pause[0] - told.to < 0 && pause[1] - told.from > 0)) {
            right++;
        } else {
            wrong++;
            System.out.println("FALSE over " + network + ", at " + told.from + " to " + told.to + ": " + told.sentence);
            for (int rank = 0; rank < pauses.size(); rank++) {
                for (long[] pause : pauses.get(rank)) {
                    if (pause[0] - told.to < 0 && pause[1] - told.from > -5_000_000_000L) {
                        System.out.println("  rank " + rank + " paused " + pause[0] + " to " + pause[1]);
                    }
                }
            }
        }
    }

    @Override
    public String toString() {
        return jobs + " jobs, asked " + asked + " times, " + right + " verdicts on ranks that paused, " + wrong
                + " false; the slowest answer took " + slowestNanos / 1_000_000 + " ms";
    }
}
