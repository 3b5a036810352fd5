package org.millrace.cli.run;

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
import org.millrace.cli.base.ExitStatus;
import org.millrace.config.Settings;

/** Ranks that are separate processes. */
public final class ProcessRanks implements Ranks {

    /**
     * Maximum time for ranks to end after each of three steps: the close of their standard input, SIGTERM, and SIGKILL.
     */
    private static final Duration TIMEOUT = Duration.ofSeconds(3);

    private final List<RankProcess> processes = new ArrayList<>();
    private final int size;
    private final IntFunction<List<String>> command;
    private final IntFunction<Map<String, String>> variables;
    private final Consumer<RankEvent> events;
    private final PrintWriter err;
    private boolean stopped;

    /**
     * Creates the ranks. {@code variables} are added to a rank's environment, except for variables that this process's
     * environment contains.
     */
    public ProcessRanks(int size, IntFunction<List<String>> command, IntFunction<Map<String, String>> variables,
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
        if (!awaitEnd(TIMEOUT)) {
            processes.forEach(rank -> rank.process.destroy());
            if (!awaitEnd(TIMEOUT)) {
                processes.forEach(rank -> rank.process.destroyForcibly());
                awaitEnd(TIMEOUT);
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
     * Returns the environment variables of a host with GPUs. The variables give each rank a separate host id, so that
     * NCCL treats each rank as a host. With a common host id, NCCL would connect the ranks by NVLink or shared memory.
     * The run could then not measure the network and the proxy. A user who wants all ranks on one host sets {@code
     * NCCL_HOSTID} to any value. The variables also make NCCL name its threads, and make CUDA load kernels eagerly. By
     * default, CUDA loads a kernel at its launch. This load might wait for running kernels, and these kernels may wait
     * for copies.
     */
    public static Map<String, String> hostWithGpus(int number) {
        Map<String, String> variables = new HashMap<>(host(number));
        variables.putAll(Map.of("NCCL_SET_THREAD_NAME", "1", "CUDA_MODULE_LOADING", "EAGER"));
        return variables;
    }

    /** Returns the environment variables of a host. Ranks with equal variables count as ranks of one host. */
    public static Map<String, String> host(int number) {
        return Map.of(Settings.HOST_ID.name(), hostName(number));
    }

    /**
     * Returns the name of a host of a run, by its number from 0. The name is short, because users write pairs of such
     * names in {@code MILLRACE_LINK}.
     */
    public static String hostName(int number) {
        return "host" + number;
    }

    /**
     * A rank in a separate process. The rank writes events to its standard output. All other output is passed on with
     * the rank as a prefix. The rank's process ends when its standard input ends, so that it never outlives this
     * process.
     */
    private static final class RankProcess {

        /** Beginning of the last message of a JVM that has no memory left, see {@link JavaCommand}. */
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
            try {
                readLines(process.inputReader(), line -> {
                    int at = line.indexOf(OUT_OF_MEMORY);
                    memory[0] = at < 0 ? memory[0] : line.substring(at + OUT_OF_MEMORY.length());
                    Optional<RankEvent> event = EventCodec.decode(line);
                    event.ifPresentOrElse(events, () -> relay(line));
                    last[0] |= event.filter(one -> one instanceof RankEvent.Finished || one instanceof RankEvent.Failed)
                            .isPresent();
                });
            } catch (RuntimeException | Error failure) { // for example an event that other output of the rank has cut
                if (!last[0]) {
                    events.accept(RankEvent.Failed.of(rank, failure));
                }
                return;
            }
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
                // the process has ended, and the exit status shows the reason
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
                    // An interrupt is impossible: no other object has a reference to this thread, and this object does
                    // not interrupt the thread.
                }
            }
        }

        /** Closes the process's standard input, so that the rank aborts. */
        void askToEnd() {
            try {
                process.getOutputStream().close();
            } catch (IOException gone) {
                // the process has already ended
            }
        }

        /** Waits until the process has ended and all its output has been passed on. */
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

        /**
         * Returns the time until the deadline, but at least 100 ms. These 100 ms suffice to read the output of a
         * process that has just ended.
         */
        private static Duration atLeast(RunDeadline deadline) {
            Duration left = deadline.remaining();
            return left.toMillis() > 100 ? left : Duration.ofMillis(100);
        }
    }
}
