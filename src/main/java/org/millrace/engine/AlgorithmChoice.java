package org.millrace.engine;

import java.util.EnumSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
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
}
