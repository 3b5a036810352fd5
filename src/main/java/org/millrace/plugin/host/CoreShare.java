package org.millrace.plugin.host;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Number of processor cores that this process may use for its own threads. The number limits how many threads poll,
 * because the program needs cores as well.
 *
 * <p>
 * A rank that is bound to its own cores may use all of them. Ranks of one host share cores if the ranks are not bound,
 * or if they are bound to the same cores. The number of these ranks comes from the launcher's environment variables.
 * Without such variables, the running processes with Millrace are counted. All processes in a control group share its
 * quota.
 *
 * @param cores  number of cores, at least 1
 * @param reason explanation of the number, for messages
 */
public record CoreShare(int cores, String reason) {

    /** Variables with the number of ranks on a host, from torchrun, Open MPI, MPICH, MVAPICH and Slurm's srun. */
    private static final List<String> RANKS_OF_HOST = List.of("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE",
            "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE");

    /**
     * For each launcher, the variable with the number of ranks in the job. The key is the launcher's variable with the
     * number of ranks on this host.
     */
    private static final Map<String, String> RANKS_OF_JOB =
            Map.of("LOCAL_WORLD_SIZE", "WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_SIZE",
                    "MPI_LOCALNRANKS", "PMI_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_SIZE");
    private static final String SLURM_HOSTS = "SLURM_NNODES";

    /**
     * Minimum number of cores at which a proxy thread can have a core of its own. At least two cores then remain for
     * the program's threads.
     */
    private static final int OWN_CORES_FROM = 4;
    /**
     * Maximum number of proxy threads. This number of threads saturates the host's memory bandwidth, and a training
     * program needs the other cores.
     */
    private static final int MAX_PROXY_THREADS = 8;

    /**
     * Computes the share of this process.
     *
     * @param processes number of processes on this host that compete for the cores, including this one. This number is
     *                  used if no launcher's variable contains the number of ranks on this host
     */
    public static CoreShare ofThisProcess(UnaryOperator<@Nullable String> environment, int processes) {
        int usable = Runtime.getRuntime().availableProcessors();
        BitSet allowed = cores(allowedList(Path.of("/proc/thread-self/status")));
        BitSet common = commonCores(Path.of("/"), allowed, ProcessHandle.current().pid() == 1);
        return of(usable, Math.max(usable, allowed.cardinality()), Math.max(usable, common.cardinality()), environment,
                processes);
    }

    /**
     * Computes the share of a process.
     *
     * @param usable  the smaller of two numbers: the cores in the affinity mask, and the control group's quota of cores
     * @param allowed number of cores in the affinity mask
     * @param common  number of cores that the processes of the host or of the container have in common
     */
    static CoreShare of(int usable, int allowed, int common, UnaryOperator<@Nullable String> environment,
            int processes) {
        for (String name : RANKS_OF_HOST) {
            int ranks = number(environment.apply(name));
            if (ranks > 1) {
                return shared(usable, allowed, common, ranks, "ranks by " + name);
            }
        }
        return shared(usable, allowed, common, Math.max(1, processes), "processes with Millrace");
    }

    private static CoreShare shared(int usable, int allowed, int common, int among, String whoTheyAre) {
        boolean quota = usable < allowed;
        int share = among == 1 ? usable : Math.max(1, Math.min(usable, (quota ? usable : common) / among));
        return share == usable ? new CoreShare(usable, usable + " usable")
                : new CoreShare(share, usable + " usable, " + (quota ? "by a quota" : common + " in common") + ", "
                        + among + " " + whoTheyAre);
    }

    /**
     * Returns whether the launcher's variables place all ranks of the job on this host. The result is the same on all
     * ranks.
     */
    public static boolean isWholeJobHere(UnaryOperator<@Nullable String> environment) {
        for (Map.Entry<String, String> names : RANKS_OF_JOB.entrySet()) {
            int here = number(environment.apply(names.getKey()));
            if (here > 0 && number(environment.apply(names.getValue())) > 0) {
                return here == number(environment.apply(names.getValue()));
            }
        }
        return number(environment.apply(SLURM_HOSTS)) == 1;
    }

    /**
     * Returns the number of ranks in the job from the launcher's variables; 0 if no variable is set. The result is the
     * same on all ranks.
     */
    public static int ranksOfJob(UnaryOperator<@Nullable String> environment) {
        return Stream.concat(RANKS_OF_JOB.values().stream(), Stream.of("SLURM_NTASKS"))
                .mapToInt(name -> number(environment.apply(name)))
                .max()
                .orElse(0);
    }

    /** Returns the default number of threads that serve connections. Half of the cores are left to the program. */
    public int proxyThreads() {
        return Math.clamp(cores / 2, 1, MAX_PROXY_THREADS);
    }

    /**
     * Returns whether each proxy thread can have its own core. This requires at least {@value #OWN_CORES_FROM} cores,
     * and at least twice as many cores as proxy threads. The remaining cores serve the program and short-lived threads.
     */
    public boolean coreForEach(int proxyThreads) {
        return cores >= OWN_CORES_FROM && cores >= 2 * proxyThreads;
    }

    private static int number(@Nullable String text) {
        try {
            return text == null ? 0 : Integer.parseInt(text.strip());
        } catch (NumberFormatException e) {
            // The variable's value is not a number, so no launcher has set the variable.
            return 0;
        }
    }

    /**
     * Returns the cores that the processes of this host or container have in common. A container's processes share the
     * cores of its cpuset, even if the host has more cores. The cpuset is read from the affinity of process 1. The
     * result is the host's online cores in two cases: this process is process 1, or it may use cores that process 1 may
     * not use. If the only rank of a container is not process 1, this method assumes that all ranks of the host are in
     * the container.
     *
     * @param root    directory with {@code proc} and {@code sys}
     * @param allowed affinity mask of this process
     * @param isFirst whether this process is process 1
     */
    static BitSet commonCores(Path root, BitSet allowed, boolean isFirst) {
        BitSet online = cores(firstLine(root.resolve("sys/devices/system/cpu/online")));
        BitSet common = cores(allowedList(root.resolve("proc/1/status")));
        BitSet outside = (BitSet) allowed.clone();
        outside.andNot(common);
        if (isFirst || common.isEmpty() || !outside.isEmpty()) {
            return online;
        }
        if (common.intersects(online)) {
            common.and(online); // the mask may contain cores that are not online
        }
        return common;
    }

    private static Optional<String> allowedList(Path status) {
        try (var lines = Files.lines(status)) {
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

    /** Returns the cores of a list in Linux's format, for instance {@code 0-3,8}; an empty set without a list. */
    static BitSet cores(Optional<String> list) {
        BitSet cores = new BitSet();
        for (String range : list.orElse("").strip().split(",")) {
            if (!range.isEmpty()) {
                String[] ends = range.split("-");
                cores.set(number(ends[0]), number(ends[ends.length - 1]) + 1);
            }
        }
        return cores;
    }
}
