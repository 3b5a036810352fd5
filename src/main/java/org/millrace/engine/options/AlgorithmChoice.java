package org.millrace.engine.options;

import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;

/**
 * Which algorithm an all-reduce runs; the other operations have one only. {@code NCCL_ALGO} is read as NCCL reads it:
 * names with commas between, after {@code ^} those that are not wanted; sections with semicolons between, each for the
 * function that it begins with, or for all.
 */
public record AlgorithmChoice(Set<Kind> allowed) {

    /** What the emulated device has. */
    enum Kind {
        /** The most bandwidth. */
        RING,
        /** The shortest way. */
        TREE
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
    private static final Set<String> OTHERS =
            Set.of("collnetdirect", "collnetchain", "collnet", "nvls", "nvlstree", "pat");

    public static AlgorithmChoice of(Configuration configuration) {
        AlgorithmChoice choice = configuration.get(Settings.ALGORITHMS)
                .map(AlgorithmChoice::parse)
                .orElse(new AlgorithmChoice(EnumSet.allOf(Kind.class)));
        return configuration.get(Settings.GROUPED_CONNECTIONS) ? choice.ringsAlone() : choice;
    }

    /** Trees run an operation's channels apart, so that they cannot share connections of a network. */
    private AlgorithmChoice ringsAlone() {
        if (!allowed.contains(Kind.RING)) {
            throw new ConfigurationException(Settings.GROUPED_CONNECTIONS.name() + "=1 needs rings, and "
                    + Settings.ALGORITHMS.name() + " does not allow them for " + FUNCTION);
        }
        return new AlgorithmChoice(EnumSet.of(Kind.RING));
    }

    /** @throws ConfigurationException if the text is not understood, or leaves none of what the emulated device has */
    static AlgorithmChoice parse(String text) {
        Set<Kind> allowed = EnumSet.allOf(Kind.class);
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
        }
        if (allowed.isEmpty()) {
            throw refused(text, "nothing is left for " + FUNCTION);
        }
        return new AlgorithmChoice(allowed);
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
                    default -> throw refused(text, "there is no algorithm " + stripped);
                });
            }
        }
        return excluded ? EnumSet.complementOf(kinds) : kinds;
    }

    private static ConfigurationException refused(String text, String why) {
        return new ConfigurationException(Settings.ALGORITHMS.name() + "=" + text + ": " + why
                + "; the emulated device has ring and tree for allreduce and ring for all others. Allowed: names "
                + "with commas between,"
                + " perhaps after ^ (all but these), perhaps after a function and a colon, several such with "
                + "semicolons between");
    }

    /** Whether a pair of trees is better than a ring. All ranks say the same. */
    public boolean prefersTree(int ranks, long bytes) {
        if (allowed.size() == 1) {
            return allowed.contains(Kind.TREE);
        }
        return ranks >= SMALLEST_TREE && bytes <= (ranks - 1) * LARGEST_TREE_BYTES_PER_HOP;
    }

    /** For comparing with the other ranks'. */
    String text() {
        return allowed.toString().toLowerCase(Locale.ROOT);
    }
}
