package org.millrace.engine.options;

import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import org.millrace.Operation;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;

/**
 * Which algorithm a collective runs: an all-reduce has three, all-gather and reduce-scatter have ring and collnet, the
 * others ring alone. {@code NCCL_ALGO} is read as NCCL reads it: names with commas between, after {@code ^} those that
 * are not wanted; sections with semicolons between, each for the function that it begins with, or for all.
 */
public record AlgorithmChoice(Set<Kind> allowed, Set<String> withoutCollNet) {

    /** What the emulated device has. */
    enum Kind {
        /** The most bandwidth. */
        RING,
        /** The shortest way. */
        TREE,
        /** Through a network that reduces, where there is one. */
        COLLNET
    }

    /** Fewer ranks are as near each other in a ring. */
    private static final int SMALLEST_TREE = 3;
    /**
     * A ring's way grows with the ranks, and so does the size up to which a tree is faster. Where ranks share cores
     * that is a few KiB: 3 and 4 ranks on two busy cores took as long either way at 4 to 16 KiB, and half as long
     * around a ring from 64 KiB on.
     */
    private static final long LARGEST_TREE_BYTES_PER_HOP = 2 * 1024;

    private static final String FUNCTION = "allreduce";
    private static final Set<String> FUNCTIONS = Set.of("broadcast", "reduce", "allgather", "reducescatter", FUNCTION);
    private static final Set<String> OTHERS = Set.of("nvls", "nvlstree", "pat");

    public static AlgorithmChoice of(Configuration configuration) {
        AlgorithmChoice choice = configuration.get(Settings.ALGORITHMS)
                .map(AlgorithmChoice::parse)
                .orElse(new AlgorithmChoice(EnumSet.allOf(Kind.class), Set.of()));
        if (choice.needsCollNet() && !configuration.get(Settings.COLLNET_ENABLE)) {
            throw new ConfigurationException(Settings.ALGORITHMS.name() + " leaves collnet alone for " + FUNCTION
                    + ": set " + Settings.COLLNET_ENABLE.name() + "=1 on every rank, or allow ring, too");
        }
        return configuration.get(Settings.GROUPED_CONNECTIONS) ? choice.ringsAlone() : choice;
    }

    /** Trees run an operation's channels apart, so that they cannot share connections of a network. */
    private AlgorithmChoice ringsAlone() {
        if (!allowed.contains(Kind.RING)) {
            throw new ConfigurationException(Settings.GROUPED_CONNECTIONS.name() + "=1 needs rings, and "
                    + Settings.ALGORITHMS.name() + " does not allow them for " + FUNCTION);
        }
        return new AlgorithmChoice(EnumSet.of(Kind.RING), FUNCTIONS);
    }

    /** @throws ConfigurationException if the text is not understood, or leaves none of what the emulated device has */
    static AlgorithmChoice parse(String text) {
        Set<Kind> allowed = EnumSet.allOf(Kind.class);
        Set<String> withoutCollNet = new TreeSet<>();
        for (String section : text.toLowerCase(Locale.ROOT).split(";")) {
            int colon = section.indexOf(':');
            String function = colon < 0 ? FUNCTION : section.substring(0, colon).strip();
            if (!FUNCTIONS.contains(function)) {
                throw refused(text, "there is no function " + function);
            }
            Set<Kind> named = kinds(text, section.substring(colon + 1).strip());
            if (function.equals(FUNCTION)) {
                allowed = named;
            }
            Set<String> meant = colon < 0 ? FUNCTIONS : Set.of(function);
            if (named.contains(Kind.COLLNET)) {
                withoutCollNet.removeAll(meant);
            } else {
                withoutCollNet.addAll(meant);
            }
        }
        if (allowed.isEmpty()) {
            throw refused(text, "nothing is left for " + FUNCTION);
        }
        return new AlgorithmChoice(allowed, withoutCollNet);
    }

    private static Set<Kind> kinds(String text, String names) {
        boolean excluded = names.startsWith("^");
        EnumSet<Kind> kinds = EnumSet.noneOf(Kind.class);
        for (String name : List.of((excluded ? names.substring(1) : names).split(","))) {
            String stripped = name.strip();
            if (!OTHERS.contains(stripped)) {
                kinds.add(switch (stripped) {
                    case "ring" -> Kind.RING;
                    case "tree" -> Kind.TREE;
                    case "collnet", "collnetdirect", "collnetchain" -> Kind.COLLNET;
                    default -> throw refused(text, "there is no algorithm " + stripped);
                });
            }
        }
        return excluded ? EnumSet.complementOf(kinds) : kinds;
    }

    private static ConfigurationException refused(String text, String why) {
        return new ConfigurationException(Settings.ALGORITHMS.name() + "=" + text + ": " + why
                + "; the emulated device has ring and tree for allreduce and ring for all others, and collnet for allreduce,"
                + " allgather and reducescatter. Allowed: names " + "with commas between,"
                + " perhaps after ^ (all but these), perhaps after a function and a colon, several such with "
                + "semicolons between");
    }

    /** Whether a pair of trees is better than a ring. All ranks say the same. */
    public boolean prefersTree(int ranks, long bytes) {
        if (!allowed.contains(Kind.TREE) || !allowed.contains(Kind.RING)) {
            return allowed.contains(Kind.TREE);
        }
        return ranks >= SMALLEST_TREE && bytes <= (ranks - 1) * LARGEST_TREE_BYTES_PER_HOP;
    }

    /** Whether an operation may go through a network that reduces. */
    public boolean allowsCollNet(Operation operation) {
        return !withoutCollNet.contains(operation.label().replace("_", ""));
    }

    /** Whether an all-reduce can go no other way. */
    public boolean needsCollNet() {
        return allowed.equals(EnumSet.of(Kind.COLLNET));
    }

    /** For comparing with the other ranks'. */
    String text() {
        return allowed.toString().toLowerCase(Locale.ROOT)
                + (withoutCollNet.isEmpty() ? "" : ", without collnet " + withoutCollNet);
    }
}
