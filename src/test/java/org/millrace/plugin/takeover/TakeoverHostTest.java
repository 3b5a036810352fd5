package org.millrace.plugin.takeover;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.plugin.HostProgram;

/**
 * A C host that behaves like libnccl 2.28 to 2.32, with CPU threads as kernels. Connections that are taken over carry
 * random sequences of operations of all protocols, in both directions of several channels. The kernels check every
 * byte. The totals show that all kinds of steps occurred.
 */
@Tag("slow")
class TakeoverHostTest {

    private static final int CHANNELS = 3;
    private static final int SMALL_STEPS = 1000;
    private static final int USUAL_STEPS = 400;
    private static final Pattern TOTALS = Pattern
            .compile("rank (\\d) (sent|received): ((\\d+) steps, (\\d+) LL, (\\d+) LL128, (\\d+) Simple, (\\d+) empty,"
                    + " (\\d+) left out, \\d+ bytes)");

    @ParameterizedTest
    @CsvSource({"8, threads, socket, 1, small, FIFO_VERSION=28", "9, threads, shm, 2, small, FIFO_VERSION=31",
            "10, processes, auto, 1, small, FIFO_VERSION=28", "11, processes, socket, 2, small, NCCL_CODE=22809",
            "12, threads, socket, 2, usual, NCCL_CODE=23102", "12, processes, shm, 1, usual, NCCL_CODE=23206",
            "12, processes, shm behind a link, 1, small, NCCL_CODE=23007",
            "11, processes, ucx, 1, small, FIFO_VERSION=28", "9, threads, plugin, 2, small, FIFO_VERSION=31"})
    void allThatKernelsSendArrives(int version, String way, String network, int threads, String sizes, String nccl)
            throws Exception {
        takesOver(version, way, network, threads, sizes, nccl);
    }

    @ParameterizedTest
    @Tag("nightly")
    @CsvSource({"8, processes, shm, 1, small, FIFO_VERSION=31", "9, processes, socket, 1, small, FIFO_VERSION=28",
            "10, threads, socket, 1, small, FIFO_VERSION=31", "11, threads, shm, 1, small, NCCL_CODE=22809",
            "12, processes, shm, 1, small, NCCL_CODE=23007", "10, threads, ucx, 2, small, FIFO_VERSION=31",
            "12, processes, ucx tcp, 1, usual, NCCL_CODE=23102", "11, processes, plugin, 1, small, FIFO_VERSION=28"})
    void inMoreCombinations(int version, String way, String network, int threads, String sizes, String nccl)
            throws Exception {
        takesOver(version, way, network, threads, sizes, nccl);
    }

    private static void takesOver(int version, String way, String network, int threads, String sizes, String nccl)
            throws Exception {
        HostProgram host = HostProgram.compile("takeover_host", "-DNET_VERSION=" + version, "-D" + nccl, "-rdynamic");
        arrives(host, version, way, network, threads, sizes, nccl.startsWith("NCCL") ? described(nccl)
                : "an NCCL of unknown version, whose memory tells how connFifo is laid out");
    }

    /** A host that behaves as RCCL does, with kernels of 64 or 32 threads in a warp. */
    @ParameterizedTest
    @CsvSource({"22707, 10, 64, processes, socket, 1, small", "22803, 11, 32, processes, shm, 1, small",
            "23004, 12, 64, processes, shm, 2, usual", "23007, 12, 32, threads, socket, 1, small"})
    void allThatKernelsOfRcclSendArrives(int release, int version, int wave, String way, String network, int threads,
            String sizes) throws Exception {
        takesRcclOver(release, version, wave, way, network, threads, sizes);
    }

    @ParameterizedTest
    @Tag("nightly")
    @CsvSource({"22707, 10, 64, threads, shm, 2, usual", "22803, 11, 64, threads, socket, 2, usual",
            "22803, 11, 64, processes, socket behind a link, 1, small"})
    void inMoreCombinationsWithRccl(int release, int version, int wave, String way, String network, int threads,
            String sizes) throws Exception {
        takesRcclOver(release, version, wave, way, network, threads, sizes);
    }

    private static void takesRcclOver(int release, int version, int wave, String way, String network, int threads,
            String sizes) throws Exception {
        HostProgram host = HostProgram.compileRccl("takeover_host", release, wave, "-DNET_VERSION=" + version);
        arrives(host, version, way, network, threads, sizes, "connFifo entries of 24 bytes at offset 64");
    }

    private static void arrives(HostProgram host, int version, String way, String network, int threads, String sizes,
            String described) throws Exception {
        long seed = 0x5eed + 31 * version + way.length();
        int steps = sizes.equals("small") ? SMALL_STEPS : USUAL_STEPS;
        host.withNetwork(network).with("MILLRACE_THREADS", Integer.toString(threads));
        if (sizes.equals("usual")) {
            host.withEveryCompiler();
        }
        var outcome = host.run(HostProgram.library(), way, CHANNELS, steps, seed, sizes);
        assertEquals(0, outcome.exit(), () -> "seed " + seed + "\n" + outcome.output());
        assertTrue(outcome.endsWith("OK ncclNetPlugin_v" + version + "\n"), outcome.output());
        assertEquals(0, outcome.count("LOG 2 "),
                () -> "nothing is wrong, and so nobody is warned:\n" + outcome.output());
        assertTrue(outcome.count(described) > 0, outcome.output());
        for (int rank = 0; rank < 2; rank++) {
            MatchResult sent = totals(outcome, rank, "sent");
            assertEquals(sent.group(3), totals(outcome, 1 - rank, "received").group(3));
            assertTrue(number(sent, 4) >= CHANNELS * steps, outcome.output());
            for (int kind = 5; kind <= 9; kind++) {
                assertTrue(number(sent, kind) > steps / 100, outcome.output());
            }
        }
    }

    /** Returns the log line about a version and its layout. */
    private static String described(String code) {
        return switch (code) {
            case "NCCL_CODE=22809" -> "NCCL 2.28.9, connFifo entries of 24 bytes";
            case "NCCL_CODE=23007" -> "NCCL 2.30.7, connFifo entries of 24 bytes";
            case "NCCL_CODE=23102" -> "NCCL 2.31.2, connFifo entries of 32 bytes";
            default -> "NCCL 2.32.6, connFifo entries of 32 bytes";
        };
    }

    private static MatchResult totals(HostProgram.Outcome outcome, int rank, String what) {
        return TOTALS.matcher(outcome.output())
                .results()
                .filter(line -> number(line, 1) == rank && line.group(2).equals(what))
                .findFirst()
                .orElseThrow(() -> new AssertionError(
                        "no totals of what rank " + rank + " " + what + ":\n" + outcome.output()));
    }

    private static int number(MatchResult line, int group) {
        return Integer.parseInt(line.group(group));
    }
}
