package org.millrace.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.ReduceOp;

/**
 * Program that trains the JVM while the JVM creates the class cache of the ranks. Two ranks of this process join a
 * group like ranks of separate processes, first over shared memory and then over TCP. They run the first operations of
 * typical programs.
 */
public final class JoinTraining {

    private static final List<Map<String, String>> WAYS = List.of(Map.of("NCCL_P2P_DISABLE", "1"),
            Map.of("NCCL_P2P_DISABLE", "1", "NCCL_SHM_DISABLE", "1", "MILLRACE_NET", "socket"));
    private static final int BYTES = 1 << 20;
    private static final int SMALL_OPERATIONS = 2_000;
    private static final int LARGE_OPERATIONS = 100;
    /** Maximum time of an operation. The limit is high, because the machine may be busy. */
    private static final Duration DEADLINE = Duration.ofMinutes(2);

    private JoinTraining() {}

    /**
     * Runs the training.
     *
     * @param none not used
     */
    public static void main(String[] none) {
        for (Map<String, String> settings : WAYS) {
            var ranks = Millrace.builder().device("host");
            settings.forEach(ranks::set);
            ranks.runLocally(2, JoinTraining::operate);
        }
    }

    private static void operate(Communicator communicator) {
        try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
            MemorySegment from = communicator.device().allocate(BYTES, arena);
            MemorySegment to = communicator.device().allocate(BYTES, arena);
            for (int i = 0; i < SMALL_OPERATIONS; i++) {
                communicator.allReduce(from, to, 2, DataType.FLOAT32, ReduceOp.SUM, stream);
            }
            for (int i = 0; i < LARGE_OPERATIONS; i++) {
                communicator.allReduce(from, to, BYTES / Float.BYTES, DataType.FLOAT32, ReduceOp.SUM, stream);
            }
            stream.synchronize(DEADLINE);
        }
        communicator.allReduce(Operand.of(new float[1]), ReduceOp.SUM);
        communicator.allReduce(1L, ReduceOp.MAX);
        communicator.barrier();
    }
}
