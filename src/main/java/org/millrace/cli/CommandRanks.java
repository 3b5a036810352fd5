package org.millrace.cli;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;

/** Ranks that run a command. */
final class CommandRanks implements Ranks {

    /**
     * What runs.
     *
     * @param words     the command and its arguments
     * @param variables what a rank has in its environment besides; an empty value means that it has no such variable
     * @param ssh       the command that runs another on another host, with its options
     * @param grace     between a signal that ends, and the end by force: whole seconds
     */
    record Command(Function<Placement, List<String>> words, Function<Placement, Map<String, String>> variables,
            List<String> ssh, Duration grace) {
    }

    /** The signals that ask a program to end. */
    private static final List<String> ENDING = List.of("INT", "TERM", "HUP");
    /** After the kill: for processes to be gone. */
    private static final Duration KILLED = Duration.ofSeconds(3);
    /** Reads, byte by byte, up to a line that is the token; the rest of standard input is signals. For any shell. */
    private static final String READ_AND_RUN =
            "s=$(while IFS= read -r l && case $l in %s) false;; esac; do printf \"%%s\\n\" \"$l\"; done); eval \"$s\"";

    private final List<Placement> placements;
    private final Command command;
    private final RankOutput out;
    private final RankOutput err;
    private final Consumer<RankEvent> events;
    private final String script = script();
    private final String token = "millrace-" + UUID.randomUUID();
    private final List<CommandRank> started = new ArrayList<>();
    private @Nullable Signals signals;
    private boolean stopped;
    private int status;
    /** The first signal that was passed on and asks to end, and until when the ranks may take to do so. */
    private @Nullable String ending;
    private @Nullable RunDeadline end;

    CommandRanks(List<Placement> placements, Command command, OutputStream out, OutputStream err,
            Consumer<RankEvent> events) {
        this.placements = placements;
        this.command = command;
        this.out = new RankOutput(out);
        this.err = new RankOutput(err);
        this.events = events;
    }

    private static String script() {
        try (InputStream text = CommandRanks.class.getResourceAsStream("rank.sh")) {
            return new String(text.readAllBytes(), StandardCharsets.US_ASCII);
        } catch (IOException unreadable) {
            throw new MillraceException("rank.sh is missing in the jar", unreadable);
        }
    }

    /** Hosts at once, and on each one rank after the other: sshd refuses many that are not yet authenticated. */
    @Override
    public void start() {
        synchronized (this) {
            signals = new Signals(this::pass);
        }
        Map<String, List<Placement>> hosts = placements.stream()
                .collect(Collectors.groupingBy(Placement::host, LinkedHashMap::new, Collectors.toList()));
        hosts.forEach((host, ranks) -> Thread.ofPlatform().daemon().name("start-" + host).start(() -> {
            try {
                for (Placement each : ranks) {
                    CommandRank rank = start(each);
                    if (rank != null && !each.isHere()) {
                        rank.awaitBegin();
                    }
                }
            } catch (InterruptedException spurious) {
                Thread.currentThread().interrupt(); // nobody interrupts this thread
            }
        }));
    }

    /** Null if it is not to be started any more, or cannot be. */
    private synchronized @Nullable CommandRank start(Placement placement) {
        if (stopped) {
            events.accept(new RankEvent.Finished(placement.rank()));
            return null;
        }
        try {
            CommandRank rank = new CommandRank(placement, shell(placement), todo(placement), token, out, err, this);
            started.add(rank);
            return rank;
        } catch (MillraceException failure) {
            fail(placement.rank(), String.valueOf(failure.getMessage()), 1);
            return null;
        }
    }

    private List<String> shell(Placement placement) {
        String read = READ_AND_RUN.formatted(token);
        if (placement.isHere()) {
            return List.of("sh", "-c", read);
        }
        List<String> ssh = new ArrayList<>(List.of("setsid")); // a terminal's Ctrl-C must not end ssh itself
        ssh.addAll(command.ssh);
        ssh.addAll(List.of("-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", "-o", "ServerAliveInterval=15",
                placement.host(), "exec sh -c " + CommandRank.quote(read)));
        return ssh;
    }

    /** Everything goes this way, and not by the command line, which all users of a host can read. */
    private String todo(Placement placement) {
        StringBuilder todo = new StringBuilder();
        todo.append("token=").append(token).append(" grace=").append(command.grace.toSeconds()).append('\n');
        command.variables.apply(placement)
                .forEach((name, value) -> todo
                        .append(value.isEmpty() ? "unset " + name : "export " + name + "=" + CommandRank.quote(value))
                        .append('\n'));
        todo.append("cd ").append(CommandRank.quote(Path.of("").toAbsolutePath().toString())).append(" || exit 126\n");
        todo.append("set --");
        command.words.apply(placement).forEach(word -> todo.append(' ').append(CommandRank.quote(word)));
        return todo.append('\n').append(script).append(token).append('\n').toString();
    }

    /** A rank's process has ended, and all it wrote is passed on. */
    synchronized void ended(CommandRank rank, int code) {
        int number = rank.placement().rank();
        if (code == 0) {
            events.accept(new RankEvent.Finished(number));
        } else if (ending != null && code == ExitStatus.of(ending)) { // as it was asked to
            status = status == 0 ? code : status;
            events.accept(new RankEvent.Finished(number));
        } else {
            String forced =
                    ending == null || code != ExitStatus.of("KILL") ? "" : " (SIG" + ending + " had been passed on)";
            fail(number, rank.describe(code) + forced, code);
        }
    }

    synchronized void unwritten(CommandRank rank, IOException why) {
        fail(rank.placement().rank(), "what it writes cannot be passed on: " + why.getMessage(), 1);
    }

    private void fail(int rank, String message, int code) {
        status = status == 0 ? code : status;
        events.accept(new RankEvent.Failed(rank, message, "", true));
    }

    /** The status of the first rank that did not end with 0; 0 if there is none. */
    synchronized int status() {
        return status;
    }

    /** The signal that was passed on and asks to end; null if none has come. */
    synchronized @Nullable String ending() {
        return ending;
    }

    /** Passes a signal on to all. The second that asks to end ends by force, and so does the end of the grace. */
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
     * Signals of this process call a function, in place of ending it. By {@code sun.misc.Signal} of
     * {@code jdk.unsupported}, the only way that Java has; by reflection, as the compiler warns of it in any other use.
     * Where there is no such module, signals end this process as always.
     */
    static final class Signals implements AutoCloseable {

        /** SIGQUIT and SIGUSR2 are the JVM's. */
        static final List<String> NAMES = List.of("INT", "TERM", "HUP", "USR1");

        private final List<Runnable> undo = new ArrayList<>();

        /** @param to called on a thread of the JVM with the name of each signal that comes */
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
                        handle.invoke(null, number, before); // as with nohup: so it shall stay
                    } else {
                        undo.add(() -> restore(handle, number, before));
                    }
                }
            } catch (ReflectiveOperationException absent) {
                // then ranks end with this process
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
     * Where the ranks' lines go, one at a time, each with its rank before it. Bytes are not decoded: what a rank writes
     * arrives, whatever its encoding. Safe for any thread.
     */
    static final class RankOutput {

        /** One that is longer is divided: memory is bounded. */
        private static final int LONGEST_LINE = 1 << 20;

        private final OutputStream to;

        RankOutput(OutputStream to) {
            this.to = to;
        }

        /**
         * Passes on what a rank writes, until it ends. A carriage return ends a line too: progress is seen as it comes.
         *
         * @param taken lines that are not passed on
         * @throws UncheckedIOException if they cannot be written where they should go
         */
        void pass(int rank, InputStream from, Predicate<String> taken) {
            byte[] prefix = ("[rank " + rank + "] ").getBytes(StandardCharsets.US_ASCII);
            ByteArrayOutputStream line = new ByteArrayOutputStream();
            try (InputStream bytes = new BufferedInputStream(from)) {
                boolean returned = false;
                for (int next = read(bytes); next >= 0; next = read(bytes)) {
                    boolean end = next == '\r' || next == '\n';
                    if (end && !(next == '\n' && returned)) {
                        write(prefix, line, taken);
                    } else if (!end) {
                        line.write(next);
                        if (line.size() == LONGEST_LINE) {
                            write(prefix, line, taken);
                        }
                    }
                    returned = next == '\r';
                }
                if (line.size() > 0) {
                    write(prefix, line, taken);
                }
            } catch (IOException unwritten) {
                throw new UncheckedIOException(unwritten);
            }
        }

        /** What cannot be read any more has ended. */
        private static int read(InputStream bytes) {
            try {
                return bytes.read();
            } catch (IOException closed) {
                return -1;
            }
        }

        private void write(byte[] prefix, ByteArrayOutputStream line, Predicate<String> taken) throws IOException {
            if (!taken.test(line.toString(StandardCharsets.ISO_8859_1))) {
                byte[] whole = new byte[prefix.length + line.size() + 1];
                System.arraycopy(prefix, 0, whole, 0, prefix.length);
                System.arraycopy(line.toByteArray(), 0, whole, prefix.length, line.size());
                whole[whole.length - 1] = '\n';
                synchronized (this) {
                    to.write(whole);
                    to.flush();
                }
            }
            line.reset();
        }
    }
}
