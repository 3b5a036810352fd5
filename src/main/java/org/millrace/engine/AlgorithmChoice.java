package org.millrace.engine;

import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.millrace.Operation;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.device.CollectiveFunction;

/**
 * Algorithms that each collective may run. An all-reduce can run ring, tree, collnetdirect and collnetchain. All-gather
 * and reduce-scatter can run ring and collnetdirect, and all other collectives run ring only. The name collnet stands
 * for collnetdirect and collnetchain.
 */
record AlgorithmChoice(Map<String, Set<CollectiveFunction.Algorithm>> allowed) {

    /** Algorithms of the emulated device. */
    private static final Set<CollectiveFunction.Algorithm> ALL =
            EnumSet.of(CollectiveFunction.Algorithm.RING, CollectiveFunction.Algorithm.TREE,
                    CollectiveFunction.Algorithm.COLLNET_DIRECT, CollectiveFunction.Algorithm.COLLNET_CHAIN);

    /**
     * Minimum number of ranks for a tree. With fewer ranks, the paths of a ring are as short as the paths of a tree.
     */
    private static final int SMALLEST_TREE = 3;
    /**
     * Maximum size of an operation for a tree, divided by the number of hops around a ring, in bytes. Larger operations
     * are faster around a ring. With more ranks a ring has more hops, so the maximum size of an operation grows. If
     * ranks share cores, the best maximum is a few KiB. With 3 and 4 ranks on two busy cores, both algorithms took
     * equally long from 4 to 16 KiB. From 64 KiB on, the ring took half as long as the tree.
     */
    private static final long LARGEST_TREE_BYTES_PER_HOP = 2 * 1024;

    private static final String FUNCTION = "allreduce";
    /**
     * Algorithms by their names in {@code NCCL_ALGO}. Names that the emulated device does not support map to an empty
     * set.
     */
    private static final Map<String, Set<CollectiveFunction.Algorithm>> NAMES = Map.of("ring",
            Set.of(CollectiveFunction.Algorithm.RING), "tree", Set.of(CollectiveFunction.Algorithm.TREE), "collnet",
            Set.of(CollectiveFunction.Algorithm.COLLNET_DIRECT, CollectiveFunction.Algorithm.COLLNET_CHAIN),
            "collnetdirect", Set.of(CollectiveFunction.Algorithm.COLLNET_DIRECT), "collnetchain",
            Set.of(CollectiveFunction.Algorithm.COLLNET_CHAIN), "nvls", Set.of(), "nvlstree", Set.of(), "pat",
            Set.of());

    public static AlgorithmChoice of(Configuration configuration) {
        AlgorithmChoice choice = configuration.get(Settings.ALGORITHMS)
                .map(AlgorithmChoice::parse)
                .orElse(new AlgorithmChoice(FunctionSections.all(ALL)));
        if (choice.needsCollNet(Operation.ALL_REDUCE) && !configuration.get(Settings.COLLNET_ENABLE)) {
            throw new ConfigurationException(Settings.ALGORITHMS.name() + " allows only collnet for " + FUNCTION
                    + ": set " + Settings.COLLNET_ENABLE.name() + "=1 on every rank, or allow ring, too");
        }
        return configuration.get(Settings.GROUPED_CONNECTIONS) ? choice.ringsAlone() : choice;
    }

    /**
     * Returns a choice with rings only, for channels that share network connections. The channels of a tree cannot
     * share network connections, because each channel's part of an operation runs separately.
     */
    private AlgorithmChoice ringsAlone() {
        if (!allowed.get(FUNCTION).contains(CollectiveFunction.Algorithm.RING)) {
            throw new ConfigurationException(Settings.GROUPED_CONNECTIONS.name() + "=1 needs rings, and "
                    + Settings.ALGORITHMS.name() + " does not allow them for " + FUNCTION);
        }
        return new AlgorithmChoice(FunctionSections.all(EnumSet.of(CollectiveFunction.Algorithm.RING)));
    }

    /**
     * @throws ConfigurationException if the text is invalid, or allows no algorithm that the emulated device supports
     */
    static AlgorithmChoice parse(String text) {
        Map<String, Set<CollectiveFunction.Algorithm>> allowed =
                FunctionSections.parse(text, ALL, NAMES::get, "algorithm", why -> refused(text, why));
        if (allowed.get(FUNCTION).isEmpty()) {
            throw refused(text, "nothing is left for " + FUNCTION);
        }
        return new AlgorithmChoice(allowed);
    }

    private static ConfigurationException refused(String text, String why) {
        return new ConfigurationException(Settings.ALGORITHMS.name() + "=" + text + ": " + why
                + "; the emulated device has ring and tree for allreduce and ring for all others, and collnet for allreduce,"
                + " allgather and reducescatter, collnetchain for allreduce alone. Allowed: names "
                + "with commas between,"
                + " perhaps after ^ (all but these), perhaps after a function and a colon, several such with "
                + "semicolons between");
    }

    /** Returns whether a pair of trees is preferred to a ring. The result is the same on all ranks. */
    public boolean prefersTree(int ranks, long bytes) {
        Set<CollectiveFunction.Algorithm> left = allowed.get(FUNCTION);
        if (!left.contains(CollectiveFunction.Algorithm.TREE) || !left.contains(CollectiveFunction.Algorithm.RING)) {
            return left.contains(CollectiveFunction.Algorithm.TREE);
        }
        return ranks >= SMALLEST_TREE && bytes <= (ranks - 1) * LARGEST_TREE_BYTES_PER_HOP;
    }

    /** Returns whether an operation supports an algorithm and the user allows it. */
    public boolean allows(Operation operation, CollectiveFunction.Algorithm algorithm) {
        return of(operation).contains(algorithm)
                && (algorithm != CollectiveFunction.Algorithm.COLLNET_CHAIN || operation == Operation.ALL_REDUCE);
    }

    private Set<CollectiveFunction.Algorithm> of(Operation operation) {
        return allowed.getOrDefault(operation.ncclName().toLowerCase(Locale.ROOT), Set.of());
    }

    /** Returns whether the user's choice for an operation allows networks that reduce, but neither ring nor tree. */
    public boolean needsCollNet(Operation operation) {
        return (allows(operation, CollectiveFunction.Algorithm.COLLNET_DIRECT)
                || allows(operation, CollectiveFunction.Algorithm.COLLNET_CHAIN))
                && !of(operation).contains(CollectiveFunction.Algorithm.RING)
                && (operation != Operation.ALL_REDUCE || !of(operation).contains(CollectiveFunction.Algorithm.TREE));
    }

    /** Returns the choice as a text. Each rank compares its text with the texts of the other ranks. */
    String text() {
        return allowed.toString().toLowerCase(Locale.ROOT);
    }

    /**
     * Parser for the values of {@code NCCL_ALGO} and {@code NCCL_PROTO}. It interprets these values as NCCL does.
     * Commas separate names. Names after {@code ^} are excluded. Semicolons separate sections. A section that begins
     * with a function's name and a colon applies to that function. Any other section applies to all functions.
     */
    static final class FunctionSections {

        /**
         * Values of {@code Operation.ncclName} in lower case, in the order of the operations' codes. Sends and receives
         * are not included.
         */
        static final List<String> FUNCTIONS = List.of("broadcast", "reduce", "allgather", "reducescatter", "allreduce");

        private FunctionSections() {}

        static <T> Map<String, T> all(T each) {
            Map<String, T> functions = new LinkedHashMap<>();
            FUNCTIONS.forEach(function -> functions.put(function, each));
            return functions;
        }

        /**
         * Returns the values that a text allows for each function.
         *
         * @param everything all values; {@code ^} excludes some of them
         * @param named      returns the values for a name, or null if the name is unknown
         * @param what       kind of the values, for messages
         * @param refused    creates the exception for a reason
         * @throws ConfigurationException if the text is invalid
         */
        static <E extends Enum<E>> Map<String, Set<E>> parse(String text, Set<E> everything,
                Function<String, @Nullable Set<E>> named, String what,
                Function<String, ConfigurationException> refused) {
            Map<String, Set<E>> allowed = all(everything);
            for (String section : text.toLowerCase(Locale.ROOT).split(";")) {
                int colon = section.indexOf(':');
                String function = section.substring(0, Math.max(colon, 0)).strip();
                if (colon >= 0 && !FUNCTIONS.contains(function)) {
                    throw refused.apply("there is no function " + function);
                }
                String names = section.substring(colon + 1).strip();
                boolean excluded = names.startsWith("^");
                EnumSet<E> meant = EnumSet.copyOf(everything);
                if (!excluded) {
                    meant.clear();
                }
                for (String name : (excluded ? names.substring(1) : names).split(",")) {
                    Set<E> known = named.apply(name.strip());
                    if (known == null) {
                        throw refused.apply("there is no " + what + " " + name.strip());
                    }
                    if (excluded) {
                        meant.removeAll(known);
                    } else {
                        meant.addAll(known);
                    }
                }
                if (colon < 0) {
                    allowed.replaceAll((_, _) -> meant);
                } else {
                    allowed.put(function, meant);
                }
            }
            return allowed;
        }
    }
}
