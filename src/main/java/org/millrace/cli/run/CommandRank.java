package org.millrace.cli.run;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.millrace.MillraceException;
import org.millrace.cli.base.ExitStatus;

/**
 * A command that runs as one rank, in a process of this host. The script rank.sh also starts a second process, which
 * ends the command when Millrace's process ends.
 */
final class CommandRank {

    /**
     * Maximum wait for the end of the rank's output. The wait is limited, because processes that an ended rank has
     * started may keep the output open.
     */
    private static final Duration OUTPUT_TIMEOUT = Duration.ofSeconds(2);

    private final int rank;
    private final Process process;
    private final CommandRanks ranks;
    private final Thread end;

    /**
     * @param script text of rank.sh, a shell script that starts the second process and then becomes the command
     * @throws MillraceException if no process can be started
     */
    CommandRank(int rank, CommandRanks.Command command, String script, CommandRanks.RankOutput out,
            CommandRanks.RankOutput err, CommandRanks ranks) {
        this.rank = rank;
        this.ranks = ranks;
        List<String> shell = new ArrayList<>(List.of("sh", "-c", script, String.valueOf(command.grace().toSeconds())));
        shell.addAll(command.words());
        ProcessBuilder builder = new ProcessBuilder(shell);
        command.variables().apply(rank).forEach((name, value) -> {
            if (value.isEmpty()) {
                builder.environment().remove(name);
            } else {
                builder.environment().put(name, value);
            }
        });
        try {
            process = builder.start();
        } catch (IOException failure) {
            throw new MillraceException("rank " + rank + " cannot be started: " + failure.getMessage(), failure);
        }
        List<Thread> readers = List.of(thread("output", () -> pass(out, process.getInputStream())),
                thread("messages", () -> pass(err, process.getErrorStream())));
        end = thread("end", () -> awaitEnd(readers));
    }

    private Thread thread(String role, Runnable action) {
        return Thread.ofPlatform().daemon().name("rank-" + rank + "-" + role).start(action);
    }

    private void pass(CommandRanks.RankOutput to, InputStream from) {
        to.pass(rank, from, unwritten -> ranks.unwritten(this, unwritten));
    }

    int rank() {
        return rank;
    }

    private void awaitEnd(List<Thread> readers) {
        try {
            int status = process.waitFor();
            close(); // ends processes that the rank has started and left running
            RunDeadline deadline = RunDeadline.after(OUTPUT_TIMEOUT);
            for (Thread reader : readers) {
                reader.join(deadline.remaining());
            }
            ranks.ended(this, status);
        } catch (InterruptedException spurious) {
            // An interrupt is impossible: no other object has a reference to this thread, and this object does not
            // interrupt the thread.
            Thread.currentThread().interrupt();
        }
    }

    String describe(int status) {
        return "its process (pid " + process.pid() + ") ended: " + ExitStatus.text(status);
    }

    /** Sends a signal to the rank. Every signal except USR1 is also sent to the processes that the rank has started. */
    synchronized void signal(String name) {
        try {
            OutputStream input = process.getOutputStream();
            input.write((name + "\n").getBytes(StandardCharsets.US_ASCII));
            input.flush();
        } catch (IOException gone) {
            // The rank has exited, and another thread reports the exit.
        }
    }

    /**
     * Ends the rank and the processes that it has started: SIGTERM first, SIGKILL after the grace period. Idempotent.
     */
    synchronized void close() {
        try {
            process.getOutputStream().close();
        } catch (IOException gone) {
            // The rank has ended already, so it needs no notification.
        }
    }

    void terminate() {
        process.destroyForcibly();
    }

    /** Waits until the rank has exited and its exit is reported. Returns false on a timeout. */
    boolean awaitEnd(Duration timeout) throws InterruptedException {
        return end.join(timeout);
    }
}
