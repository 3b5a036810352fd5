package org.millrace;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Rank, size and rendezvous of this process, read from environment variables of its launcher: torchrun, {@code mpirun}
 * of Open MPI, MPICH and MVAPICH, and Slurm's {@code srun}.
 *
 * @param isLaunched whether a launcher's variables define the rank; otherwise the process is a group of one
 */
record JoinEnvironment(String rendezvous, int rank, int size, boolean isLaunched) {

    /** Whether the notice about a group of one rank has not been printed yet. */
    static final AtomicBoolean NOTICE_IS_DUE = new AtomicBoolean(true);

    /**
     * Names of the variables of one launcher.
     *
     * @param onHost variable with the number of ranks on this host; if it equals {@code size}, all ranks are on this
     *               host
     */
    private record Launcher(String name, String rank, String size, String onHost) {
    }

    /**
     * Launchers, sorted in the order of the checks. Slurm is last, so that variables set by hand within a Slurm job
     * take precedence.
     */
    private static final List<Launcher> LAUNCHERS =
            List.of(new Launcher("torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
                    new Launcher("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                            "OMPI_COMM_WORLD_LOCAL_SIZE"),
                    new Launcher("MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE"),
                    new Launcher("MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"),
                    new Launcher("Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_TASKS_ON_NODE"));
    /** Variables that distinguish jobs of a launcher on the same host. */
    private static final List<String> JOBS = List.of("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID");
    /**
     * Further variables of launchers. If the rank is unknown, each of these variables indicates that there may be other
     * ranks.
     */
    private static final List<String> SIGNS = List.of("LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID",
            "MILLRACE_RUN_ID", "OMPI_COMM_WORLD_LOCAL_RANK", "PMIX_RANK", "PMIX_NAMESPACE", "PMI_FD", "PMI_PORT",
            "PMI_ID", "MPI_LOCALRANKID", "SLURM_STEP_ID", "FLUX_TASK_RANK", "PALS_RANKID", "JSM_NAMESPACE_RANK",
            "JOB_COMPLETION_INDEX");
    /** File names of programs that start several ranks. */
    private static final Set<String> COMMANDS = Set.of("mpirun", "mpiexec", "mpiexec.hydra", "hydra_pmi_proxy",
            "orterun", "orted", "prterun", "prted", "mpispawn", "srun");
    private static final Pattern FIRST_HOST = Pattern.compile("([^\\[,]+)(?:\\[(\\d+)[^\\]]*\\]([^,]*))?.*");
    private static final int FIRST_PORT = 20_000;
    private static final int PORTS = 10_000;

    /**
     * Determines rank, size and rendezvous of this process. A process without a launcher is a group of one rank. A
     * notice on standard error reports such a group, once for each process.
     *
     * @throws IllegalArgumentException see {@link #of}
     */
    static JoinEnvironment ofThisProcess() {
        JoinEnvironment found = of(System::getenv, JoinEnvironment::commandsAbove);
        if (!found.isLaunched && NOTICE_IS_DUE.compareAndSet(true, false)) {
            System.err.println("millrace: no launcher started this process, so it is a group of one rank."
                    + " To start more ranks: millrace run -n RANKS -- COMMAND");
        }
        return found;
    }

    /**
     * Determines rank, size and rendezvous from the environment. A process is a group of one only if nothing indicates
     * that a launcher has started further ranks.
     *
     * @param variables returns a variable's value; null if it is not set
     * @param commands  returns the names of the commands that started this process; called only if no launcher's
     *                  variable is set
     * @throws IllegalArgumentException if a variable is missing, is not a number, or contradicts a variable of another
     *                                  launcher; the message names the variable
     */
    static JoinEnvironment of(Function<String, @Nullable String> variables, Supplier<List<String>> commands) {
        List<String> incomplete = new ArrayList<>();
        for (Launcher launcher : LAUNCHERS) {
            String rank = text(variables, launcher.rank);
            String size = text(variables, launcher.size);
            if (rank != null && size != null) {
                return launched(variables, launcher, number(launcher.rank, rank), number(launcher.size, size));
            }
            if (variables.apply(launcher.rank) != null || variables.apply(launcher.size) != null) {
                incomplete.add(pair(variables, launcher));
            }
        }
        SIGNS.stream()
                .filter(name -> variables.apply(name) != null)
                .forEach(name -> incomplete.add(name + "=" + variables.apply(name)));
        if (incomplete.isEmpty()) {
            commands.get()
                    .stream()
                    .filter(name -> COMMANDS.contains(name)
                            || name.equals("slurmstepd") && variables.apply("SLURM_JOB_ID") == null)
                    .findFirst()
                    .ifPresent(name -> incomplete.add("started by " + name + ", whose variables are missing"));
        }
        if (incomplete.isEmpty()) {
            return new JoinEnvironment(aloneAt(), 0, 1, false);
        }
        throw new IllegalArgumentException(
                "this process seems to be one of several ranks, and its rank is not defined ("
                        + String.join("; ", incomplete)
                        + "). Start the ranks with millrace run, torchrun, mpirun or srun, set"
                        + " RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or give rendezvous, rank and size to Millrace.join."
                        + " For a group of one rank, set RANK=0 and WORLD_SIZE=1");
    }

    private static JoinEnvironment launched(Function<String, @Nullable String> variables, Launcher launcher, int rank,
            int size) {
        if (rank >= size) {
            throw new IllegalArgumentException(
                    pair(variables, launcher) + ": the rank must be less than the number of ranks");
        }
        if (size > 1) {
            return new JoinEnvironment(rendezvous(variables, launcher, size), rank, size, true);
        }
        for (Launcher other : LAUNCHERS) {
            // In a batch script, Slurm also sets the number of the job's tasks. But the script is a single process and
            // belongs to no step.
            boolean isScript = other.name.equals("Slurm") && variables.apply("SLURM_STEP_ID") == null;
            if (!isScript && (differs(variables.apply(other.rank), "0") || differs(variables.apply(other.size), "1"))) {
                throw new IllegalArgumentException(pair(variables, launcher) + " describe a group of one rank, and "
                        + pair(variables, other) + " of " + other.name + " do not: unset the variables of one of them");
            }
        }
        return new JoinEnvironment(aloneAt(), rank, size, true);
    }

    /** Returns whether a variable is set to a value that differs from the value in a group of one rank. */
    private static boolean differs(@Nullable String value, String alone) {
        return value != null && !value.strip().equals(alone);
    }

    private static String pair(Function<String, @Nullable String> variables, Launcher launcher) {
        return Stream.of(launcher.rank, launcher.size)
                .map(name -> variables.apply(name) == null ? name + " not set" : name + "=" + variables.apply(name))
                .collect(Collectors.joining(", "));
    }

    /** Returns a meeting place for a group of one rank. The rank does not use the meeting place. */
    private static String aloneAt() {
        return "file:" + Path.of(System.getProperty("java.io.tmpdir"), "millrace-" + ProcessHandle.current().pid());
    }

    /**
     * Returns the file names of the programs that started this process, nearest first. A program such as {@code sudo}
     * removes a launcher's variables, so the launcher is visible only by its file name.
     */
    private static List<String> commandsAbove() {
        return Stream.iterate(ProcessHandle.current().parent(), Optional::isPresent, each -> each.get().parent())
                .flatMap(each -> each.get().info().command().stream())
                .map(command -> Path.of(command).getFileName().toString())
                .toList();
    }

    private static String rendezvous(Function<String, @Nullable String> variables, Launcher launcher, int size) {
        String address = text(variables, "MASTER_ADDR");
        String port = text(variables, "MASTER_PORT");
        if (address != null && port != null) {
            // torchrun's store listens at MASTER_PORT, so rank 0 uses the next port
            boolean taken = "true"
                    .equals(String.valueOf(text(variables, "TORCHELASTIC_USE_AGENT_STORE")).toLowerCase(Locale.ROOT));
            String host = address.indexOf(':') < 0 || address.startsWith("[") ? address : '[' + address + ']';
            return "tcp:" + host + ":" + (number("MASTER_PORT", port) + (taken ? 1 : 0));
        }
        String job = JOBS.stream().map(name -> text(variables, name)).filter(id -> id != null).findFirst().orElse(null);
        String here = text(variables, launcher.onHost);
        if (job != null && here != null && here.equals(Integer.toString(size))) {
            String name = (job + "-" + text(variables, "SLURM_STEP_ID")).replaceAll("[^A-Za-z0-9.-]", "_");
            return "job:" + name;
        }
        String hosts = text(variables, "SLURM_STEP_NODELIST");
        if (job != null && hosts != null && launcher.name.equals("Slurm")) {
            Matcher first = FIRST_HOST.matcher(hosts);
            if (first.matches()) {
                String host = first.group(1) + (first.group(2) == null ? "" : first.group(2) + first.group(3));
                return "tcp:" + host + ":" + (FIRST_PORT + Math.floorMod(job.hashCode(), PORTS));
            }
        }
        throw new IllegalArgumentException(launcher.name + " (" + launcher.rank + ", " + launcher.size
                + ") defines the rank of this process, but not the meeting place of the ranks:"
                + " set MASTER_ADDR to rank 0's host and MASTER_PORT to a free port there, on all ranks");
    }

    private static @Nullable String text(Function<String, @Nullable String> variables, String name) {
        String value = variables.apply(name);
        return value == null || value.isBlank() ? null : value.strip();
    }

    private static int number(String name, String value) {
        try {
            int number = Integer.parseInt(value);
            if (number >= 0) {
                return number;
            }
        } catch (NumberFormatException notOne) {
            // The exception below reports this value, too.
        }
        throw new IllegalArgumentException(name + "=" + value + ": a number of 0 or more is expected");
    }
}
