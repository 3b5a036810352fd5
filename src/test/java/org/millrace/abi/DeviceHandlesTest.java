package org.millrace.abi;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.millrace.ffi.device.loadMeta;
import org.millrace.ffi.device.loadMetaPiece;
import org.millrace.ffi.device.ncclNetDeviceHandle_t;
import org.millrace.ffi.device.netUnpackMeta;
import org.millrace.ffi.device.unpackNetDeviceHandle;

/** The generated accessors read the structs that Millrace's descriptors write. */
class DeviceHandlesTest {
    private final Arena arena = Arena.ofAuto();

    @Test
    void aNetDeviceHandlesFieldsAreNccls() {
        MemorySegment bytes = arena.allocate(NetDeviceHandle.BYTES, NetDeviceHandle.ALIGNMENT);
        NetDeviceHandle handle = NetDeviceHandle.of(bytes);
        handle.set(NetDeviceHandle.UNPACK, 7, Long.MIN_VALUE + 1, 1L << 32, true);
        assertEquals(1, ncclNetDeviceHandle_t.netDeviceType(bytes));
        assertEquals(7, ncclNetDeviceHandle_t.netDeviceVersion(bytes));
        assertEquals(Long.MIN_VALUE + 1, ncclNetDeviceHandle_t.handle(bytes).address());
        assertEquals(1L << 32, ncclNetDeviceHandle_t.size(bytes));
        assertEquals(1, ncclNetDeviceHandle_t.needsProxyProgress(bytes));
        assertEquals(Long.MIN_VALUE + 1, handle.handle());
        assertEquals(1L << 32, handle.size());
        handle.set(NetDeviceHandle.HOST, 0, 0, 0, false);
        assertEquals(0, ncclNetDeviceHandle_t.needsProxyProgress(bytes));
        assertEquals(32, NetDeviceHandle.BYTES);
    }

    @Test
    void piecesAndCountsLieWhereTheKernelLooks() {
        MemorySegment bytes = arena.allocate(UnpackMeta.BYTES, UnpackMeta.ALIGNMENT);
        UnpackMeta meta = UnpackMeta.of(bytes);
        assertEquals(524416, UnpackMeta.BYTES);
        int[] slices = {0, 1, 15};
        int[] pieces = {0, 1, 2047};
        for (int slice : slices) {
            for (int piece : pieces) {
                meta.piece(slice, piece, 0x8000_0000 + piece, 4096 - slice, (1L << 32) + slice);
            }
            meta.countRelease(slice, 2048 - slice);
        }
        for (int slice : slices) {
            for (int piece : pieces) {
                MemorySegment raw = loadMeta.piece(netUnpackMeta.mem(bytes, slice, piece));
                assertEquals(0x8000_0000 + piece, loadMetaPiece.src_off(raw));
                assertEquals(4096 - slice, loadMetaPiece.len(raw));
                assertEquals((1L << 32) + slice, loadMetaPiece.dst_off(raw));
                assertEquals(0x8000_0000 + piece, meta.sourceOffset(slice, piece));
                assertEquals(4096 - slice, meta.length(slice, piece));
                assertEquals((1L << 32) + slice, meta.targetOffset(slice, piece));
            }
            assertEquals(2048 - slice, netUnpackMeta.cnt(bytes, slice));
            assertEquals(2048 - slice, meta.countAcquire(slice));
        }
    }

    @Test
    void piecesOutsideTheListsAreRefused() {
        UnpackMeta meta = UnpackMeta.of(arena.allocate(UnpackMeta.BYTES, UnpackMeta.ALIGNMENT));
        assertThrows(IndexOutOfBoundsException.class, () -> meta.piece(0, 2048, 0, 0, 0));
        assertThrows(IndexOutOfBoundsException.class, () -> meta.piece(16, 0, 0, 0, 0));
        assertThrows(IndexOutOfBoundsException.class, () -> meta.countAcquire(-1));
    }

    @Test
    void anUnpackHandlesFieldsAreNccls() {
        MemorySegment bytes = arena.allocate(UnpackHandle.BYTES, UnpackHandle.ALIGNMENT);
        UnpackHandle handle = UnpackHandle.of(bytes);
        handle.set(0x1000, Long.MAX_VALUE, UnpackHandle.BEFORE_FIRST);
        assertEquals(0x1000, unpackNetDeviceHandle.meta(bytes).address());
        assertEquals(Long.MAX_VALUE, unpackNetDeviceHandle.bounce_buf(bytes).address());
        assertEquals(-1, unpackNetDeviceHandle.head(bytes));
        assertEquals(UnpackHandle.BEFORE_FIRST, handle.headAcquire());
        assertEquals(24, UnpackHandle.BYTES);
    }
}
