package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.DataType;
import org.millrace.ReduceOp;

/**
 * All ranks receive the same bits, and a sum with a NaN is a NaN. The bits of a sum of NaNs depend on the processor, on
 * the order of the operands, and on the compilation of the loop. With two ranks the order differs, because each rank
 * adds the peer's elements to its own.
 */
class SumsOfNansTest {

    private static final int COUNT = 331;

    @TempDir
    Path directory;

    @ParameterizedTest
    @CsvSource({"2, NCCL_ALGO=ring", "3, NCCL_ALGO=ring", "3, NCCL_ALGO=tree", "3, NCCL_COLLNET_ENABLE=1"})
    void allRanksGetTheSameBits(int ranks, String setting) throws Exception {
        for (DataType type : List.of(DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT32, DataType.FLOAT64)) {
            byte[][] sums = new byte[ranks][];
            Map<String, String> settings = EngineGroup.settings(setting.split("="));
            EngineGroup.ranks(directory, ranks, settings, (communicator, stream, arena) -> {
                MemorySegment mine = communicator.device().allocate((long) COUNT * type.bytes(), arena);
                MemorySegment sum = communicator.device().allocate((long) COUNT * type.bytes(), arena);
                for (int i = 0; i < COUNT; i++) {
                    // a third of this rank's elements are zero
                    set(type, mine, i, i % 3 == communicator.rank() ? 0 : nan(type, 1 + i % 100, communicator.rank()));
                }
                communicator.allReduce(mine, sum, COUNT, type, ReduceOp.SUM, stream);
                stream.synchronize(Duration.ofSeconds(EngineGroup.TIMEOUT_SECONDS));
                sums[communicator.rank()] = sum.toArray(ValueLayout.JAVA_BYTE);
            });
            long infinity = nan(type, 0, 0);
            for (int i = 0; i < COUNT; i++) {
                long bits = get(type, sums[0], i);
                assertTrue((bits & nan(type, -1, 0)) > infinity, type + " is no NaN: " + Long.toHexString(bits));
                for (byte[] others : sums) {
                    assertEquals(bits, get(type, others, i), type + " " + i);
                }
            }
        }
    }

    /**
     * Returns the bits of a quiet NaN with a payload and a sign that depend on the rank. Returns the bits of infinity
     * for payload 0, and a mask of all bits except the sign for payload -1.
     */
    private static long nan(DataType type, int payload, int rank) {
        int fraction = switch (type) {
            case FLOAT16 -> 10;
            case BFLOAT16 -> 7;
            case FLOAT32 -> 23;
            default -> 52;
        };
        int width = type.bytes() * Byte.SIZE;
        long infinity = (1L << width - 1 - fraction) - 1 << fraction;
        if (payload <= 0) {
            return infinity | (payload == 0 ? 0 : (1L << fraction) - 1);
        }
        long quiet = 1L << fraction - 1;
        return infinity | quiet | payload * 3 + rank & quiet - 1 | (long) (rank % 2) << width - 1;
    }

    private static void set(DataType type, MemorySegment to, int at, long bits) {
        switch (type.bytes()) {
            case 2 -> to.setAtIndex(ValueLayout.JAVA_SHORT, at, (short) bits);
            case 4 -> to.setAtIndex(ValueLayout.JAVA_INT, at, (int) bits);
            default -> to.setAtIndex(ValueLayout.JAVA_LONG, at, bits);
        }
    }

    private static long get(DataType type, byte[] from, int at) {
        MemorySegment all = MemorySegment.ofArray(from);
        long offset = (long) at * type.bytes();
        return switch (type.bytes()) {
            case 2 -> Short.toUnsignedLong(all.get(ValueLayout.JAVA_SHORT_UNALIGNED, offset));
            case 4 -> Integer.toUnsignedLong(all.get(ValueLayout.JAVA_INT_UNALIGNED, offset));
            default -> all.get(ValueLayout.JAVA_LONG_UNALIGNED, offset);
        };
    }
}
