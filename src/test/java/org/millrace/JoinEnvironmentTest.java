package org.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class JoinEnvironmentTest {

    private static JoinEnvironment of(String variables) {
        Map<String, String> all = Arrays.stream(variables.split(" "))
                .map(each -> each.split("=", 2))
                .collect(Collectors.toMap(each -> each[0], each -> each[1]));
        return JoinEnvironment.of(all::get);
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
        assertEquals(new JoinEnvironment(rendezvous, 1, 4), of(variables));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"PATH=x                                     | none of RANK and WORLD_SIZE",
                    "RANK=1                                      | RANK and WORLD_SIZE (only RANK is set)",
                    "RANK=one WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1 | RANK=one: a number",
                    "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a           | set MASTER_ADDR",
                    "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=j | Open MPI"})
    void whatIsMissingIsSaid(String variables, String message) {
        IllegalArgumentException thrown = assertThrows(IllegalArgumentException.class, () -> of(variables));
        assertTrue(thrown.getMessage().contains(message), thrown.getMessage());
    }

    @Test
    void aProcessThatNobodyLaunchedHearsHow() {
        if (System.getenv("RANK") == null && System.getenv("OMPI_COMM_WORLD_RANK") == null
                && System.getenv("SLURM_PROCID") == null && System.getenv("PMI_RANK") == null) {
            IllegalArgumentException thrown = assertThrows(IllegalArgumentException.class, Millrace::join);
            assertTrue(thrown.getMessage().contains("MASTER_ADDR"), thrown.getMessage());
        }
    }
}
