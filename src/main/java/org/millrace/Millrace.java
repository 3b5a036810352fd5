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
import org.millrace.operation.OperationGroup;
import org.millrace.operation.Required;

/**
 * Entry point of a program. Its methods join this process to a group of ranks and return the {@link Communicator} of
 * its rank.
 *
 * <p>
 * {@code MILLRACE_DEVICE} selects the implementation. Its value is the name of a {@link CommunicatorProvider#device()
 * provider's device}, such as {@code host} or {@code cuda}, or {@code auto} (the default). {@code auto} selects
 * {@code cuda} where that device is usable, and {@code host} elsewhere.
 */
public final class Millrace {

    private static final String AUTO = "auto";
    /** Devices that {@code auto} tries, best first. */
    private static final List<String> PREFERENCE = List.of("cuda", "host");

    private Millrace() {}

    /**
     * Joins the group of ranks that a launcher has started, including this process. The launcher's environment
     * determines rank, size and rendezvous: {@code RANK}, {@code WORLD_SIZE}, {@code MASTER_ADDR} and
     * {@code MASTER_PORT} of torchrun, or the variables of Open MPI, MPICH, MVAPICH and Slurm. torchrun's store
     * occupies {@code MASTER_PORT}, so the next port is used. Blocks until all ranks have joined.
     *
     * <p>
     * A process without a launcher is a group of one rank. One notice on standard error reports this, and names {@code
     * millrace run}. A process that is possibly one of several ranks never becomes a group of one. If a launcher's
     * variables are incomplete or contradict each other, this method refuses them.
     *
     * @return this rank's communicator
     * @throws IllegalArgumentException if a launcher's variable is missing or not usable, or a setting is not usable
     * @throws MillraceException        if no provider is usable, or if the group was not completed
     */
    public static Communicator join() {
        return builder().join();
    }

    /**
     * Joins like {@link #join()}, runs the rank's program, and closes the communicator. If the program throws, the
     * other ranks fail within a second, and their exceptions name the program's exception. See {@link JoinBuilder#run}.
     *
     * {@snippet :
     * Millrace.run(communicator -> {
     *     communicator.allReduce(Operand.of(values), ReduceOp.SUM);
     * });
     * }
     *
     * @param <X>     type of the program's checked exceptions
     * @param program the rank's program
     * @throws X                        the program's exception
     * @throws IllegalArgumentException see {@link #join()}
     * @throws MillraceException        see {@link #join()}
     */
    public static <X extends Exception> void run(RankProgram<X> program) throws X {
        builder().run(program);
    }

    /**
     * Runs all ranks of a group as threads of this JVM, without a GPU, for tests of programs. Returns when the programs
     * of all ranks have ended. See {@link JoinBuilder#runLocally}.
     *
     * @param <X>     type of the program's checked exceptions
     * @param ranks   number of ranks
     * @param program the program of each rank
     * @throws X a rank's exception
     */
    public static <X extends Exception> void local(int ranks, RankProgram<X> program) throws X {
        builder().device("host").runLocally(ranks, program);
    }

    /** {@return a builder for a join with individual settings} */
    public static JoinBuilder builder() {
        return new JoinBuilder();
    }

    /**
     * Joins a group of ranks with the settings of the environment. Blocks until all ranks have joined.
     *
     * @param rendezvous meeting place of the ranks, the same for all: {@code file:PATH} or {@code tcp:HOST:PORT}
     * @param rank       this rank, 0 to {@code size - 1}
     * @param size       number of ranks
     * @return this rank's communicator
     * @throws IllegalArgumentException if an argument or a setting is not usable
     * @throws MillraceException        if no provider is usable, or if the group was not completed
     */
    public static Communicator join(String rendezvous, int rank, int size) {
        return join(rendezvous, rank, size, Map.of());
    }

    /**
     * Joins a group of ranks. Blocks until all ranks have joined.
     *
     * @param rendezvous meeting place of the ranks, the same for all: {@code file:PATH} or {@code tcp:HOST:PORT}
     * @param rank       this rank, 0 to {@code size - 1}
     * @param size       number of ranks
     * @param settings   settings of this communicator that override system properties and the environment, by the names
     *                   of the environment variables
     * @return this rank's communicator
     * @throws IllegalArgumentException if an argument or a setting is not usable
     * @throws MillraceException        if no provider is usable, or if the group was not completed
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
        UnconfiguredLog.showWarnings();
        return provider(settings).join(rendezvous, rank, size, settings, listener);
    }

    /**
     * Checks whether Millrace may use native memory and libraries in this JVM. {@link #join()} makes the same check. A
     * program can make the check before it joins. Without the check, the denial would surface as an error in the
     * initialization of a class, deep in the stack.
     *
     * @throws MillraceException if native access is denied; the message has the missing command-line option
     */
    @SuppressWarnings("restricted") // the restricted call shows whether native access is permitted
    public static void requireNativeAccess() {
        try {
            MemorySegment.NULL.reinterpret(0);
        } catch (IllegalCallerException denied) {
            boolean named = Millrace.class.getModule().isNamed();
            throw new MillraceException(
                    "native memory and libraries are not accessible to Millrace (" + denied.getMessage()
                            + "): start the JVM with --enable-native-access=" + (named ? "org.millrace" : "ALL-UNNAMED")
                            + ", or give the main jar the manifest entry Enable-Native-Access: ALL-UNNAMED",
                    denied);
        }
    }

    /**
     * Enqueues operations of one or more communicators as one group. All operations are launched at the end of the
     * thread's outermost group, before any operation can block the launch of another operation. In a group, the order
     * of operations of different communicators therefore does not matter. A send on one communicator and a receive on
     * another run at the same time, also on one stream. Without a group, a rank would deadlock if it enqueued such
     * operations on one stream in another order than its peers. In a group, one thread can enqueue the operations of
     * several ranks.
     *
     * <p>
     * The order within one communicator matters: all ranks enqueue its operations in the same order. A stream continues
     * when all operations of the group on that stream are complete. libnccl launches each operation on the stream of
     * that operation. With libnccl, use a separate stream for each communicator if operations of one communicator wait
     * for operations of another.
     *
     * <p>
     * Operations enqueued by other threads do not belong to the group. A {@link Plan} can be neither created nor
     * launched in a group.
     *
     * @param operations function that enqueues the operations, on the calling thread. If it throws, the operations that
     *                   it has already enqueued are still launched, because the other ranks depend on them.
     * @throws MillraceException if a communicator has failed or is closed; the operations of the other communicators
     *                           are still launched
     */
    public static void group(Runnable operations) {
        OperationGroup.run(operations);
    }

    /**
     * {@return the provider that {@link #join(String, int, int, Map)} uses}
     *
     * @param settings settings that override system properties and the environment
     * @throws IllegalArgumentException if the settings name a device without a provider; the message lists the known
     *                                  devices
     * @throws MillraceException        if the provider is not usable on this machine
     */
    public static CommunicatorProvider provider(Map<String, String> settings) {
        String wanted = device(Required.argument("provider", "map of settings", settings));
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
     * {@return all loadable providers, usable or not}
     *
     * @param broken list to which this method adds a sentence for each provider that cannot be loaded
     */
    public static List<CommunicatorProvider> providers(List<String> broken) {
        Required.argument("providers", "list", broken);
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

    /**
     * Returns the configured device. Reads only the setting of the device. The device's provider later reads all
     * settings and refuses wrong values.
     */
    private static String device(Map<String, String> settings) {
        String wanted = Configuration.find(Settings.DEVICE, settings).text();
        return wanted.isEmpty() ? AUTO : wanted.toLowerCase(Locale.ROOT);
    }
}
