package org.millrace.nccl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.DeviceSegments;
import org.millrace.cuda.OwnClassLoader;

/** Operands, scalars and ids: the accepted values, and the resulting bits. */
@ExtendWith(OwnClassLoader.class)
class NcclValuesTest {

    private static final MemorySegment SEND = DeviceSegments.of(0x700000000000L, 1 << 20);
    private static final MemorySegment RECEIVE = DeviceSegments.of(0x700000100000L, 1 << 20);

    @Test
    void operandsAreCheckedForTheirSize() {
        Stubs stubs = Stubs.load();
        NcclCommunicator c = stubs.communicator();
        CudaStream stream = stubs.stream();
        stubs.calls();
        MemorySegment small = SEND.asSlice(0, 63);
        String tooSmall = assertThrows(IllegalArgumentException.class,
                () -> c.allReduce(SEND, small, 16, DataType.FLOAT32, ReduceOp.SUM, stream)).getMessage();
        assertEquals("receive has 63 bytes, but 64 are needed", tooSmall);
        assertThrows(IllegalArgumentException.class, () -> c.allGather(SEND, small, 8, DataType.FLOAT32, stream));
        assertThrows(IllegalArgumentException.class,
                () -> c.reduceScatter(small, RECEIVE, 8, DataType.FLOAT32, ReduceOp.SUM, stream));
        assertThrows(IllegalArgumentException.class, () -> c.gather(SEND, small, 32, DataType.INT8, 1, stream));
        assertThrows(IllegalArgumentException.class, () -> c.gather(SEND, null, 32, DataType.INT8, 1, stream));
        assertThrows(IllegalArgumentException.class, () -> c.scatter(small, RECEIVE, 32, DataType.INT8, 1, stream));
        assertThrows(IllegalArgumentException.class, () -> c.send(SEND, -1, DataType.INT8, 0, stream));
        assertThrows(IllegalArgumentException.class,
                () -> c.allToAll(SEND, RECEIVE, Long.MAX_VALUE / 8, DataType.INT64, stream));
        MemorySegment heap = MemorySegment.ofArray(new byte[64]);
        assertTrue(assertThrows(IllegalArgumentException.class, () -> c.send(heap, 1, DataType.INT8, 0, stream))
                .getMessage()
                .contains("Java heap"));
        Arena arena = Arena.ofConfined();
        MemorySegment closed = arena.allocate(64);
        arena.close();
        assertThrows(IllegalArgumentException.class, () -> c.send(closed, 1, DataType.INT8, 0, stream));
        assertEquals(List.of(), stubs.calls());
    }

    @Test
    void scalarsHaveTheBitsOfTheirType() {
        assertEquals("7f", scalar(300, DataType.INT8));
        assertEquals("c8", scalar(200, DataType.UINT8));
        assertEquals("00", scalar(-1, DataType.UINT8));
        assertEquals("ffffffff", scalar(5e9, DataType.UINT32));
        assertEquals("0000000000000080", scalar(0x1p63, DataType.UINT64));
        assertEquals("ffffffffffffffff", scalar(1e30, DataType.UINT64));
        assertEquals("ffffffffffffff7f", scalar(1e30, DataType.INT64));
        assertEquals("003c", scalar(1, DataType.FLOAT16));
        assertEquals("803f", scalar(1, DataType.BFLOAT16));
        // Two values, each halfway between two bfloat16 values, are rounded to the neighbor with an even last bit: the
        // first value down, the second value up.
        assertEquals("803f", scalar(Float.intBitsToFloat(0x3f808000), DataType.BFLOAT16));
        assertEquals("823f", scalar(Float.intBitsToFloat(0x3f818000), DataType.BFLOAT16));
        assertEquals("ff7f", scalar(Double.NaN, DataType.BFLOAT16));
        // The value lies slightly above the middle between two binary16 values. Rounding to binary32 first would lose
        // the difference. Rounding to binary16 would then return the lower value, which is even.
        assertEquals("013c", scalar(1 + 0x1p-11 + 0x1p-40, DataType.FLOAT16));
        assertEquals("007c", scalar(1e6, DataType.FLOAT16));
        assertEquals("38", scalar(1, DataType.FLOAT8_E4M3));
        assertEquals("c4", scalar(-3, DataType.FLOAT8_E4M3));
        assertEquals("38", scalar(1.0625, DataType.FLOAT8_E4M3)); // halfway: rounds to the value with an even last bit
        assertEquals("3a", scalar(1.1875, DataType.FLOAT8_E4M3));
        assertEquals("01", scalar(0x1p-9, DataType.FLOAT8_E4M3));
        assertEquals("7e", scalar(1e9, DataType.FLOAT8_E4M3));
        assertEquals("7f", scalar(Double.NaN, DataType.FLOAT8_E4M3));
        assertEquals("42", scalar(3, DataType.FLOAT8_E5M2));
        assertEquals("3c", scalar(1.125, DataType.FLOAT8_E5M2));
        assertEquals("fb", scalar(-1e9, DataType.FLOAT8_E5M2));
    }

    @Test
    void uniqueIds() {
        UniqueId id = NcclArgumentsTest.id(0xf0);
        assertEquals(id, UniqueId.of(id.toBytes()));
        assertEquals(id, UniqueId.ofHex(id.toHex()));
        assertEquals(id.hashCode(), UniqueId.ofHex(id.toHex()).hashCode());
        byte[] other = id.toBytes();
        other[127]++;
        assertTrue(!id.equals(UniqueId.of(other)) && !Arrays.equals(other, id.toBytes()));
        assertThrows(IllegalArgumentException.class, () -> UniqueId.of(new byte[127]));
        assertThrows(IllegalArgumentException.class, () -> UniqueId.ofHex("00"));
        assertThrows(IllegalArgumentException.class, () -> UniqueId.ofHex("zz".repeat(128)));
        assertTrue(!id.toString().contains(id.toHex().substring(0, 16)), "an id is a secret and must not reach a log");
    }

    private static String scalar(double value, DataType type) {
        try (Arena arena = Arena.ofConfined()) {
            return HexFormat.of()
                    .formatHex(NcclReduction.scalar(value, type, arena)
                            .asSlice(0, type.bytes())
                            .toArray(ValueLayout.JAVA_BYTE));
        }
    }
}
