package org.millrace.plugin.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.BitSet;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Number of cores for one process, which follows from affinity mask, quota, and number of ranks on the host. */
class CoreShareTest {

    private static CoreShare share(int usable, int allowed, int common, Map<String, String> environment) {
        return CoreShare.of(usable, allowed, common, environment::get, 1);
    }

    @ParameterizedTest
    @CsvSource({
            // columns: usable cores, allowed cores, common cores, number of ranks, expected cores of a rank
            "32, 32, 32, 2, 16", // the ranks are not bound: both share all cores
            "2, 2, 32, 2, 2", // each rank is bound to its own cores
            "16, 16, 32, 4, 8", // two ranks on each of two sockets
            "2, 32, 32, 2, 1", // the ranks share a quota of two cores
            "1, 32, 32, 4, 1", // a rank never has less than one core
            "3, 3, 4, 1, 3"})
    void coresOfARank(int usable, int allowed, int common, int ranks, int cores) {
        CoreShare share = share(usable, allowed, common, Map.of("LOCAL_WORLD_SIZE", Integer.toString(ranks)));
        assertEquals(cores, share.cores(), share.reason());
        assertTrue(share.reason().startsWith(usable + " usable"), share.reason());
    }

    /** If no launcher has set the number of ranks, the running processes that use Millrace are counted. */
    @Test
    void withoutALauncherThoseThatRunAreCounted() {
        CoreShare counted = CoreShare.of(32, 32, 32, name -> null, 8);
        assertEquals(4, counted.cores());
        assertEquals("32 usable, 32 in common, 8 processes with Millrace", counted.reason());
        assertEquals(16, CoreShare.of(32, 32, 32, Map.of("LOCAL_WORLD_SIZE", "2")::get, 8).cores(), "it knows better");
        assertEquals(2, CoreShare.of(2, 2, 32, name -> null, 8).cores(), "cores of its own");
        assertEquals(1, CoreShare.of(4, 4, 4, name -> null, 8).cores());
    }

    /** The cores 0 to 31 of the host are online. A mask may also contain the cores 32 to 63. */
    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                    // columns: masks of the container's first process and of this process; whether this process is the
                    // first; common cores
                    "8-19; 8-19; false; 12", // a container with a cpuset of 12 cores
                    "8-19; 8-11; false; 12", // this rank is bound to cores of the container
                    "0-63; 0-15; false; 32", "0-3; 16-30; false; 32", // the first process is bound to other cores
                    "8-11; 8-11; true; 32", // one container for each rank
                    "; 8-11; false; 32"}) // the processes of other users are hidden
    void aContainersProcessesShareItsCores(String first, String mine, boolean isFirst, int common, @TempDir Path root)
            throws IOException {
        Path online = root.resolve("sys/devices/system/cpu/online");
        Files.createDirectories(online.getParent());
        Files.writeString(online, "0-31\n");
        if (first != null) {
            Path status = root.resolve("proc/1/status");
            Files.createDirectories(status.getParent());
            Files.writeString(status, "Name:\tpython3\nCpus_allowed_list:\t" + first + "\n");
        }
        BitSet allowed = CoreShare.cores(Optional.of(mine));
        assertEquals(common, CoreShare.commonCores(root, allowed, isFirst).cardinality());
    }

    @Test
    void launchersSayHowManyRanksThereAre() {
        assertEquals(8, share(32, 32, 32, Map.of("OMPI_COMM_WORLD_LOCAL_SIZE", "4")).cores());
        assertEquals(8, share(32, 32, 32, Map.of("MPI_LOCALNRANKS", " 4")).cores());
        assertEquals(32, share(32, 32, 32, Map.of("SLURM_NTASKS_PER_NODE", "4(x2)")).cores(), "not understood");
        assertEquals(32, share(32, 32, 32, Map.of()).cores());
    }

    @ParameterizedTest
    @CsvSource({"1, 1, false", "2, 1, false", "3, 1, false", "4, 2, true", "8, 4, true", "16, 8, true", "64, 8, true"})
    void halfOfTheCoresPoll(int cores, int threads, boolean own) {
        CoreShare share = new CoreShare(cores, "");
        assertEquals(threads, share.proxyThreads());
        assertEquals(own, share.coreForEach(threads));
    }

    @Test
    void listsOfCoresAreRead() {
        assertEquals("{0, 1, 2, 3, 8}", CoreShare.cores(Optional.of("0-3,8\n")).toString());
        assertEquals("{7}", CoreShare.cores(Optional.of("\t7")).toString());
        assertTrue(CoreShare.cores(Optional.of("")).isEmpty());
        assertTrue(CoreShare.cores(Optional.empty()).isEmpty());
    }

    @Test
    void thisProcessHasSome() {
        assertTrue(CoreShare.ofThisProcess(name -> null, 1).cores() >= 1);
    }

    @Test
    void launchersSayWhetherAllRanksAreHere() {
        assertTrue(
                CoreShare.isWholeJobHere(Map.of("OMPI_COMM_WORLD_LOCAL_SIZE", "2", "OMPI_COMM_WORLD_SIZE", "2")::get));
        assertFalse(
                CoreShare.isWholeJobHere(Map.of("OMPI_COMM_WORLD_LOCAL_SIZE", "2", "OMPI_COMM_WORLD_SIZE", "4")::get));
        assertTrue(CoreShare.isWholeJobHere(Map.of("LOCAL_WORLD_SIZE", "8", "WORLD_SIZE", "8")::get));
        assertFalse(CoreShare.isWholeJobHere(Map.of("LOCAL_WORLD_SIZE", "1", "WORLD_SIZE", "2")::get));
        assertTrue(CoreShare.isWholeJobHere(Map.of("SLURM_NNODES", "1")::get));
        assertFalse(CoreShare.isWholeJobHere(Map.of("SLURM_NNODES", "2")::get));
        assertFalse(CoreShare.isWholeJobHere(Map.of("WORLD_SIZE", "2")::get), "nobody says how many are here");
    }
}
