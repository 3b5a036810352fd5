package org.millrace.cli;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.millrace.MillraceException;
import org.millrace.config.Settings;

/** Ranks as processes of their own. */
final class ProcessRanks implements Ranks {

    /** For a rank that was told to end to do so in peace; then it is terminated, then killed. */
    private static final Duration PATIENCE = Duration.ofSeconds(3);

    private final List<RankProcess> processes = new ArrayList<>();
    private final int size;
    private final IntFunction<List<String>> command;
    private final IntFunction<Map<String, String>> variables;
    private final Consumer<RankEvent> events;
    private final PrintWriter err;
    private boolean stopped;

    /** {@code variables} are those of a rank besides, unless they are set there already. */
    ProcessRanks(int size, IntFunction<List<String>> command, IntFunction<Map<String, String>> variables,
            Consumer<RankEvent> events, PrintWriter err) {
        this.size = size;
        this.command = command;
        this.variables = variables;
        this.events = events;
        this.err = err;
    }

    @Override
    public synchronized void start() {
        for (int rank = 0; rank < size && !stopped; rank++) {
            processes.add(RankProcess.start(rank, command.apply(rank), variables.apply(rank), events, err));
        }
    }

    @Override
    public synchronized void stop() {
        stopped = true;
        processes.forEach(RankProcess::askToEnd);
        if (!awaitEnd(PATIENCE)) {
            processes.forEach(rank -> rank.process.destroy());
            if (!awaitEnd(PATIENCE)) {
                processes.forEach(rank -> rank.process.destroyForcibly());
                awaitEnd(PATIENCE);
            }
        }
    }

    @Override
    public synchronized boolean awaitEnd(Duration patience) {
        RunDeadline deadline = RunDeadline.after(patience);
        boolean ended = true;
        for (RankProcess process : processes) {
            ended &= process.awaitEnd(deadline.remaining());
        }
        return ended;
    }

    /**
     * Ranks that NCCL takes for ranks of one host use NVLink or shared memory, with no network between them and no
     * proxy to measure. A host id of its own makes each rank a host; a user who wants them on one sets
     * {@code NCCL_HOSTID} to anything. NCCL names its threads, so that they can be told from others. Kernels are loaded
     * at once, and not when they are launched: for that CUDA may wait until those have ended which wait for copies.
     */
    static Map<String, String> hostWithGpus(int number) {
        Map<String, String> variables = new HashMap<>(host(number));
        variables.putAll(Map.of("NCCL_SET_THREAD_NAME", "1", "CUDA_MODULE_LOADING", "EAGER"));
        return variables;
    }

    /** What makes a host of the ranks that have it. */
    static Map<String, String> host(int number) {
        return Map.of(Settings.HOST_ID.name(), hostName(number));
    }

    /** What a run's host is called, from 0 on: short, as pairs of {@code MILLRACE_LINK} are of such names. */
    static String hostName(int number) {
        return "host" + number;
    }

    /**
     * A rank in a process of its own. It writes events to its standard output; everything else it writes is passed on
     * with its rank before it. It ends by itself when its standard input does, so that it never outlives this process,
     * however that ends.
     */
    private static final class RankProcess {

        /** What a JVM says last that {@link JavaCommand} started. */
        private static final String OUT_OF_MEMORY = "java.lang.OutOfMemoryError";

        private final int rank;
        private final Process process;
        private final Consumer<RankEvent> events;
        private final PrintWriter err;
        private final Thread outputReader;
        private final Thread errorReader;

        private RankProcess(int rank, Process process, Consumer<RankEvent> events, PrintWriter err) {
            this.rank = rank;
            this.process = process;
            this.events = events;
            this.err = err;
            outputReader = Thread.ofPlatform().daemon().name("rank-" + rank + "-output").start(this::readOutput);
            errorReader = Thread.ofPlatform()
                    .daemon()
                    .name("rank-" + rank + "-messages")
                    .start(() -> readLines(process.errorReader(), this::relay));
        }

        static RankProcess start(int rank, List<String> command, Map<String, String> variables,
                Consumer<RankEvent> events, PrintWriter err) {
            try {
                ProcessBuilder builder = JavaCommand.builder(command);
                variables.forEach(builder.environment()::putIfAbsent);
                return new RankProcess(rank, builder.start(), events, err);
            } catch (IOException failure) {
                throw new MillraceException("rank " + rank + " cannot be started: " + failure.getMessage() + " ("
                        + command.getFirst() + ")", failure);
            }
        }

        private void readOutput() {
            boolean[] last = {false};
            String[] memory = {null};
            readLines(process.inputReader(), line -> {
                int at = line.indexOf(OUT_OF_MEMORY);
                memory[0] = at < 0 ? memory[0] : line.substring(at + OUT_OF_MEMORY.length());
                Optional<RankEvent> event = EventCodec.decode(line);
                event.ifPresentOrElse(events, () -> relay(line));
                last[0] |= event.filter(one -> one instanceof RankEvent.Finished || one instanceof RankEvent.Failed)
                        .isPresent();
            });
            int status = waitFor();
            if (!last[0]) {
                String why = memory[0] == null ? ExitStatus.text(status)
                        : "memory ran out" + memory[0] + "; smaller sizes and fewer ranks need less";
                events.accept(
                        new RankEvent.Failed(rank, "its process (pid " + process.pid() + ") died: " + why, "", true));
            }
        }

        private static void readLines(BufferedReader reader, Consumer<String> action) {
            try (reader) {
                for (String line = reader.readLine(); line != null; line = reader.readLine()) {
                    action.accept(line);
                }
            } catch (IOException | UncheckedIOException closed) {
                // the process is gone; its exit status tells
            }
        }

        private void relay(String line) {
            err.println("[rank " + rank + "] " + line);
        }

        private int waitFor() {
            while (true) {
                try {
                    return process.waitFor();
                } catch (InterruptedException spurious) {
                    // nobody interrupts this thread, which belongs to this object
                }
            }
        }

        /** Ends its standard input: then it aborts. */
        void askToEnd() {
            try {
                process.getOutputStream().close();
            } catch (IOException gone) {
                // then it need not be asked
            }
        }

        /** Waits until it has ended and everything it wrote has been passed on. */
        boolean awaitEnd(Duration patience) {
            RunDeadline deadline = RunDeadline.after(patience);
            try {
                return process.waitFor(patience.toNanos(), TimeUnit.NANOSECONDS) && outputReader.join(atLeast(deadline))
                        && errorReader.join(atLeast(deadline));
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
                return false;
            }
        }

        /** Its output is read even if it ended at the last moment. */
        private static Duration atLeast(RunDeadline deadline) {
            Duration left = deadline.remaining();
            return left.toMillis() > 100 ? left : Duration.ofMillis(100);
        }
    }
}
