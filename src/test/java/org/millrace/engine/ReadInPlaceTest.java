package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.Registration;
import org.millrace.net.shm.SharedMemory;

/** Registered memory over P2P and SHM. Peers read it in place, in every operation. */
class ReadInPlaceTest extends EngineFixture {

    private static final Set<Operation> ALL = Set.of(Operation.ALL_REDUCE, Operation.REDUCE, Operation.REDUCE_SCATTER,
            Operation.ALL_GATHER, Operation.BROADCAST, Operation.SEND_RECEIVE, Operation.ALL_TO_ALL, Operation.GATHER,
            Operation.SCATTER);

    /** @param registered a bit for each rank, set if the rank registers its memory */
    @ParameterizedTest
    @CsvSource({"2, P2P, ring, 3", "2, P2P, ring, 1", "3, P2P, tree, 7", "5, P2P, tree, 21", "3, SHM, ring, 7",
            "4, SHM, tree, 15", "3, SHM, tree, 5", "3, copy, ring, 7"})
    void everyOperationGivesItsResult(int ranks, String transport, String algorithm, int registered) throws Exception {
        assumeTrue(transport.equals("P2P") || SharedMemory.sealedDomain() != 0, "this machine has no sealed memory");
        Map<String, String> settings = EngineGroup.settings("NCCL_BUFFSIZE", "64K", "NCCL_MIN_NCHANNELS", "2",
                "NCCL_ALGO", algorithm, "NCCL_PROTO", "Simple", "NCCL_P2P_LL_THRESHOLD", "0",
                "org.millrace.engine.firstStep", "4294967290", "NCCL_P2P_DISABLE", transport.equals("P2P") ? "0" : "1",
                "NCCL_SHM_USE_CUDA_MEMCPY", transport.equals("copy") ? "1" : "0", "MILLRACE_REGISTERED_THRESHOLD", "0");
        EngineGroup.ranks(directory, ranks, settings, communicator -> {
            boolean registers = (registered >> communicator.rank() & 1) == 1;
            try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                for (int count : new int[] {1, 1023, 30_001}) {
                    List<Call.Running> running = new ArrayList<>();
                    for (Operation operation : ALL) {
                        for (boolean inPlace : new boolean[] {false, true}) {
                            ReduceOp op = count == 1 ? ReduceOp.AVG : inPlace ? ReduceOp.MAX : ReduceOp.SUM;
                            running.add(new Call(operation, count, op, count % ranks, inPlace, count).new Running(
                                    communicator, stream, arena, registers));
                            boolean exchanged = operation == Operation.ALL_REDUCE && ranks == 2 && count < 2048
                                    && op != ReduceOp.AVG;
                            assertEquals(registers && !exchanged && !transport.equals("copy") ? "PTR" : "NORMAL",
                                    mode(communicator, stream), operation + " of " + count);
                        }
                    }
                    running.forEach(call -> assertNull(call.wrong()));
                    running.forEach(Call.Running::release);
                }
            }
        });
    }

    /**
     * Short data uses slots, because a sender copies it faster than a receiver would read it in place. The user may set
     * another threshold.
     */
    @Test
    void whatIsShortGoesThroughSlots() throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), (communicator, stream, arena) -> {
            MemorySegment data = communicator.device().allocate(512 << 10, arena);
            Registration registration = communicator.register(data);
            for (int kib : new int[] {64, 128, 256, 512}) {
                communicator.allReduce(data, data, kib << 10, DataType.INT8, ReduceOp.SUM, stream);
                assertEquals(kib < 128 ? "NORMAL" : "PTR", mode(communicator, stream), "all-reduce of " + kib);
                communicator.broadcast(data, data, kib << 10, DataType.INT8, 0, stream);
                assertEquals(kib < 256 ? "NORMAL" : "PTR", mode(communicator, stream), "broadcast of " + kib);
            }
            registration.close();
        });
    }

    private static String mode(org.millrace.Communicator communicator, DeviceStream stream) {
        stream.synchronize(TIMEOUT);
        return communicator.route().orElseThrow().mode();
    }
}
