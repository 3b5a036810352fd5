package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertNull;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.net.ucx.Ucx;

/**
 * Tests every operation through the whole stack, with several numbers of ranks, odd sizes, reduction operators and
 * roots, and with counters that wrap. The operations run in place and not in place.
 */
@Tag("slow")
class EngineCollectivesTest extends EngineFixture {

    private static final int[] COUNTS = {0, 1, 3, 1023, 40_007};
    private static final List<ReduceOp> REDUCTIONS =
            List.of(ReduceOp.SUM, ReduceOp.PROD, ReduceOp.MAX, ReduceOp.MIN, ReduceOp.AVG, new ReduceOp.PreMulSum(3));

    /** Returns calls of every operation: in a few sizes, in place and not in place. */
    static List<Call> calls(int ranks) {
        List<Call> calls = new ArrayList<>();
        for (Operation operation : Operation.values()) {
            for (int count : COUNTS) {
                for (boolean inPlace : new boolean[] {false, true}) {
                    int number = calls.size();
                    calls.add(new Call(operation, count, REDUCTIONS.get(number % REDUCTIONS.size()), number % ranks,
                            inPlace, number));
                }
            }
        }
        return calls;
    }

    @ParameterizedTest
    @CsvSource({"1, 1, 0, auto, ring", "2, 1, 0, auto, ring", "2, 3, 2147483646, socket, tree",
            "3, 2, 4294967294, auto, tree", "3, 1, 9223372036854775806, socket, ring", "4, 1, -3, auto, tree",
            "5, 2, 0, auto, ring", "5, 3, -3, auto, tree", "8, 1, 0, auto, tree", "8, 1, 0, auto, ring",
            "3, 2, 4294967294, ucx, ring", "4, 1, -3, ucx, tree"})
    void everyRankGetsWhatTheReferenceSays(int ranks, int channels, long firstStep, String network, String algorithm)
            throws Exception {
        Ucx.assumeUsable(network);
        Map<String, String> settings =
                EngineGroup.settings("NCCL_MIN_NCHANNELS", "" + channels, "org.millrace.engine.firstStep",
                        "" + firstStep, "NCCL_BUFFSIZE", "64K", "MILLRACE_NET", network, "NCCL_ALGO", algorithm);
        runAll(directory, ranks, settings).forEach(failure -> assertNull(failure, () -> String.valueOf(failure)));
    }

    /** Runs all calls on ranks that are threads. Returns the exception of each rank. */
    static List<Throwable> runAll(Path directory, int ranks, Map<String, String> settings) throws Exception {
        return EngineGroup.thrown(directory, ranks, settings, (communicator, stream, arena) -> {
            List<Call.Running> running = new ArrayList<>();
            for (Call call : calls(ranks)) {
                running.add(call.new Running(communicator, stream, arena));
            }
            stream.synchronize(TIMEOUT);
            for (Call.Running call : running) {
                assertNull(call.wrong());
            }
        });
    }
}
