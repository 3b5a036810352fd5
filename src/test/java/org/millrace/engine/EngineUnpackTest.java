package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.Operation;
import org.millrace.ReduceOp;

/** Kernels of the emulated device that gather received data from the pages of a network. */
class EngineUnpackTest extends EngineFixture {

    /**
     * Slices below the threshold stay in slots. Kernels also count empty slices. The same connections also carry slices
     * of registered memory, slices of the protocol LL, and slices in shared pools.
     */
    @ParameterizedTest
    @CsvSource({"2, shm, ring, 0, 0", "3, shm, tree, 3000, 1", "3, socket, ring, 3000, 1", "2, socket, tree, 0, 0"})
    void everyOperationGivesItsResult(int ranks, String network, String algorithm, int threshold, String shares)
            throws Exception {
        Map<String, String> settings = EngineGroup.settings("NCCL_BUFFSIZE", "64K", "NCCL_MIN_NCHANNELS", "2",
                "NCCL_ALGO", algorithm, "MILLRACE_NET", network, "NCCL_NET_DEVICE_UNPACK_ENABLED", "1",
                "NCCL_NET_DEVICE_UNPACK_THRESHOLD", "" + threshold, "NCCL_NET_SHARED_BUFFERS", shares,
                "NCCL_P2P_LL_THRESHOLD", "500", "org.millrace.engine.firstStep", "4294967290");
        EngineGroup.ranks(directory, ranks, settings, (communicator, stream, arena) -> {
            for (int count : new int[] {1, 1023, 30_001}) {
                List<Call.Running> running = new ArrayList<>();
                for (Operation operation : Operation.values()) {
                    for (boolean registers : new boolean[] {false, true}) {
                        running.add(
                                new Call(operation, count, ReduceOp.SUM, count % ranks, registers, count).new Running(
                                        communicator, stream, arena, registers));
                    }
                }
                stream.synchronize(TIMEOUT);
                running.forEach(call -> assertNull(call.wrong()));
                running.forEach(Call.Running::release);
            }
            assertEquals(List.of("NET " + network + " unpacked"), communicator.route().orElseThrow().transports());
        });
    }
}
