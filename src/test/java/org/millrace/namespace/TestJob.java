package org.millrace.namespace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.millrace.plugin.HostProgram;
import org.millrace.trace.Hang;
import org.millrace.trace.TracedProcess;
import org.millrace.trace.TraceReader;
import org.millrace.trace.Verdict;

/** A job with a rank on each host of a network: its processes, their output, and their progress. */
final class TestJob implements AutoCloseable {

    private static final String SECRET = "a-secret-of-twenty-characters";
    private static final int RENDEZVOUS = 4711;
    private static final Duration TIMEOUT = Duration.ofSeconds(90);
    private static final Pattern WHO = Pattern.compile("(?:^millrace|Millrace: GIN): rank (\\d)");
    private static final String ROUND = "AT ";

    /** A line of output, with the rank that printed the line; -1 if the rank is unknown. */
    record Said(int rank, String text, long time) {
    }

    private final TestNetwork network;
    private final int size;
    private final List<Said> said = Collections.synchronizedList(new ArrayList<>());
    private final AtomicLongArray rounds;
    final List<Process> processes = new ArrayList<>();

    TestJob(TestNetwork network) {
        this.network = network;
        size = network.hosts.size();
        rounds = new AtomicLongArray(size);
    }

    /**
     * Starts ranks of the engine that run the given number of rounds, and waits until they have completed ten rounds.
     *
     * @param addresses beginning of the hosts' addresses, without the last number
     */
    void startEngine(String addresses, long count, String... settings) throws Exception {
        for (int rank = 0; rank < size; rank++) {
            List<String> arguments = new ArrayList<>(List.of("tcp:" + addresses + "1:" + RENDEZVOUS, "" + rank,
                    "" + size, "" + count, "MILLRACE_SECRET=" + SECRET, "MILLRACE_STALL_DEADLINE=200s"));
            arguments.addAll(List.of(settings));
            follow(network.hosts.get(rank).java(EndlessRank.class, arguments.toArray(String[]::new)), rank);
        }
        await("10 rounds", () -> rounds() >= 10);
    }

    /** Starts a C host program. Its ranks are processes that enter the namespaces of the hosts. */
    void startHost(HostProgram program, Object... arguments) throws Exception {
        program.withNetwork("socket")
                .with("MILLRACE_THREADS", "1")
                .with("MILLRACE_SECRET", SECRET)
                .with("TEST_HOSTS",
                        network.hosts.stream().map(each -> "" + each.pid()).collect(Collectors.joining(",")));
        follow(program.startPiped(arguments), -1);
    }

    private void follow(Process process, int rank) {
        processes.add(process);
        Thread.ofPlatform().daemon().start(() -> {
            try (BufferedReader lines = process.inputReader()) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    take(line, rank);
                }
            } catch (IOException ended) {
                // The test has closed the stream.
            }
        });
    }

    private void take(String line, int rank) {
        if (line.startsWith(ROUND)) {
            for (int i = 0; i < size; i++) {
                if (rank == i || rank < 0) {
                    rounds.set(i, Long.parseLong(line.substring(ROUND.length())));
                }
            }
            return;
        }
        Matcher who = WHO.matcher(line);
        int of = who.find() ? Integer.parseInt(who.group(1)) : rank;
        said.add(new Said(of, line, System.nanoTime()));
    }

    /** Returns the number of rounds that all ranks have reported. */
    long rounds() {
        long least = Long.MAX_VALUE;
        for (int rank = 0; rank < size; rank++) {
            least = Math.min(least, rounds.get(rank));
        }
        return least;
    }

    /** Returns the number of rounds of the fastest rank. */
    long furthest() {
        long most = 0;
        for (int rank = 0; rank < size; rank++) {
            most = Math.max(most, rounds.get(rank));
        }
        return most;
    }

    List<Said> said() {
        synchronized (said) {
            return List.copyOf(said);
        }
    }

    List<String> saidBy(int rank) {
        return said().stream().filter(each -> each.rank == rank).map(Said::text).toList();
    }

    boolean says(int rank, String text) {
        return saidBy(rank).stream().anyMatch(each -> each.contains(text));
    }

    void await(String what, BooleanSupplier condition) {
        assertTrue(becomes(TIMEOUT, condition), () -> what + ": " + said);
    }

    /** Returns whether a condition becomes true within the given time. */
    boolean becomes(Duration time, BooleanSupplier condition) {
        long end = System.nanoTime() + time.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - end >= 0) {
                return false;
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
        }
        return true;
    }

    /** Waits for the duration of a fault. */
    void await(Duration time) {
        becomes(time, () -> false);
    }

    /**
     * Checks that all ranks complete more rounds than the fastest rank has completed so far. No rank may have printed
     * an error.
     */
    void assertGoesOn() {
        long done = furthest();
        await("more rounds than " + done, () -> rounds() > done);
        assertEquals(List.of(),
                said().stream().filter(each -> each.rank >= 0 && !each.text.contains("nothing moves.")).toList());
    }

    /** Returns the traces of the ranks on a host. */
    List<TracedProcess> traces(int host) throws IOException {
        return TraceReader.readAll(network.hosts.get(host).sharedDirectory(), (file, problem) -> {});
    }

    long framesOn(int host) {
        try {
            return traces(host).stream()
                    .flatMap(process -> process.connections().stream())
                    .mapToLong(connection -> connection.frames())
                    .sum();
        } catch (IOException e) {
            return 0;
        }
    }

    /** Returns a rank's process number from the trace, because a host program starts ranks as child processes. */
    long pid(int rank) throws IOException {
        return traces(rank).getFirst().identity().pid();
    }

    /** Returns the verdicts of {@code millrace why} on a host, from the traces of that host only. */
    List<Verdict> why(int host) throws IOException {
        return Hang.verdicts(() -> traces(host), Duration.ofSeconds(1));
    }

    @Override
    public void close() {
        processes.forEach(Process::destroyForcibly);
        for (Process each : processes) {
            each.onExit().join();
        }
    }
}
