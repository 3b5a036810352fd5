package org.millrace;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;

/**
 * Where a program begins: it joins a group of ranks and gets its end, a {@link Communicator}.
 *
 * <p>
 * Which implementation that is says {@code MILLRACE_DEVICE}: the name of a {@link CommunicatorProvider#device()
 * provider's device} such as {@code host} or {@code cuda}, or {@code auto} (the default), which is {@code cuda} where
 * that is usable and {@code host} elsewhere.
 */
public final class Millrace {

    private static final String AUTO = "auto";
    /** What {@code auto} tries, best first. */
    private static final List<String> PREFERENCE = List.of("cuda", "host");

    private Millrace() {}

    /**
     * Joins the group that a launcher has started this process for: its environment says rank, size and where the ranks
     * meet. {@code RANK}, {@code WORLD_SIZE}, {@code MASTER_ADDR} and {@code MASTER_PORT} are read, as torchrun sets
     * them (whose own store has the port: the next one is taken then), and the names of Open MPI, MPICH, MVAPICH and
     * Slurm. Blocks until all ranks have come.
     *
     * @return this rank's end
     * @throws IllegalArgumentException if the environment does not say enough, or a setting is not usable
     * @throws MillraceException        if no provider is usable, or if the group did not come together
     */
    public static Communicator join() {
        JoinEnvironment environment = JoinEnvironment.of(System::getenv);
        return join(environment.rendezvous(), environment.rank(), environment.size());
    }

    /**
     * Joins as {@link #join()} does, runs what this rank does, and closes the communicator. If that throws, the other
     * ranks fail within a second, and say what it was: {@link JoinBuilder#run}.
     *
     * {@snippet :
     * Millrace.run(communicator -> {
     *     communicator.allReduce(Operand.of(values), ReduceOp.SUM);
     * });
     * }
     *
     * @param <X>     the checked exceptions that the program throws
     * @param program what this rank does
     * @throws X                        what the program throws
     * @throws IllegalArgumentException as by {@link #join()}
     * @throws MillraceException        as by {@link #join()}
     */
    public static <X extends Exception> void run(RankProgram<X> program) throws X {
        builder().run(program);
    }

    /**
     * Runs all ranks of a group as threads of this JVM, without a GPU, and returns when all have ended: for tests of
     * programs, {@link JoinBuilder#runLocally}.
     *
     * @param <X>     the checked exceptions that the program throws
     * @param ranks   how many
     * @param program what each rank does
     * @throws X what a rank threw
     */
    public static <X extends Exception> void local(int ranks, RankProgram<X> program) throws X {
        builder().device("host").runLocally(ranks, program);
    }

    /** {@return what joins a group with settings that are said one by one} */
    public static JoinBuilder builder() {
        return new JoinBuilder();
    }

    /**
     * Joins a group of ranks with the settings of the environment. Blocks until all ranks have come.
     *
     * @param rendezvous where the ranks meet, the same for all: {@code file:PATH} or {@code tcp:HOST:PORT}
     * @param rank       this rank, 0 to {@code size - 1}
     * @param size       number of ranks
     * @return this rank's end
     * @throws IllegalArgumentException if an argument or a setting is not usable
     * @throws MillraceException        if no provider is usable, or if the group did not come together
     */
    public static Communicator join(String rendezvous, int rank, int size) {
        return join(rendezvous, rank, size, Map.of());
    }

    /**
     * Joins a group of ranks. Blocks until all ranks have come.
     *
     * @param rendezvous where the ranks meet, the same for all: {@code file:PATH} or {@code tcp:HOST:PORT}
     * @param rank       this rank, 0 to {@code size - 1}
     * @param size       number of ranks
     * @param settings   settings of this communicator that override system properties and the environment; names are
     *                   those of the environment variables
     * @return this rank's end
     * @throws IllegalArgumentException if an argument or a setting is not usable
     * @throws MillraceException        if no provider is usable, or if the group did not come together
     */
    public static Communicator join(String rendezvous, int rank, int size, Map<String, String> settings) {
        return join(rendezvous, rank, size, settings, CommunicatorListener.STANDARD_ERROR);
    }

    static Communicator join(String rendezvous, int rank, int size, Map<String, String> settings,
            CommunicatorListener listener) {
        Objects.requireNonNull(rendezvous,
                "rendezvous is null: give file:PATH or tcp:HOST:PORT, the same on all ranks");
        Objects.requireNonNull(settings, "settings is null: give an empty map for none");
        if (size < 1 || rank < 0 || rank >= size) {
            throw new IllegalArgumentException(
                    "rank " + rank + " of " + size + ": ranks are 0 to size - 1, and there is at least one");
        }
        requireNativeAccess();
        return provider(settings).join(rendezvous, rank, size, settings, listener);
    }

    /**
     * Asks whether this JVM lets Millrace reach native memory and libraries. {@link #join()} does so by itself, as deep
     * below the answer would be an error in a class's initialization; a program may ask earlier.
     *
     * @throws MillraceException if it does not; the message says what to add to the command line
     */
    @SuppressWarnings("restricted") // that is the question
    public static void requireNativeAccess() {
        try {
            MemorySegment.NULL.reinterpret(0);
        } catch (IllegalCallerException denied) {
            boolean named = Millrace.class.getModule().isNamed();
            throw new MillraceException("native memory and libraries are closed to Millrace (" + denied.getMessage()
                    + "): start the JVM with --enable-native-access=" + (named ? "org.millrace" : "ALL-UNNAMED")
                    + ", or give the main jar the manifest entry Enable-Native-Access: ALL-UNNAMED", denied);
        }
    }

    /**
     * Enqueues operations of one or more communicators as one. They are launched when the outermost group of the thread
     * ends, all of them before any is waited for, so that their order in the group does not matter between
     * communicators: a send on one and a receive on another go on at the same time, on one stream too. Without a group
     * a rank that enqueues them in another order than its peers on one stream would wait for itself. One thread can so
     * enqueue for several ranks.
     *
     * <p>
     * On one communicator the order counts as ever: all ranks enqueue its operations in the same order. A stream goes
     * on when all of the group's operations that name it are complete. libnccl launches each communicator's operations
     * on the stream that they name: give each communicator its own stream there, if its operations wait for another's.
     *
     * <p>
     * What is enqueued by other threads does not belong to the group. A {@link Plan} is neither made nor launched in
     * one.
     *
     * @param operations enqueues them, on the calling thread. If it throws, what it had enqueued is launched all the
     *                   same, as the other ranks count on it.
     * @throws MillraceException if a communicator has failed or is closed; the others' operations are launched all the
     *                           same
     */
    public static void group(Runnable operations) {
        OperationGroup.run(operations);
    }

    /**
     * {@return the provider that {@link #join(String, int, int, Map)} uses}
     *
     * @param settings settings that override system properties and the environment
     * @throws IllegalArgumentException if the settings name a device of which there is no provider; the message lists
     *                                  those there are
     * @throws MillraceException        if the provider is not usable on this machine
     */
    public static CommunicatorProvider provider(Map<String, String> settings) {
        String wanted = device(settings);
        List<String> broken = new ArrayList<>();
        List<CommunicatorProvider> found = providers(broken);
        if (wanted.equals(AUTO)) {
            return PREFERENCE.stream()
                    .flatMap(device -> found.stream().filter(provider -> provider.device().equals(device)))
                    .filter(provider -> provider.whyUnusable(settings).isEmpty())
                    .findFirst()
                    .orElseThrow(
                            () -> new MillraceException("no device is usable; " + describe(found, broken, settings)));
        }
        CommunicatorProvider provider = found.stream()
                .filter(candidate -> candidate.device().equals(wanted))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(Settings.DEVICE.name() + "=" + wanted
                        + ": there is no such device; allowed: auto, or one of those found. "
                        + describe(found, broken, settings)));
        Optional<String> reason = provider.whyUnusable(settings);
        if (reason.isPresent()) {
            throw new MillraceException("device " + wanted + " is not usable: " + reason.get());
        }
        return provider;
    }

    /**
     * {@return all providers that can be loaded, usable or not}
     *
     * @param broken receives a sentence for each that cannot
     */
    public static List<CommunicatorProvider> providers(List<String> broken) {
        List<CommunicatorProvider> found = new ArrayList<>();
        try {
            ServiceLoader.load(CommunicatorProvider.class).stream().forEach(candidate -> {
                try {
                    found.add(candidate.get());
                } catch (ServiceConfigurationError failure) {
                    Throwable reason = failure.getCause() == null ? failure : failure.getCause();
                    broken.add(candidate.type().getName() + " cannot be loaded: " + reason);
                }
            });
        } catch (ServiceConfigurationError failure) {
            broken.add(failure.getMessage());
        }
        return found;
    }

    private static String describe(List<CommunicatorProvider> found, List<String> broken,
            Map<String, String> settings) {
        List<String> lines = new ArrayList<>();
        for (CommunicatorProvider provider : found) {
            lines.add(provider.device() + " (" + provider.getClass().getName()
                    + provider.whyUnusable(settings).map(reason -> ", not usable: " + reason).orElse("") + ")");
        }
        lines.addAll(broken);
        return lines.isEmpty()
                ? "no provider was found: is the whole of Millrace's jar on the class path, META-INF/services included?"
                : "providers found: " + String.join(", ", lines);
    }

    /** This one alone: the provider reads all settings, and refuses what is wrong. */
    private static String device(Map<String, String> settings) {
        String wanted = Configuration.find(Settings.DEVICE, settings).text();
        return wanted.isEmpty() ? AUTO : wanted.toLowerCase(Locale.ROOT);
    }
}
