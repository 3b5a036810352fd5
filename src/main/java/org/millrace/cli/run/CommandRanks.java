package org.millrace.cli.run;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.cli.base.ExitStatus;
import org.millrace.cli.base.Resource;

/** Ranks that run a command on this host. */
final class CommandRanks implements Ranks {

    /**
     * The command that all ranks run.
     *
     * @param words     the command and its arguments
     * @param variables additional environment variables of a rank; an empty value removes a variable of this process
     * @param grace     time from the signal that asks a rank to end until SIGKILL, in whole seconds
     */
    record Command(List<String> words, IntFunction<Map<String, String>> variables, Duration grace) {
    }

    /** Signals that ask a program to end. */
    private static final List<String> ENDING = List.of("INT", "TERM", "HUP");
    /** Maximum time that processes need to end after SIGKILL. */
    private static final Duration KILLED = Duration.ofSeconds(3);

    private final int size;
    private final Command command;
    private final RankOutput out;
    private final RankOutput err;
    private final @Nullable PrintWriter failures;
    private final Consumer<RankEvent> events;
    private final String script = Resource.text(CommandRanks.class, "rank.sh");
    private final List<CommandRank> started = new ArrayList<>();
    private @Nullable Signals signals;
    private boolean stopped;
    private int status;
    private boolean survived;
    /**
     * First signal that asked this program to end, and the time at which all ranks must have ended. Both are null until
     * such a signal has arrived.
     */
    private @Nullable String ending;
    private @Nullable RunDeadline end;

    /**
     * @param failures receives each rank's failure, and the run continues; null if a failure ends the run
     */
    CommandRanks(int size, Command command, OutputStream out, OutputStream err, @Nullable PrintWriter failures,
            Consumer<RankEvent> events) {
        this.size = size;
        this.command = command;
        this.out = new RankOutput(out);
        this.err = new RankOutput(err);
        this.failures = failures;
        this.events = events;
    }

    @Override
    public void start() {
        synchronized (this) {
            signals = new Signals(this::pass);
        }
        for (int rank = 0; rank < size; rank++) {
            start(rank);
        }
    }

    private synchronized void start(int rank) {
        if (stopped) {
            events.accept(new RankEvent.Finished(rank));
            return;
        }
        try {
            started.add(new CommandRank(rank, command, script, out, err, this));
        } catch (MillraceException failure) {
            fail(rank, String.valueOf(failure.getMessage()), 1, true);
        }
    }

    /** Records the exit of a rank's process. Called after all output of the process was passed on. */
    synchronized void ended(CommandRank rank, int code) {
        int number = rank.rank();
        if (code == 0) {
            survived = true;
            events.accept(new RankEvent.Finished(number));
        } else if (ending != null && code == ExitStatus.of(ending)) {
            // The rank ended because of the signal that was passed on to it, so it has not failed.
            status = status == 0 ? code : status;
            events.accept(new RankEvent.Finished(number));
        } else {
            String forced =
                    ending == null || code != ExitStatus.of("KILL") ? "" : " (SIG" + ending + " had been passed on)";
            fail(number, rank.describe(code) + forced, code, true);
        }
    }

    synchronized void unwritten(CommandRank rank, IOException why) {
        fail(rank.rank(), "what it writes cannot be passed on: " + why.getMessage(), 0, false);
    }

    private void fail(int rank, String message, int code, boolean died) {
        // A rank that the run has stopped did not fail by itself.
        status = status == 0 && (!stopped || ending != null) ? code : status;
        if (failures == null) {
            events.accept(new RankEvent.Failed(rank, message, "", died));
            return;
        }
        failures.println("millrace: rank " + rank + ": " + message
                + (died ? "; the other ranks continue" : "; the rank continues"));
        failures.flush();
        if (died) {
            events.accept(new RankEvent.Finished(rank));
        }
    }

    /**
     * Returns the exit status of the first rank that did not end with 0; 0 if all ranks ended with 0. Also returns 0 if
     * failures do not end the run, at least one rank ended with 0, and no ending signal has arrived.
     */
    synchronized int status() {
        return failures != null && survived && ending == null ? 0 : status;
    }

    /** Returns the first ending signal, which was passed on to the ranks; null if no ending signal has arrived. */
    synchronized @Nullable String ending() {
        return ending;
    }

    /**
     * Passes a signal on to all ranks. The ranks are killed after a second ending signal, or when the grace period
     * after the first ending signal has passed.
     */
    void pass(String signal) {
        synchronized (this) {
            boolean again = ending != null && ENDING.contains(signal);
            started.forEach(rank -> rank.signal(again ? "KILL" : signal));
            if (again || !ENDING.contains(signal)) {
                return;
            }
            stopped = true;
            ending = signal;
            end = RunDeadline.after(command.grace);
        }
        Thread.ofPlatform().daemon().name("grace").start(() -> {
            if (!awaitEnd(command.grace)) {
                all().forEach(rank -> rank.signal("KILL"));
            }
        });
    }

    private synchronized List<CommandRank> all() {
        return List.copyOf(started);
    }

    @Override
    public void stop() {
        RunDeadline asked;
        Signals heard;
        synchronized (this) {
            stopped = true;
            asked = end;
            heard = signals;
            signals = null;
        }
        if (asked == null || !awaitEnd(asked.remaining())) {
            all().forEach(CommandRank::close);
            if (!awaitEnd(command.grace.plus(KILLED))) {
                all().forEach(CommandRank::terminate);
            }
        }
        if (heard != null) {
            heard.close();
        }
    }

    @Override
    public boolean awaitEnd(Duration patience) {
        RunDeadline deadline = RunDeadline.after(patience);
        try {
            for (CommandRank rank : all()) {
                if (!rank.awaitEnd(deadline.remaining())) {
                    return false;
                }
            }
            return true;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /**
     * Makes signals of this process call a function instead of ending the process. Uses {@code sun.misc.Signal} of
     * {@code jdk.unsupported}, because Java has no other API for signals. Accesses that class by reflection, because
     * the compiler warns about direct access. Without {@code jdk.unsupported}, signals end this process as usual.
     */
    static final class Signals implements AutoCloseable {

        /** Handled signals. SIGQUIT and SIGUSR2 are missing, because the JVM uses them itself. */
        static final List<String> NAMES = List.of("INT", "TERM", "HUP", "USR1");

        private final List<Runnable> undo = new ArrayList<>();

        /** @param to receives the name of each signal that arrives, on a thread of the JVM */
        Signals(Consumer<String> to) {
            try {
                Class<?> signal = Class.forName("sun.misc.Signal");
                Class<?> handler = Class.forName("sun.misc.SignalHandler");
                Method handle = signal.getMethod("handle", signal, handler);
                Object ignore = handler.getField("SIG_IGN").get(null);
                for (String name : NAMES) {
                    Object number = signal.getConstructor(String.class).newInstance(name);
                    Object before = handle.invoke(null, number, handler(handler, () -> to.accept(name)));
                    if (before == ignore) {
                        handle.invoke(null, number, before); // ignored signals stay ignored, as with nohup
                    } else {
                        undo.add(() -> restore(handle, number, before));
                    }
                }
            } catch (ReflectiveOperationException absent) {
                // Without handlers, the signals end this process. The ranks end when this process ends.
            }
        }

        private static Object handler(Class<?> type, Runnable action) {
            InvocationHandler method = (proxy, called, arguments) -> switch (called.getName()) {
                case "handle" -> {
                    action.run();
                    yield null;
                }
                case "equals" -> proxy == arguments[0];
                case "hashCode" -> System.identityHashCode(proxy);
                default -> type.getName();
            };
            return Proxy.newProxyInstance(Signals.class.getClassLoader(), new Class<?>[] {type}, method);
        }

        private static void restore(Method handle, Object number, Object before) {
            try {
                handle.invoke(null, number, before);
            } catch (ReflectiveOperationException unexpected) {
                throw new IllegalStateException(unexpected);
            }
        }

        @Override
        public void close() {
            undo.forEach(Runnable::run);
        }
    }

    /**
     * Destination of the ranks' output. Writes one line at a time, each with its rank as a prefix. Bytes are not
     * decoded, so that output in any encoding stays unchanged. Callable from any thread.
     */
    static final class RankOutput {

        /** Maximum length of a line, in bytes. Longer lines are divided, so that memory is bounded. */
        private static final int LONGEST_LINE = 1 << 20;

        private final OutputStream to;

        RankOutput(OutputStream to) {
            this.to = to;
        }

        /**
         * Passes on the output of a rank until the output ends. A carriage return also ends a line, so that a progress
         * display is passed on immediately. If the destination fails, the rest of the output is read and discarded, so
         * that the rank neither waits nor is ended by SIGPIPE.
         *
         * @param unwritten called at most once, with the failure of the destination
         */
        void pass(int rank, InputStream from, Consumer<IOException> unwritten) {
            byte[] prefix = ("[rank " + rank + "] ").getBytes(StandardCharsets.US_ASCII);
            ByteArrayOutputStream line = new ByteArrayOutputStream();
            try {
                InputStream bytes = new BufferedInputStream(from);
                boolean returned = false;
                for (int next = read(bytes); next >= 0; next = read(bytes)) {
                    boolean end = next == '\r' || next == '\n';
                    if (end && !(next == '\n' && returned)) {
                        write(prefix, line);
                    } else if (!end) {
                        line.write(next);
                        if (line.size() == LONGEST_LINE) {
                            write(prefix, line);
                        }
                    }
                    returned = next == '\r';
                }
                if (line.size() > 0) {
                    write(prefix, line);
                }
            } catch (IOException failed) {
                unwritten.accept(failed);
                discard(from);
            }
        }

        private static void discard(InputStream from) {
            byte[] rest = new byte[1 << 16];
            try {
                while (from.read(rest) >= 0) {
                    // The bytes are discarded.
                }
            } catch (IOException closed) {
                // An error is treated like the end of the output.
            }
        }

        /** Returns the next byte. Treats a read error as the end of the output. */
        private static int read(InputStream bytes) {
            try {
                return bytes.read();
            } catch (IOException closed) {
                return -1;
            }
        }

        private void write(byte[] prefix, ByteArrayOutputStream line) throws IOException {
            byte[] whole = new byte[prefix.length + line.size() + 1];
            System.arraycopy(prefix, 0, whole, 0, prefix.length);
            System.arraycopy(line.toByteArray(), 0, whole, prefix.length, line.size());
            whole[whole.length - 1] = '\n';
            synchronized (this) {
                to.write(whole);
                to.flush();
            }
            line.reset();
        }
    }
}
