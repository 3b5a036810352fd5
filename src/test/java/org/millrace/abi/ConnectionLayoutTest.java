package org.millrace.abi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.foreign.CFunction;

class ConnectionLayoutTest {
    private static final ConnectionLayout DEFAULT = ConnectionLayout.DEFAULT;

    @Test
    void defaultsAreThoseMeasuredOnHardware() {
        assertEquals(524288, DEFAULT.llBytes());
        assertEquals(4915200, DEFAULT.ll128Bytes());
        assertEquals(4194304, DEFAULT.simpleBytes());
        assertEquals(524288 + 4915200 + 4194304, DEFAULT.sendMemOffset());
        assertEquals(DEFAULT.sendMemOffset() + 4096, DEFAULT.recvMemOffset());
        assertEquals(DEFAULT.sendMemOffset() + 8192, DEFAULT.totalBytes());
    }

    /**
     * The layout of a connection covers ten megabytes of memory. Most programs use only a small part of this memory.
     */
    @Test
    void aConnectionTakesNoMemoryBeforeItIsUsed() {
        try (Arena arena = Arena.ofConfined()) {
            ConnectionInfo info = ConnectionInfo.allocate(arena, DEFAULT, 0);
            MemorySegment pages = arena.allocate(DEFAULT.totalBytes() / 4096);
            assertEquals(0L,
                    CFunction.named("mincore").call(info.buffers().address(), DEFAULT.totalBytes(), pages.address()));
            assertEquals(2,
                    pages.elements(ValueLayout.JAVA_BYTE)
                            .filter(page -> (page.get(ValueLayout.JAVA_BYTE, 0) & 1) != 0)
                            .count(),
                    "pages: that of the sender's counters, and the receiver's");
        }
    }

    @ParameterizedTest
    @CsvSource({"LL, 0, 65536", "LL128, 524288, 614400", "SIMPLE, 5439488, 524288"})
    void slotsFollowEachOther(Protocol protocol, long bufferOffset, long slotBytes) {
        assertEquals(bufferOffset, DEFAULT.bufferOffset(protocol));
        assertEquals(slotBytes, DEFAULT.slotBytes(protocol));
        for (int step = 0; step < 24; step++) {
            assertEquals(bufferOffset + step % 8 * slotBytes, DEFAULT.slotOffset(protocol, step));
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {(1L << 31) - 1, (1L << 32) - 1, Long.MAX_VALUE, -1})
    void theStepAfterTheLastSlotIsInTheFirst(long step) {
        assertEquals(7, ConnectionLayout.slot(step));
        assertEquals(0, ConnectionLayout.slot(step + 1));
        assertEquals(DEFAULT.bufferOffset(Protocol.SIMPLE), DEFAULT.slotOffset(Protocol.SIMPLE, step + 1));
    }

    @Test
    void controlMemoryLiesBehindTheBuffers() {
        ConnectionLayout small = new ConnectionLayout(128, 1024, 8);
        MemorySegment connection = Arena.ofAuto().allocate(small.totalBytes(), 4096);
        small.sendMem(connection).headRelease(5);
        small.recvMem(connection).tailRelease(6);
        assertEquals(5, connection.get(ValueLayout.JAVA_LONG, 128 + 1024 + 8));
        assertEquals(6, connection.get(ValueLayout.JAVA_LONG, 128 + 1024 + 8 + 4096));
        MemorySegment shorter = connection.asSlice(0, connection.byteSize() - 1);
        assertThrows(IndexOutOfBoundsException.class, () -> small.recvMem(shorter));
    }

    @ParameterizedTest
    @CsvSource({"0, 1024, 8", "-128, 1024, 8", "192, 1024, 8", "128, 1536, 8", "128, 1024, 12",
            "128, 1024, 2147483648"})
    void slotsThatCutLinesAreRefused(long ll, long ll128, long simple) {
        Exception refused = assertThrows(IllegalArgumentException.class, () -> new ConnectionLayout(ll, ll128, simple));
        assertTrue(refused.getMessage().contains("choose a multiple of"), refused.getMessage());
    }

    /** Default sizes of RCCL. */
    @Test
    void shorterLinesMaySplitSlotsMoreFinely() {
        assertEquals(57344, new ConnectionLayout(262144, 458752, 4194304, LL128Line.RCCL).slotBytes(Protocol.LL128));
        assertEquals(64, new ConnectionLayout(128, 512, 8, LL128Line.RCCL).slotBytes(Protocol.LL128));
        assertThrows(IllegalArgumentException.class, () -> new ConnectionLayout(128, 512, 8));
    }

    @ParameterizedTest
    @EnumSource(Protocol.class)
    void protocolsHaveNcclsIds(Protocol protocol) {
        assertEquals(protocol.ordinal(), protocol.id());
        assertEquals(protocol, Protocol.of(protocol.id()));
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 3})
    void otherIdsAreNoProtocols(int id) {
        assertThrows(IllegalArgumentException.class, () -> Protocol.of(id));
    }
}
