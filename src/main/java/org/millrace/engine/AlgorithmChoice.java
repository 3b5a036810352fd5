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
 * Which algorithm a collective runs: an all-reduce has ring, tree, collnetdirect and collnetchain, all-gather and
 * reduce-scatter have ring and collnetdirect, the others ring alone; collnet stands for both of these.
 */
record AlgorithmChoice(Map<String, Set<CollectiveFunction.Algorithm>> allowed) {

    /** What the emulated device has to choose from. */
    private static final Set<CollectiveFunction.Algorithm> ALL =
            EnumSet.of(CollectiveFunction.Algorithm.RING, CollectiveFunction.Algorithm.TREE,
                    CollectiveFunction.Algorithm.COLLNET_DIRECT, CollectiveFunction.Algorithm.COLLNET_CHAIN);

    /** Fewer ranks are as near each other in a ring. */
    private static final int SMALLEST_TREE = 3;
    /**
     * A ring's way grows with the ranks, and so does the size up to which a tree is faster. Where ranks share cores
     * that is a few KiB: 3 and 4 ranks on two busy cores took as long either way at 4 to 16 KiB, and half as long
     * around a ring from 64 KiB on.
     */
    private static final long LARGEST_TREE_BYTES_PER_HOP = 2 * 1024;

    private static final String FUNCTION = "allreduce";
    /** With names of NCCL's that the emulated device has not. */
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
            throw new ConfigurationException(Settings.ALGORITHMS.name() + " leaves collnet alone for " + FUNCTION
                    + ": set " + Settings.COLLNET_ENABLE.name() + "=1 on every rank, or allow ring, too");
        }
        return configuration.get(Settings.GROUPED_CONNECTIONS) ? choice.ringsAlone() : choice;
    }

    /** Trees run an operation's channels apart, so that they cannot share connections of a network. */
    private AlgorithmChoice ringsAlone() {
        if (!allowed.get(FUNCTION).contains(CollectiveFunction.Algorithm.RING)) {
            throw new ConfigurationException(Settings.GROUPED_CONNECTIONS.name() + "=1 needs rings, and "
                    + Settings.ALGORITHMS.name() + " does not allow them for " + FUNCTION);
        }
        return new AlgorithmChoice(FunctionSections.all(EnumSet.of(CollectiveFunction.Algorithm.RING)));
    }

    /** @throws ConfigurationException if the text is not understood, or leaves none of what the emulated device has */
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

    /** Whether a pair of trees is better than a ring. All ranks say the same. */
    public boolean prefersTree(int ranks, long bytes) {
        Set<CollectiveFunction.Algorithm> left = allowed.get(FUNCTION);
        if (!left.contains(CollectiveFunction.Algorithm.TREE) || !left.contains(CollectiveFunction.Algorithm.RING)) {
            return left.contains(CollectiveFunction.Algorithm.TREE);
        }
        return ranks >= SMALLEST_TREE && bytes <= (ranks - 1) * LARGEST_TREE_BYTES_PER_HOP;
    }

    /** Whether an operation may run an algorithm, as far as it has it. */
    public boolean allows(Operation operation, CollectiveFunction.Algorithm algorithm) {
        return of(operation).contains(algorithm)
                && (algorithm != CollectiveFunction.Algorithm.COLLNET_CHAIN || operation == Operation.ALL_REDUCE);
    }

    private Set<CollectiveFunction.Algorithm> of(Operation operation) {
        return allowed.getOrDefault(operation.ncclName().toLowerCase(Locale.ROOT), Set.of());
    }

    /** Whether an operation is to go through a network that reduces, and no other way. */
    public boolean needsCollNet(Operation operation) {
        return (allows(operation, CollectiveFunction.Algorithm.COLLNET_DIRECT)
                || allows(operation, CollectiveFunction.Algorithm.COLLNET_CHAIN))
                && !of(operation).contains(CollectiveFunction.Algorithm.RING)
                && (operation != Operation.ALL_REDUCE || !of(operation).contains(CollectiveFunction.Algorithm.TREE));
    }

    /** For comparing with the other ranks'. */
    String text() {
        return allowed.toString().toLowerCase(Locale.ROOT);
    }

    /**
     * The texts of {@code NCCL_ALGO} and {@code NCCL_PROTO}, read as NCCL reads them: names with commas between, after
     * {@code ^} those that are not wanted; sections with semicolons between, each for the function that it begins with,
     * or for all.
     */
    static final class FunctionSections {

        /** {@code Operation.ncclName} in lower case, in the order of the operations' codes; no sends and receives. */
        static final List<String> FUNCTIONS = List.of("broadcast", "reduce", "allgather", "reducescatter", "allreduce");

        private FunctionSections() {}

        /** The same for each function. */
        static <T> Map<String, T> all(T each) {
            Map<String, T> functions = new LinkedHashMap<>();
            FUNCTIONS.forEach(function -> functions.put(function, each));
            return functions;
        }

        /**
         * What a text allows each function.
         *
         * @param everything what {@code ^} takes names from
         * @param named      what a name stands for; null for one that there is not
         * @param what       what the names are of, for messages
         * @param refused    makes the error of a reason
         * @throws ConfigurationException if the text is not understood
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
