package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.BitSet;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.connection.OpenResources;

/** Views of more memory than a buffer can have. The tests read no byte of it. */
class SocketRegionTest {

    private static final long GIB = 1L << 30;
    @SuppressWarnings("restricted") // no byte of it is accessed
    private static final MemorySegment MEMORY = MemorySegment.ofAddress(0).reinterpret(5 * GIB);

    @ParameterizedTest
    @ValueSource(longs = {0, GIB / 2 - 1, GIB / 2, GIB - 8, GIB - 1, GIB, 2 * GIB - 1, 4 * GIB})
    void aViewHasRoomForTheLongestPayloadAtEachOffset(long offset) {
        OpenResources open = new OpenResources("test");
        try (SocketRegion region = SocketRegion.register(open, MEMORY, new BitSet())) {
            ByteBuffer view = new SocketRegion.Views().view(region, offset);
            int begin = SocketRegion.viewOffset(offset);
            assertTrue(view.capacity() - begin >= HeaderFormat.MAX_PAYLOAD_BYTES, view + " from " + begin);
            assertEquals(offset, MemorySegment.ofBuffer(view.position(begin)).address());
        }
    }
}
