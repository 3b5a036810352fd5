package org.millrace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * How a rank joins its group, said step by step: {@link Millrace#builder()}. What is not said comes from the launcher's
 * variables (rank, size and where the ranks meet), and from system properties and the environment (settings). Values
 * are checked when the rank joins, all of them at once.
 *
 * {@snippet :
 * Communicator communicator = Millrace.builder()
 *         .rendezvous("tcp:node0:4711")
 *         .rank(3)
 *         .size(8)
 *         .network("socket")
 *         .stallDeadline(Duration.ofMinutes(5))
 *         .join();
 * }
 *
 * <p>
 * To be used by one thread. It can join more than once.
 */
public final class JoinBuilder {

    private final Map<String, String> settings = new LinkedHashMap<>();
    private @Nullable String rendezvous;
    private @Nullable Integer rank;
    private @Nullable Integer size;
    private Consumer<String> onStall = CommunicatorListener.STANDARD_ERROR::stalled;
    private Consumer<PeerLostException> onLoss = CommunicatorListener.STANDARD_ERROR::lost;

    JoinBuilder() {}

    /**
     * Says where the ranks meet.
     *
     * @param where the same for all: {@code file:PATH} or {@code tcp:HOST:PORT}
     * @return this
     */
    public JoinBuilder rendezvous(String where) {
        rendezvous = Objects.requireNonNull(where, "rendezvous is null: give file:PATH or tcp:HOST:PORT");
        return this;
    }

    /**
     * Says which rank this is.
     *
     * @param number 0 to {@code size - 1}
     * @return this
     */
    public JoinBuilder rank(int number) {
        rank = number;
        return this;
    }

    /**
     * Says how many ranks there are.
     *
     * @param ranks 1 or more
     * @return this
     */
    public JoinBuilder size(int ranks) {
        size = ranks;
        return this;
    }

    /**
     * Says where operations run: {@code MILLRACE_DEVICE}.
     *
     * @param name {@code "host"}, {@code "cuda"}, {@code "auto"}, or another provider's
     * @return this
     */
    public JoinBuilder device(String name) {
        return set("MILLRACE_DEVICE", name);
    }

    /**
     * Says what carries the data: {@code MILLRACE_NET}.
     *
     * @param name {@code "auto"}, {@code "shm"}, {@code "socket"}, {@code "ucx"}, or {@code "plugin:PATH"}
     * @return this
     */
    public JoinBuilder network(String name) {
        return set("MILLRACE_NET", name);
    }

    /**
     * Says which network interfaces are used: {@code NCCL_SOCKET_IFNAME}.
     *
     * @param prefixes of their names; several are rails
     * @return this
     */
    public JoinBuilder socketInterfaces(String... prefixes) {
        return set("NCCL_SOCKET_IFNAME", String.join(",", prefixes));
    }

    /**
     * Says what ranks prove to each other that they belong together with: {@code MILLRACE_SECRET}.
     *
     * @param text the same for all ranks
     * @return this
     */
    public JoinBuilder secret(String text) {
        return set("MILLRACE_SECRET", text);
    }

    /**
     * Says whether all that goes over TCP is encrypted: {@code MILLRACE_TLS}.
     *
     * @param encrypted the same for all ranks
     * @return this
     */
    public JoinBuilder tls(boolean encrypted) {
        return set("MILLRACE_TLS", encrypted ? "1" : "0");
    }

    /**
     * Says how many polling threads this rank may use: {@code MILLRACE_THREADS}.
     *
     * @param most 1 or more
     * @return this
     */
    public JoinBuilder threads(int most) {
        return set("MILLRACE_THREADS", Integer.toString(most));
    }

    /**
     * Says how many channels there are: {@code NCCL_MIN_NCHANNELS} and {@code NCCL_MAX_NCHANNELS}.
     *
     * @param least 1 or more
     * @param most  {@code least} or more
     * @return this
     */
    public JoinBuilder channels(int least, int most) {
        return set("NCCL_MIN_NCHANNELS", Integer.toString(least)).set("NCCL_MAX_NCHANNELS", Integer.toString(most));
    }

    /**
     * Says how large each connection's buffer is: {@code NCCL_BUFFSIZE}.
     *
     * @param bytes of its 8 slots together; the same for all ranks
     * @return this
     */
    public JoinBuilder bufferSize(long bytes) {
        return set("NCCL_BUFFSIZE", Long.toString(bytes));
    }

    /**
     * Says which algorithms collectives may run: {@code NCCL_ALGO}.
     *
     * @param names such as {@code "ring"} and {@code "tree"}; the same for all ranks
     * @return this
     */
    public JoinBuilder algorithms(String... names) {
        return set("NCCL_ALGO", String.join(",", names));
    }

    /**
     * Says which protocols their data may travel in: {@code NCCL_PROTO}.
     *
     * @param names {@code "LL"}, {@code "LL128"}, {@code "Simple"}; the same for all ranks
     * @return this
     */
    public JoinBuilder protocols(String... names) {
        return set("NCCL_PROTO", String.join(",", names));
    }

    /**
     * Says how long a rank waits for the others to come: {@code MILLRACE_CONNECT_DEADLINE}.
     *
     * @param deadline 1 ms to 24 h
     * @return this
     */
    public JoinBuilder connectDeadline(Duration deadline) {
        return set("MILLRACE_CONNECT_DEADLINE", deadline);
    }

    /**
     * Says for how long an operation may stand still that all ranks have come to: {@code MILLRACE_STALL_DEADLINE}.
     *
     * @param deadline 1 ms to 24 h
     * @return this
     */
    public JoinBuilder stallDeadline(Duration deadline) {
        return set("MILLRACE_STALL_DEADLINE", deadline);
    }

    /**
     * Says how late a rank may come to an operation: {@code MILLRACE_LATE_DEADLINE}.
     *
     * @param deadline 1 ms to 24 h
     * @return this
     */
    public JoinBuilder lateDeadline(Duration deadline) {
        return set("MILLRACE_LATE_DEADLINE", deadline);
    }

    /**
     * Says how long {@link Communicator#close()} waits: {@code MILLRACE_CLOSE_DEADLINE}.
     *
     * @param deadline 1 ms to 24 h
     * @return this
     */
    public JoinBuilder closeDeadline(Duration deadline) {
        return set("MILLRACE_CLOSE_DEADLINE", deadline);
    }

    /**
     * Says who hears that an operation stands still, as a rank has not come to it; else it is printed to standard
     * error. On GPUs: that a call of NCCL does not return, as a rank does not make it.
     *
     * @param listener given what stands still, who is missing and for how long; called once for each such operation, on
     *                 a thread of its own
     * @return this
     */
    public JoinBuilder onStall(Consumer<String> listener) {
        onStall = Objects.requireNonNull(listener, "the listener for stalls is null");
        return this;
    }

    /**
     * Says who hears that a rank is lost, even while the program calls nothing; else it is printed to standard error.
     *
     * @param listener given what later calls throw; called once, on a thread of its own
     * @return this
     */
    public JoinBuilder onLoss(Consumer<PeerLostException> listener) {
        onLoss = Objects.requireNonNull(listener, "the listener for losses is null");
        return this;
    }

    private CommunicatorListener listener() {
        Consumer<String> stalls = onStall;
        Consumer<PeerLostException> losses = onLoss;
        return new CommunicatorListener() {

            @Override
            public void stalled(String what) {
                stalls.accept(what);
            }

            @Override
            public void lost(PeerLostException loss) {
                losses.accept(loss);
            }
        };
    }

    /**
     * Sets any setting, as in {@link Millrace#join(String, int, int, Map)}.
     *
     * @param name  that of its environment variable
     * @param value as it would stand there
     * @return this
     */
    public JoinBuilder set(String name, String value) {
        Objects.requireNonNull(name, "the name of a setting is null");
        settings.put(name, Objects.requireNonNull(value, () -> name + " is null: leave it out to have its default"));
        return this;
    }

    private JoinBuilder set(String name, Duration value) {
        return set(name, Objects.requireNonNull(value, () -> name + " is null").toNanos() / 1000 + "us");
    }

    /** {@return what was set so far, by the names of environment variables} */
    public Map<String, String> settings() {
        return Map.copyOf(settings);
    }

    /**
     * Joins. Blocks until all ranks have come.
     *
     * @return this rank's end
     * @throws IllegalArgumentException if rank, size and rendezvous were neither all said, nor all left to the
     *                                  launcher's variables, or if a setting is not usable
     * @throws MillraceException        if no provider is usable, or if the group did not come together
     */
    public Communicator join() {
        if (rendezvous == null && rank == null && size == null) {
            JoinEnvironment environment = JoinEnvironment.of(System::getenv);
            return Millrace.join(environment.rendezvous(), environment.rank(), environment.size(), settings,
                    listener());
        }
        if (rendezvous == null || rank == null || size == null) {
            throw new IllegalArgumentException("rendezvous " + said(rendezvous) + ", rank " + said(rank) + ", size "
                    + said(size) + ": say all three, or none where a launcher such as torchrun or mpirun does");
        }
        return Millrace.join(rendezvous, rank, size, settings, listener());
    }

    /**
     * Joins, runs what this rank does, and closes the communicator. If that throws, the communicator is
     * {@linkplain Communicator#abort(Throwable) aborted} with what was thrown: the other ranks fail within a second,
     * and say what it was.
     *
     * @param <X>     the checked exceptions that the program throws
     * @param program what this rank does
     * @throws X                        what the program throws
     * @throws IllegalArgumentException as by {@link #join}
     * @throws MillraceException        as by {@link #join} and {@link Communicator#close}
     */
    public <X extends Exception> void run(RankProgram<X> program) throws X {
        Objects.requireNonNull(program, "the program is null"); // before others are kept waiting
        try (Communicator communicator = join()) {
            try {
                program.run(communicator);
            } catch (Throwable thrown) {
                try {
                    communicator.abort(thrown);
                } catch (RuntimeException | Error second) {
                    thrown.addSuppressed(second);
                }
                throw thrown;
            }
        }
    }

    /**
     * Runs all ranks of a group as threads of this JVM, and returns when all have ended: for tests of programs. Where
     * the ranks meet is a file of its own; what was set counts for all of them. A rank that throws is an exception in
     * one rank, one that returns early leaves, and one that waits is late, as they would be in a process of their own.
     *
     * @param <X>     the checked exceptions that the program throws
     * @param ranks   how many
     * @param program what each rank does
     * @throws X what a rank threw of its own; what the others threw, most often because of it, is suppressed in it
     */
    @SuppressWarnings("unchecked") // a program throws nothing else
    public <X extends Exception> void runLocally(int ranks, RankProgram<X> program) throws X {
        Path directory = LocalRanks.meetingPlace();
        List<Throwable> thrown = LocalRanks.call(ranks, number -> {
            JoinBuilder each = new JoinBuilder();
            each.settings.putAll(settings);
            each.onStall(onStall).onLoss(onLoss);
            each.rendezvous("file:" + directory.resolve("group")).rank(number).size(ranks).run(program);
        });
        LocalRanks.forget(directory);
        if (!thrown.isEmpty()) {
            Throwable own = thrown.stream()
                    .filter(each -> !(each instanceof CommunicatorException))
                    .findFirst()
                    .orElse(thrown.getFirst());
            thrown.stream().filter(each -> each != own).forEach(own::addSuppressed);
            if (own instanceof Error error) {
                throw error;
            }
            throw (X) own;
        }
    }

    private static String said(@Nullable Object value) {
        return value == null ? "is not said" : "is " + value;
    }

    /** Ranks as threads of this JVM. */
    static final class LocalRanks {

        /** What one rank does. */
        interface Body {
            void run(int rank) throws Throwable;
        }

        private LocalRanks() {}

        static Path meetingPlace() {
            try {
                return Files.createTempDirectory("millrace-local");
            } catch (IOException e) {
                throw new MillraceException("ranks of one JVM meet in a file, and there is no place for one: " + e, e);
            }
        }

        static void forget(Path directory) {
            try {
                Files.deleteIfExists(directory.resolve("group"));
                Files.deleteIfExists(directory);
            } catch (IOException left) {
                directory.toFile().deleteOnExit();
            }
        }

        /** Returns what was thrown, the first first. If this thread is interrupted, so are the ranks. */
        static List<Throwable> call(int ranks, Body body) {
            List<Throwable> thrown = Collections.synchronizedList(new ArrayList<>());
            List<Thread> threads = new ArrayList<>();
            for (int rank = 0; rank < ranks; rank++) {
                int number = rank;
                threads.add(Thread.ofPlatform().name("rank-" + rank).start(() -> {
                    try {
                        body.run(number);
                    } catch (Throwable failure) {
                        thrown.add(failure);
                    }
                }));
            }
            boolean interrupted = false;
            for (Thread thread : threads) {
                while (thread.isAlive()) {
                    try {
                        thread.join();
                    } catch (InterruptedException asked) {
                        interrupted = true;
                        threads.forEach(Thread::interrupt);
                    }
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
            return new ArrayList<>(thrown);
        }
    }
}
