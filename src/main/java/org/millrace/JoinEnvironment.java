package org.millrace;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Rank, size and rendezvous of this process, from the environment of its launcher: torchrun, {@code mpirun} of Open
 * MPI, MPICH and MVAPICH, and Slurm's {@code srun}.
 */
record JoinEnvironment(String rendezvous, int rank, int size) {

    /**
     * Names of the variables of one launcher.
     *
     * @param onHost variable with the number of ranks on this host; if it equals {@code size}, all ranks are on this
     *               host
     */
    private record Launcher(String name, String rank, String size, String onHost) {
    }

    /**
     * Launchers in the order of their check. Slurm is last, so that variables set by hand within a Slurm job take
     * precedence.
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
    private static final Pattern FIRST_HOST = Pattern.compile("([^\\[,]+)(?:\\[(\\d+)[^\\]]*\\]([^,]*))?.*");
    private static final int FIRST_PORT = 20_000;
    private static final int PORTS = 10_000;

    /**
     * Determines rank, size and rendezvous from the environment.
     *
     * @param variables returns a variable's value; null if it is not set
     * @throws IllegalArgumentException if a variable is missing or is not a number; the message names the variable
     */
    static JoinEnvironment of(Function<String, @Nullable String> variables) {
        List<String> looked = new ArrayList<>();
        for (Launcher launcher : LAUNCHERS) {
            String rank = text(variables, launcher.rank);
            String size = text(variables, launcher.size);
            if (rank != null && size != null) {
                return new JoinEnvironment(rendezvous(variables, launcher, number(launcher.size, size)),
                        number(launcher.rank, rank), number(launcher.size, size));
            }
            looked.add(launcher.rank + " and " + launcher.size + (rank == null && size == null ? ""
                    : " (only " + (rank == null ? launcher.size : launcher.rank) + " is set)"));
        }
        throw new IllegalArgumentException("the environment does not define the rank of this process: none of "
                + String.join(", ", looked) + " is set. Start the ranks with torchrun, mpirun or srun, set"
                + " RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or give rendezvous, rank and size to Millrace.join");
    }

    private static String rendezvous(Function<String, @Nullable String> variables, Launcher launcher, int size) {
        String address = text(variables, "MASTER_ADDR");
        String port = text(variables, "MASTER_PORT");
        if (address != null && port != null) {
            // the store of torchrun listens at MASTER_PORT, so the next port is used
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
            // Falls through: the exception below reports the value.
        }
        throw new IllegalArgumentException(name + "=" + value + ": a number of 0 or more is expected");
    }
}
