package org.millrace.plugin;

import java.util.List;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.millrace.file.ProcessIdentity;

/** What the launcher says about a process, in the environment. */
final class LauncherRank {

    private static final List<String> RANKS =
            List.of("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID");
    private static final List<String> SIZES =
            List.of("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS");

    private LauncherRank() {}

    /** This process, as lines on standard error begin: {@code millrace: rank 3, pid 41 on a-host}. */
    public static String line(UnaryOperator<@Nullable String> environment) {
        String rank = first(RANKS, environment);
        return "millrace: " + (rank == null ? "" : "rank " + rank + ", ") + "pid " + ProcessHandle.current().pid()
                + " on " + ProcessIdentity.HOST;
    }

    /** Its rank; -1 if nobody says one. */
    public static int rank(UnaryOperator<@Nullable String> environment) {
        return number(first(RANKS, environment));
    }

    /** How many there are; -1 if nobody says. */
    public static int size(UnaryOperator<@Nullable String> environment) {
        return number(first(SIZES, environment));
    }

    private static @Nullable String first(List<String> names, UnaryOperator<@Nullable String> environment) {
        for (String name : names) {
            String value = environment.apply(name);
            if (value != null && !value.isEmpty()) {
                return value;
            }
        }
        return null;
    }

    private static int number(@Nullable String text) {
        try {
            return text == null ? -1 : Integer.parseInt(text);
        } catch (NumberFormatException none) {
            return -1;
        }
    }
}
