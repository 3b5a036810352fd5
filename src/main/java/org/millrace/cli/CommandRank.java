package org.millrace.cli;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.Charset;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;

/** A command that runs as one rank: a process of this host, or of another by ssh. */
final class CommandRank {

    /** For what a rank has started and left, to close its output when it is ended. */
    private static final Duration OUTPUT_PATIENCE = Duration.ofSeconds(2);
    /** What ssh itself ends with when it has no connection, or none any more. */
    private static final int SSH_FAILED = 255;

    private final Placement placement;
    private final String token;
    private final Process process;
    private final CommandRanks ranks;
    private final CountDownLatch begun = new CountDownLatch(1);
    private final Thread end;
    /** Its process id where it runs; null until it has told that. */
    private volatile @Nullable String pid;

    /**
     * Starts it.
     *
     * @param shell the command line of the shell that becomes the rank
     * @param todo  what that shell is told to do first; it then writes the token and its process id
     * @throws MillraceException if there is no such shell, or no process can be started
     */
    CommandRank(Placement placement, List<String> shell, String todo, String token, CommandRanks.RankOutput out,
            CommandRanks.RankOutput err, CommandRanks ranks) {
        this.placement = placement;
        this.token = token;
        this.ranks = ranks;
        try {
            process = new ProcessBuilder(shell).start();
        } catch (IOException failure) {
            throw new MillraceException("rank " + placement.rank() + " cannot be started: " + failure.getMessage()
                    + " (" + shell.getFirst() + ")", failure);
        }
        List<Thread> readers =
                List.of(thread("output", () -> out.pass(placement.rank(), process.getInputStream(), this::begins)),
                        thread("messages", () -> err.pass(placement.rank(), process.getErrorStream(), line -> false)));
        end = thread("end", () -> awaitEnd(readers));
        write(todo);
    }

    private Thread thread(String what, Runnable action) {
        return Thread.ofPlatform().daemon().name("rank-" + placement.rank() + "-" + what).start(() -> {
            try {
                action.run();
            } catch (UncheckedIOException unwritten) {
                ranks.unwritten(this, unwritten.getCause());
            }
        });
    }

    Placement placement() {
        return placement;
    }

    /** Whether this line is the one by which the shell says that it is about to become the rank. */
    private boolean begins(String line) {
        if (pid != null || !line.startsWith(token + " ")) {
            return false;
        }
        pid = line.substring(token.length() + 1);
        begun.countDown();
        return true;
    }

    /** Returns when the rank runs, or has ended before. */
    void awaitBegin() throws InterruptedException {
        begun.await();
    }

    private void awaitEnd(List<Thread> readers) {
        try {
            int status = process.waitFor();
            close(); // ends what it has left
            RunDeadline deadline = RunDeadline.after(OUTPUT_PATIENCE);
            for (Thread reader : readers) {
                reader.join(deadline.remaining());
            }
            begun.countDown();
            ranks.ended(this, status);
        } catch (InterruptedException spurious) {
            Thread.currentThread().interrupt(); // nobody interrupts this thread, which belongs to this object
        }
    }

    String describe(int status) {
        String where = placement.isHere() ? "" : " on " + placement.host();
        boolean sshFailed = !placement.isHere() && status == SSH_FAILED;
        if (pid == null) {
            return "it could not be started" + where + ": "
                    + (sshFailed ? "ssh failed, and says why above" : ExitStatus.text(status));
        }
        return "its process (pid " + pid + where + ") ended: "
                + (sshFailed ? "exit status 255, a signal, or the connection was lost" : ExitStatus.text(status));
    }

    /** Passes a signal on to it and all that it has started. */
    void signal(String name) {
        write(name + "\n");
    }

    private synchronized void write(String text) {
        try {
            OutputStream input = process.getOutputStream();
            input.write(text.getBytes(Charset.forName(System.getProperty("sun.jnu.encoding"))));
            input.flush();
        } catch (IOException gone) {
            // its end tells
        }
    }

    /** Ends it and all that it has started, in peace at first. Safe more than once. */
    synchronized void close() {
        try {
            process.getOutputStream().close();
        } catch (IOException gone) {
            // then it has ended
        }
    }

    /** Ends what runs here of it by force: of a rank on another host that is ssh. */
    void terminate() {
        process.destroyForcibly();
    }

    /** Waits until it has ended and the ranks know. */
    boolean awaitEnd(Duration patience) throws InterruptedException {
        return end.join(patience);
    }

    static String quote(String word) {
        return "'" + word.replace("'", "'\\''") + "'";
    }
}
