package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.example.millrace.unix.UnixSocketTransport;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.net.shm.SharedMemory;

/** The command {@code mvn -Pmatrix}. */
@Timeout(value = 180, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
@Tag("slow")
class MatrixCommandTest {

    @AfterEach
    void nothingIsLeftBehind() {
        System.clearProperty(UnixSocketTransport.ENABLE);
        assertEquals(List.of(),
                ProcessHandle.current().descendants().filter(ProcessHandle::isAlive).map(ProcessHandle::info).toList());
    }

    /** Returns the cells of the row that begins with the given words. */
    private static List<String> row(Run run, String begin) {
        String line = run.out()
                .lines()
                .map(each -> each.replaceAll(" +", " "))
                .filter(each -> each.startsWith(begin + " "))
                .findFirst()
                .orElseThrow(() -> new AssertionError(begin + ": " + run));
        return Arrays.asList(line.substring(begin.length() + 1).split(" "));
    }

    @Test
    @Tag("nightly")
    void someCellsOfAll() {
        Run run = Run.matrix("--quick");
        assertEquals(0, run.status(), run.toString());
        assertTrue(run.out().matches("(?s).*# cells: [1-9]\\d* ran, 0 wrong, \\d+ impossible \\(\\d+ reasons\\)\\R"),
                run.toString());
        assertTrue(run.out().startsWith("# seed: "), run.toString());
        // a sample omits groups that are impossible as a whole, so it does not report their reasons
        assertFalse(run.out().contains("COLLNET runs Simple only"), run.toString());
        assertFalse(run.out().contains("OFFSET: over NET only"), run.toString());
    }

    @Test
    void aLineForEachNumberOfRanksSaysHowFarItIs() {
        Run run = Run.matrix("--collective", "all_reduce", "--algorithm", "tree", "--transport", "P2P,SHM",
                "--protocol", "Simple", "--mode", "NORMAL", "-r", "2,3", "--processes", "0");
        assertEquals(0, run.status(), run.toString());
        assertEquals(
                List.of("# 2 ranks, threads: 2 of 4 cells, 2 ran, 0 wrong, ",
                        "# 3 ranks, threads: 4 of 4 cells, 4 ran, 0 wrong, "),
                run.err()
                        .lines()
                        .filter(line -> line.startsWith("# "))
                        .map(line -> line.replaceAll("\\d+ s$", ""))
                        .toList(),
                run.toString());
        assertFalse(run.out().contains("all_reduce     ring"), run.toString());
        assertFalse(run.out().contains(" of 4 cells"), run.toString());
    }

    @Test
    void whatCannotBeHasItsReason() {
        Run run = Run.matrix("--collective", "all_reduce,sendrecv", "--transport", "P2P,COLLNET", "--protocol",
                "LL,Simple", "--mode", "NORMAL", "-r", "2", "--seed", "3");
        assertEquals(0, run.status(), run.toString());
        if (SharedMemory.sealedDomain() != 0) { // P2P needs sealed memory
            List<String> all = List.of("ok", "ok", "ok", "ok");
            assertEquals(all, row(run, "all_reduce ring P2P NORMAL"), run.toString());
            assertEquals(all, row(run, "all_reduce tree P2P NORMAL"), run.toString());
        }
        assertEquals("ok", row(run, "all_reduce collnetdirect COLLNET NORMAL").getLast(), run.toString());
        for (String reason : List.of("tree: all_reduce only", "COLLNET: all_reduce, all_gather and reduce_scatter only",
                "LL: COLLNET runs Simple only")) {
            assertTrue(run.out().lines().anyMatch(line -> line.matches("# [a-z]: " + reason + ".*")),
                    reason + " in " + run);
        }
        assertFalse(run.out().contains("not yet"), run.toString());
        assertTrue(run.out().startsWith("# seed: 3, "), run.toString());
    }

    @Test
    void whatTheDeadlineCutsOffIsCountedAndNotListed() {
        Run run =
                Run.matrix("--deadline", "1ms", "--processes", "0", "-r", "2", "--collective", "all_gather,broadcast");
        assertEquals(1, run.status(), run.toString());
        assertEquals(8, run.out().lines().filter(line -> line.startsWith("#   again: ")).count(), run.toString());
        assertTrue(run.out().matches("(?s).*# FAIL \\d+ more cells: not finished in time \\(--deadline\\)\\R.*"),
                run.toString());
    }

    @Test
    void aFaultIsSeen() {
        // The test uses an all-gather, because its result always contains the changed bit. In a reduction, a minimum or
        // a rounded sum may hide the changed bit.
        Run run = Run.matrix("--collective", "all_gather", "--transport", "P2P,NET socket", "--protocol", "Simple",
                "--mode", "NORMAL", "-r", "2", "--processes", "0", "-D", "MILLRACE_FAULT=flip:frame=3,bit=17");
        assertEquals(1, run.status(), run.toString());
        assertTrue(Long.parseLong(row(run, "all_gather ring NET socket NORMAL").getFirst()) > 0, run.toString());
        assertTrue(run.out().contains(": P2P: MILLRACE_FAULT is planted in a network"), run.toString());
        assertFalse(run.out().contains(" 0 wrong"), run.toString());
    }

    @Test
    void aCellWithAFaultSaysHowToRunItAgain() {
        Run first = Run.matrix("--collective", "broadcast,reduce", "--transport", "NET socket", "--mode", "NORMAL",
                "--protocol", "LL,Simple", "-r", "2,3", "--processes", "0", "-D", "MILLRACE_FAULT=flip:frame=1,bit=17");
        assertEquals(1, first.status(), first.toString());
        List<String> lines = first.out().lines().toList();
        int wrong = lines.indexOf(lines.stream()
                .filter(line -> line.endsWith("wrong broadcast ring NET socket NORMAL Simple, 2 threads"))
                .findFirst()
                .orElseThrow(() -> new AssertionError(first)));
        String again = lines.get(wrong + 1);
        assertTrue(again.matches(
                "#   again: mvn -Pmatrix -Dmatrix.args=\"--seed \\d+ --collective broadcast --algorithm ring --transport 'NET "
                        + "socket' --protocol Simple " + "--mode NORMAL --ranks 2"
                        + " --processes 0 -D MILLRACE_FAULT=flip:frame=1,bit=17\""),
                again);
        Run second = Run.matrix(again.substring(again.indexOf("--seed"), again.length() - 1)
                .replace("'NET socket'", "NET_socket")
                .transform(each -> Arrays.stream(each.split(" "))
                        .map(word -> word.replace('_', word.startsWith("NET") ? ' ' : '_'))
                        .toArray(String[]::new)));
        assertEquals(List.of(lines.get(wrong), again),
                second.out()
                        .lines()
                        .filter(line -> line.contains(" wrong broadcast ") || line.contains("again"))
                        .toList(),
                second.toString());
    }

    @Test
    void aCellThatFailsDoesNotEndTheOthers() {
        Run run = Run.matrix("--collective", "broadcast", "--transport", "NET shm", "--protocol", "LL,Simple", "--mode",
                "NORMAL", "-r", "2", "--processes", "0", "-D", "MILLRACE_FAULT=cut:frame=2");
        assertEquals(1, run.status(), run.toString());
        assertEquals(List.of("FAIL", "FAIL"), row(run, "broadcast ring NET shm NORMAL"), run.toString());
        assertTrue(run.out().contains("# FAIL broadcast ring NET shm NORMAL Simple, 2 threads: "), run.toString());
    }

    @Test
    void aTransportOfAnotherJarIsAColumnOfItsOwn() {
        System.setProperty(UnixSocketTransport.ENABLE, "true");
        Run run = Run.matrix("--collective", "reduce", "--transport", "UNIX,SHM", "--protocol", "Simple", "--mode",
                "NORMAL", "-r", "2", "--processes", "0");
        assertEquals(0, run.status(), run.toString());
        assertEquals(List.of("ok"), row(run, "reduce ring UNIX NORMAL"), run.toString());
        assertTrue(run.out().contains("SHM: UNIX is asked first, and says yes"), run.toString());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"-r 1000 | a whole number from 1 to 256",
                    "-D NCCL_ALGO=star | NCCL_ALGO=star: there is no algorithm star",
                    "--collective allreduce | --collective: there is no 'allreduce'; did you mean all_reduce?",
                    "--algorithm nvls | --algorithm: there is no 'nvls'; allowed: ring, tree, collnet",
                    "--algorithm tree --transport COLLNET | no cell is all of that",
                    "--transport IB | --transport: there is no 'IB'; allowed: P2P, P2P by copy, SHM",
                    "--protocol LL64 | there is no 'LL64'; allowed: LL, LL128, Simple",
                    "--mode DMA | there is no 'DMA'; allowed: NORMAL, OFFSET, PTR",
                    "--ranks 1 | one rank has nobody to send to", "-D MILLRACE_NETT=shm | did you mean MILLRACE_NET?"})
    void whatCannotBeUnderstoodIsExplained(String arguments, String expected) {
        Run run = Run.matrix(arguments.split(" "));
        assertEquals(2, run.status(), run.toString());
        assertTrue(run.err().contains(expected), run.toString());
    }
}
