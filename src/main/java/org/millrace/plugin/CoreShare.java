package org.millrace.plugin;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * How many processor cores this process may use for itself. Cores are the user's, and the program needs some, too: what
 * polls follows from this.
 *
 * <p>
 * A rank that is bound to cores has those. Ranks of one host that are not bound, or bound to the same cores, share
 * them: how many there are their launcher says in the environment, or else those that run tell. A quota of a control
 * group is shared by all in it.
 *
 * @param cores  at least 1
 * @param reason where that follows from, for people
 */
record CoreShare(int cores, String reason) {

    /** What launchers call the number of ranks on a host: torchrun, Open MPI, MPICH, MVAPICH, Slurm's srun. */
    private static final List<String> RANKS_OF_HOST = List.of("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
            "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE");

    /** What they call the number of ranks on this host, and in the job. */
    private static final Map<String, String> RANKS_OF_JOB =
            Map.of("LOCAL_WORLD_SIZE", "WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE",
                    "MPI_LOCALNRANKS", "PMI_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_SIZE");
    private static final String SLURM_HOSTS = "SLURM_NNODES";

    /** With so many cores a proxy thread may have one for itself: the program's threads have two more. */
    private static final int OWN_CORES_FROM = 4;
    /** The bandwidth of host memory needs no more, and a trainer needs its cores. */
    private static final int MOST_PROXY_THREADS = 8;

    /**
     * The share of this process.
     *
     * @param processes how many processes of this host have the same to do, this one among them; counts where no
     *                  launcher says how many ranks there are
     */
    public static CoreShare ofThisProcess(UnaryOperator<@Nullable String> environment, int processes) {
        int usable = Runtime.getRuntime().availableProcessors();
        int online = count(firstLine(Path.of("/sys/devices/system/cpu/online"))).orElse(usable);
        int allowed = count(allowedList()).orElse(usable);
        return of(usable, allowed, online, environment, processes);
    }

    /**
     * The share of a process.
     *
     * @param usable cores by affinity mask and quota, whichever is less
     */
    static CoreShare of(int usable, int allowed, int online, UnaryOperator<@Nullable String> environment,
            int processes) {
        for (String name : RANKS_OF_HOST) {
            int ranks = number(environment.apply(name));
            if (ranks > 1) {
                return shared(usable, allowed, online, ranks, "ranks by " + name);
            }
        }
        return shared(usable, allowed, online, Math.max(1, processes), "processes with Millrace");
    }

    private static CoreShare shared(int usable, int allowed, int online, int among, String whoTheyAre) {
        boolean quota = usable < allowed;
        int share = among == 1 ? usable : Math.max(1, Math.min(usable, (quota ? usable : online) / among));
        return share == usable ? new CoreShare(usable, usable + " usable")
                : new CoreShare(share, usable + " usable, " + (quota ? "by a quota" : online + " online") + ", " + among
                        + " " + whoTheyAre);
    }

    /** Whether the launcher says that all ranks of the job are on this host; the same on all of them. */
    public static boolean isWholeJobHere(UnaryOperator<@Nullable String> environment) {
        for (Map.Entry<String, String> names : RANKS_OF_JOB.entrySet()) {
            int here = number(environment.apply(names.getKey()));
            if (here > 0 && number(environment.apply(names.getValue())) > 0) {
                return here == number(environment.apply(names.getValue()));
            }
        }
        return number(environment.apply(SLURM_HOSTS)) == 1;
    }

    /** How many ranks the launcher says that the job has; 0 if it says nothing. All ranks are told the same. */
    public static int ranksOfJob(UnaryOperator<@Nullable String> environment) {
        return Stream.concat(RANKS_OF_JOB.values().stream(), Stream.of("SLURM_NTASKS"))
                .mapToInt(name -> number(environment.apply(name)))
                .max()
                .orElse(0);
    }

    /** How many threads serve connections unless the user says so: half of the cores are left to the program. */
    public int proxyThreads() {
        return Math.clamp(cores / 2, 1, MOST_PROXY_THREADS);
    }

    /** Whether a number of proxy threads leaves the program as many cores and one more to those that come and go. */
    public boolean coreForEach(int proxyThreads) {
        return cores >= OWN_CORES_FROM && cores >= 2 * proxyThreads;
    }

    private static int number(@Nullable String text) {
        try {
            return text == null ? 0 : Integer.parseInt(text.strip());
        } catch (NumberFormatException e) {
            return 0; // not what the launcher means by it
        }
    }

    private static Optional<String> allowedList() {
        try (var lines = Files.lines(Path.of("/proc/thread-self/status"))) {
            String field = "Cpus_allowed_list:";
            return lines.filter(line -> line.startsWith(field)).map(line -> line.substring(field.length())).findFirst();
        } catch (IOException e) {
            return Optional.empty();
        }
    }

    private static Optional<String> firstLine(Path file) {
        try {
            return Optional.of(Files.readString(file));
        } catch (IOException e) {
            return Optional.empty();
        }
    }

    /** The number of cores in a list of Linux, for instance {@code 0-3,8}. */
    static Optional<Integer> count(Optional<String> list) {
        int sum = 0;
        for (String range : list.orElse("").strip().split(",")) {
            String[] ends = range.split("-");
            int first = number(ends[0]);
            sum += range.isEmpty() ? 0 : number(ends[ends.length - 1]) - first + 1;
        }
        return sum == 0 ? Optional.empty() : Optional.of(sum);
    }
}
