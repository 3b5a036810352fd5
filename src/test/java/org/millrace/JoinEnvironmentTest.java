package org.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class JoinEnvironmentTest {

    private static JoinEnvironment of(String variables, String... commands) {
        Map<String, String> all = Arrays.stream(variables.split(" "))
                .map(each -> each.split("=", 2))
                .collect(Collectors.toMap(each -> each[0], each -> each[1]));
        return JoinEnvironment.of(all::get, () -> List.of(commands));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                    "RANK=1 WORLD_SIZE=4 MASTER_ADDR=node0 MASTER_PORT=29500                            | tcp:node0:29500",
                    "RANK=1 WORLD_SIZE=4 MASTER_ADDR=fd00::1 MASTER_PORT=9                               | tcp:[fd00::1]:9",
                    "RANK=1 WORLD_SIZE=4 MASTER_ADDR=[::1] MASTER_PORT=9                                 | tcp:[::1]:9",
                    "RANK=1 WORLD_SIZE=4 MASTER_ADDR=fe80::1%eth0 MASTER_PORT=9                          | tcp:[fe80::1%eth0]:9",
                    "RANK=1 WORLD_SIZE=4 MASTER_ADDR=a MASTER_PORT=9 TORCHELASTIC_USE_AGENT_STORE=True   | tcp:a:10",
                    "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_NAMESPACE=j@1 | job:j_1-null",
                    "PMI_RANK=1 PMI_SIZE=4 MASTER_ADDR=a MASTER_PORT=9                                   | tcp:a:9",
                    "SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_TASKS_ON_NODE=4 SLURM_JOB_ID=7 SLURM_STEP_ID=2  | job:7-2",
                    "SLURM_PROCID=1 SLURM_NTASKS=4 SLURM_TASKS_ON_NODE=2 SLURM_JOB_ID=7 SLURM_STEP_NODELIST=n[01-03,7]x,m | tcp:n01x:20055"})
    void launchersSayWhichRankThisIs(String variables, String rendezvous) {
        assertEquals(new JoinEnvironment(rendezvous, 1, 4, true), of(variables));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"RANK=1                             | RANK=1, WORLD_SIZE not set",
                    "RANK=1 SLURM_NTASKS=4                       | SLURM_PROCID not set, SLURM_NTASKS=4",
                    "RANK= WORLD_SIZE=                           | RANK=, WORLD_SIZE=)",
                    "PMI_RANK=0 PMI_FD=7                         | PMI_RANK=0, PMI_SIZE not set; PMI_FD=7",
                    "PMIX_RANK=2 PMIX_NAMESPACE=n                | PMIX_RANK=2",
                    "LOCAL_RANK=0                                | LOCAL_RANK=0",
                    "JOB_COMPLETION_INDEX=3                      | JOB_COMPLETION_INDEX=3",
                    "MPI_LOCALRANKID=1                           | MPI_LOCALRANKID=1",
                    "MASTER_ADDR=a MASTER_PORT=9                 | MASTER_ADDR=a; MASTER_PORT=9",
                    "MILLRACE_RUN_ID=5                           | MILLRACE_RUN_ID=5",
                    "RANK=4 WORLD_SIZE=4 MASTER_ADDR=a MASTER_PORT=1 | RANK=4, WORLD_SIZE=4: the rank must be less",
                    "RANK=0 WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 | OMPI_COMM_WORLD_SIZE=4 of Open MPI do not",
                    "RANK=0 WORLD_SIZE=1 PMI_RANK=1              | PMI_RANK=1, PMI_SIZE not set of MPICH do not",
                    "RANK=1 SLURM_PROCID=0 SLURM_NTASKS=1        | RANK=1, WORLD_SIZE not set of torchrun do not",
                    "RANK=0 WORLD_SIZE=1 SLURM_PROCID=3 SLURM_NTASKS=4 SLURM_STEP_ID=0 | SLURM_PROCID=3, SLURM_NTASKS=4",
                    "RANK=one WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1 | RANK=one: a number",
                    "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a           | set MASTER_ADDR",
                    "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=j | Open MPI"})
    void whatIsMissingIsSaid(String variables, String message) {
        IllegalArgumentException thrown = assertThrows(IllegalArgumentException.class, () -> of(variables));
        assertTrue(thrown.getMessage().contains(message), thrown.getMessage());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"RANK=0 WORLD_SIZE=1", "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_STEP_ID=0",
                    "RANK=0 WORLD_SIZE=1 SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=7",
                    "RANK=0 WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1"})
    void aLaunchedGroupOfOneNeedsNoMeetingPlace(String variables) {
        JoinEnvironment found = of(variables);
        assertEquals(List.of(0, 1, true), List.of(found.rank(), found.size(), found.isLaunched()));
    }

    @Test
    void aProcessWithoutALauncherIsAGroupOfOne() {
        JoinEnvironment found = of("PATH=x SLURM_JOB_ID=7", "bash", "slurmstepd", "systemd");
        assertEquals(List.of(0, 1, false), List.of(found.rank(), found.size(), found.isLaunched()));
    }

    /**
     * A program such as sudo removes the launcher's variables. If a process without these variables were not refused,
     * it would form a group of one rank.
     */
    @ParameterizedTest
    @ValueSource(strings = {"mpirun", "hydra_pmi_proxy", "prterun", "slurmstepd"})
    void aProcessWithoutItsLaunchersVariablesIsRefused(String launcher) {
        IllegalArgumentException thrown =
                assertThrows(IllegalArgumentException.class, () -> of("PATH=x", "sudo", launcher));
        assertTrue(thrown.getMessage().contains("started by " + launcher), thrown.getMessage());
    }

    @Test
    void oneNoticeReportsAGroupOfOneThatNoLauncherStarted() {
        Assumptions.assumeTrue(Stream.of("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK")
                .allMatch(name -> System.getenv(name) == null), "a launcher started this JVM");
        PrintStream before = System.err;
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        System.setErr(new PrintStream(printed, true));
        JoinEnvironment.NOTICE_IS_DUE.set(true);
        try {
            for (int i = 0; i < 2; i++) {
                Millrace.builder()
                        .device("host")
                        .run(communicator -> assertEquals(3, communicator.allReduce(3, ReduceOp.SUM)));
            }
        } finally {
            System.setErr(before);
        }
        String text = printed.toString();
        assertTrue(text.contains("millrace run -n RANKS -- COMMAND"), text);
        assertEquals(text.indexOf("group of one"), text.lastIndexOf("group of one"), text);
    }
}
