package org.millrace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.millrace.operation.Required;

/**
 * Configures the join of a rank to its group: {@link Millrace#builder()}. If the program does not set rank, size and
 * rendezvous, they come from the launcher's variables; without a launcher, the group has one rank. Other settings come
 * from system properties and the environment. All values are checked when the rank joins.
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
 * One thread at a time may use a builder. A builder can join more than once.
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
     * Sets the meeting place of the ranks.
     *
     * @param where meeting place, the same for all ranks: {@code file:PATH} or {@code tcp:HOST:PORT}
     * @return this
     */
    public JoinBuilder rendezvous(String where) {
        rendezvous = Objects.requireNonNull(where, "rendezvous is null: give file:PATH or tcp:HOST:PORT");
        return this;
    }

    /**
     * Sets this rank's number.
     *
     * @param number this rank's number, 0 to {@code size - 1}
     * @return this
     */
    public JoinBuilder rank(int number) {
        rank = number;
        return this;
    }

    /**
     * Sets the number of ranks.
     *
     * @param ranks number of ranks, 1 or more
     * @return this
     */
    public JoinBuilder size(int ranks) {
        size = ranks;
        return this;
    }

    /**
     * Sets the device of the operations: {@code MILLRACE_DEVICE}.
     *
     * @param name name of the device: {@code "host"}, {@code "cuda"}, {@code "auto"}, or another provider's device
     * @return this
     */
    public JoinBuilder device(String name) {
        return set("MILLRACE_DEVICE", name);
    }

    /**
     * Sets the network: {@code MILLRACE_NET}.
     *
     * @param name name of the network: {@code "auto"}, {@code "shm"}, {@code "socket"}, {@code "ucx"}, or {@code
     *             "plugin:PATH"}
     * @return this
     */
    public JoinBuilder network(String name) {
        return set("MILLRACE_NET", name);
    }

    /**
     * Sets the network interfaces: {@code NCCL_SOCKET_IFNAME}.
     *
     * @param prefixes prefixes of the names of interfaces; each of several interfaces becomes a rail
     * @return this
     */
    public JoinBuilder socketInterfaces(String... prefixes) {
        return set("NCCL_SOCKET_IFNAME", prefixes);
    }

    /**
     * Sets the secret that a rank must know to join the group: {@code MILLRACE_SECRET}.
     *
     * @param text the secret, the same for all ranks
     * @return this
     */
    public JoinBuilder secret(String text) {
        return set("MILLRACE_SECRET", text);
    }

    /**
     * Sets whether all TCP data is encrypted: {@code MILLRACE_TLS}.
     *
     * @param encrypted true to encrypt; the same for all ranks
     * @return this
     */
    public JoinBuilder tls(boolean encrypted) {
        return set("MILLRACE_TLS", encrypted ? "1" : "0");
    }

    /**
     * Sets the maximum number of polling threads of this rank: {@code MILLRACE_THREADS}.
     *
     * @param most maximum number of threads, 1 or more
     * @return this
     */
    public JoinBuilder threads(int most) {
        return set("MILLRACE_THREADS", Integer.toString(most));
    }

    /**
     * Sets the number of channels: {@code NCCL_MIN_NCHANNELS} and {@code NCCL_MAX_NCHANNELS}.
     *
     * @param least minimum number of channels, 1 or more
     * @param most  maximum number of channels, {@code least} or more
     * @return this
     */
    public JoinBuilder channels(int least, int most) {
        return set("NCCL_MIN_NCHANNELS", Integer.toString(least)).set("NCCL_MAX_NCHANNELS", Integer.toString(most));
    }

    /**
     * Sets the size of each connection's buffer: {@code NCCL_BUFFSIZE}.
     *
     * @param bytes size of a whole buffer, which has 8 slots; the same for all ranks
     * @return this
     */
    public JoinBuilder bufferSize(long bytes) {
        return set("NCCL_BUFFSIZE", Long.toString(bytes));
    }

    /**
     * Sets the allowed algorithms of collectives: {@code NCCL_ALGO}.
     *
     * @param names names of algorithms, such as {@code "ring"} and {@code "tree"}; the same for all ranks
     * @return this
     */
    public JoinBuilder algorithms(String... names) {
        return set("NCCL_ALGO", names);
    }

    /**
     * Sets the allowed protocols of collectives: {@code NCCL_PROTO}.
     *
     * @param names names of protocols: {@code "LL"}, {@code "LL128"}, {@code "Simple"}; the same for all ranks
     * @return this
     */
    public JoinBuilder protocols(String... names) {
        return set("NCCL_PROTO", names);
    }

    /**
     * Sets the time to wait for the other ranks to join: {@code MILLRACE_CONNECT_DEADLINE}.
     *
     * @param deadline 1 ms to 24 h
     * @return this
     */
    public JoinBuilder connectDeadline(Duration deadline) {
        return set("MILLRACE_CONNECT_DEADLINE", deadline);
    }

    /**
     * Sets the maximum time that an operation may make no progress after all ranks have joined it:
     * {@code MILLRACE_STALL_DEADLINE}.
     *
     * @param deadline 1 ms to 24 h
     * @return this
     */
    public JoinBuilder stallDeadline(Duration deadline) {
        return set("MILLRACE_STALL_DEADLINE", deadline);
    }

    /**
     * Sets the maximum time that a rank may be late for an operation: {@code MILLRACE_LATE_DEADLINE}.
     *
     * @param deadline 1 ms to 24 h
     * @return this
     */
    public JoinBuilder lateDeadline(Duration deadline) {
        return set("MILLRACE_LATE_DEADLINE", deadline);
    }

    /**
     * Sets the maximum time that {@link Communicator#close()} waits: {@code MILLRACE_CLOSE_DEADLINE}.
     *
     * @param deadline 1 ms to 24 h
     * @return this
     */
    public JoinBuilder closeDeadline(Duration deadline) {
        return set("MILLRACE_CLOSE_DEADLINE", deadline);
    }

    /**
     * Sets the listener for stalls. A stall is an operation that waits because a rank has not joined it. On GPUs a
     * stall is a call of NCCL that does not return because another rank does not make the same call. The default
     * listener prints stalls to standard error.
     *
     * @param listener receives a text with the stalled operation, the missing rank and the time; called once for each
     *                 stalled operation, on a separate thread
     * @return this
     */
    public JoinBuilder onStall(Consumer<String> listener) {
        onStall = Objects.requireNonNull(listener, "the listener for stalls is null");
        return this;
    }

    /**
     * Sets the listener for lost ranks. The listener is called also while the program makes no calls. The default
     * listener prints losses to standard error.
     *
     * @param listener receives the exception that later calls throw; called once, on a separate thread
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
     * Sets a setting by its name, as in {@link Millrace#join(String, int, int, Map)}.
     *
     * @param name  name of the environment variable
     * @param value value as in the environment
     * @return this
     */
    public JoinBuilder set(String name, String value) {
        Objects.requireNonNull(name, "the name of a setting is null");
        settings.put(name, Objects.requireNonNull(value, () -> name + " is null: leave it out to have its default"));
        return this;
    }

    private JoinBuilder set(String name, String[] values) {
        return set(name, String.join(",", Required.argument("JoinBuilder", "array for " + name, values)));
    }

    private JoinBuilder set(String name, Duration value) {
        long micros = TimeUnit.MICROSECONDS.convert(Objects.requireNonNull(value, () -> name + " is null"));
        if (value.isNegative()) {
            throw new IllegalArgumentException(name + ": the deadline " + value + " is negative; give 1 ms to 24 h");
        }
        return set(name, micros + "us");
    }

    /** {@return the values set so far, by names of environment variables} */
    public Map<String, String> settings() {
        return Map.copyOf(settings);
    }

    /**
     * Joins the group. Blocks until all ranks have joined.
     *
     * @return this rank's communicator
     * @throws IllegalArgumentException if only some of rank, size and rendezvous are set, or if a setting is not
     *                                  usable. Also thrown if none of the three is set, and a launcher's variable is
     *                                  missing or not usable
     * @throws MillraceException        if no provider is usable, or if the group was not completed
     */
    public Communicator join() {
        if (rendezvous == null && rank == null && size == null) {
            JoinEnvironment environment = JoinEnvironment.ofThisProcess();
            return Millrace.join(environment.rendezvous(), environment.rank(), environment.size(), settings,
                    listener());
        }
        if (rendezvous == null || rank == null || size == null) {
            throw new IllegalArgumentException("rendezvous " + said(rendezvous) + ", rank " + said(rank) + ", size "
                    + said(size) + ": set all three, or none if a launcher such as torchrun or mpirun sets them");
        }
        return Millrace.join(rendezvous, rank, size, settings, listener());
    }

    /**
     * Joins the group, runs the rank's program, and closes the communicator. If the program throws, the communicator is
     * {@linkplain Communicator#abort(Throwable) aborted} with the program's exception. The other ranks then fail within
     * a second, and their exceptions name the program's exception.
     *
     * @param <X>     type of the program's checked exceptions
     * @param program the rank's program
     * @throws X                        the program's exception
     * @throws IllegalArgumentException see {@link #join}
     * @throws MillraceException        see {@link #join} and {@link Communicator#close}
     */
    public <X extends Exception> void run(RankProgram<X> program) throws X {
        // A missing program is refused before the join, so that no other rank waits for this rank.
        Objects.requireNonNull(program, "the program is null");
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
     * Runs all ranks of a group as threads of this JVM, for tests of programs. Returns when the programs of all ranks
     * have ended. The ranks meet at a new temporary file. The settings of this builder apply to all ranks. To the other
     * ranks, a program that throws is a failed process, a program that returns early is an ended process, and a program
     * that waits is a late process.
     *
     * @param <X>     type of the program's checked exceptions
     * @param ranks   number of ranks
     * @param program the program of each rank
     * @throws IllegalArgumentException if {@code ranks} is less than 1
     * @throws X                        the first exception that is not a {@link CommunicatorException}. If all
     *                                  exceptions are of this class, the first exception is thrown. The exceptions of
     *                                  the other ranks are usually consequences of the thrown exception, and are
     *                                  suppressed in it
     */
    @SuppressWarnings("unchecked") // a rank's thread throws only X or unchecked exceptions
    public <X extends Exception> void runLocally(int ranks, RankProgram<X> program) throws X {
        Objects.requireNonNull(program, "the program is null");
        if (ranks < 1) {
            throw new IllegalArgumentException(ranks + " ranks: a group has 1 or more");
        }
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
        return value == null ? "is not set" : "is " + value;
    }

    /** Runs the ranks of a group as threads of this JVM. */
    static final class LocalRanks {

        /** Program of one rank. */
        interface Body {
            void run(int rank) throws Throwable;
        }

        private LocalRanks() {}

        static Path meetingPlace() {
            try {
                return Files.createTempDirectory("millrace-local");
            } catch (IOException e) {
                throw new MillraceException("cannot create the file at which the ranks of one JVM meet: " + e, e);
            }
        }

        static void forget(Path directory) {
            // The directory contains the meeting place, and a file for each decision of a group that was shrunk.
            try (Stream<Path> files = Files.walk(directory)) {
                for (Path each : files.sorted(Comparator.reverseOrder()).toList()) {
                    Files.delete(each);
                }
            } catch (IOException left) {
                directory.toFile().deleteOnExit();
            }
        }

        /**
         * Runs a program on one thread for each rank, and waits for all threads. Returns the exceptions that the
         * programs threw, in the order of their occurrence. An interrupt of the calling thread also interrupts the
         * ranks' threads.
         */
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
