package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.GroupLayout;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.device.ncclConnFifo;
import org.millrace.ffi.device.ncclConnFifo_v28;
import org.millrace.ffi.device.ncclRecvMem;
import org.millrace.ffi.device.ncclRecvMem_v28;

/**
 * The layout of the memory that kernels share with a proxy. The layout depends on the calling library and on the
 * library's release. It defines the entries of {@code connFifo} in {@link RecvMem}, and the lines of protocol LL128.
 *
 * <pre>
 *    V28      0           4           8                       16                      24
 *    RCCL     +-----------+-----------+-----------------------+-----------------------+
 *             | mode      | offset    | size                  | ptr                   |
 *             +-----------+-----------+-----------------------+-----------------------+
 *               i32         i32         i64                     pointer
 *
 *    V31      0           4           8                       16                      24                      32
 *             +-----------+-----------+-----------------------+-----------------------+-----------------------+
 *             | mode      |           | offset                | size                  | ptr                   |
 *             +-----------+-----------+-----------------------+-----------------------+-----------------------+
 *               i32                     i64                     i64                     pointer
 * </pre>
 *
 * <p>
 * The first entry is at offset 128 of {@code ncclRecvMem} in NCCL, and at offset 64 in RCCL. The offset is the size of
 * the cache line that the library assumes ({@code CACHE_LINE_SIZE} in {@code comm.h}).
 */
public enum KernelLayout {
    /** NCCL 2.28 to 2.30, and alpha releases of 2.31. */
    V28(ncclRecvMem_v28.connFifo$offset(), ncclConnFifo_v28.layout(), LL128Line.NCCL),
    /** NCCL 2.31 and later, and Millrace's own memory. */
    V31(ncclRecvMem.connFifo$offset(), ncclConnFifo.layout(), LL128Line.NCCL),
    /** RCCL 2.27.7 to 2.30. */
    RCCL(64, ncclConnFifo_v28.layout(), LL128Line.RCCL);

    /** Layout of the memory that Millrace allocates itself. */
    public static final KernelLayout NEWEST = V31;
    /** Newest release with a known layout, at any patch level. */
    public static final String NEWEST_KNOWN = "2.32";
    private static final int NEWEST_RELEASE = 232;
    /** Last version of NCCL with {@code connFifo} entries of 24 bytes: an alpha release of 2.31. */
    private static final int LAST_OF_V28 = 23100;
    private static final int FIRST_OF_RCCL = 22707;
    private static final int NEWEST_OF_RCCL = 230;

    /** Offset of the first entry in {@link RecvMem}, in bytes. */
    private final long fifoOffset;
    final long entryBytes;
    /** Offsets of the first entry's fields in {@link RecvMem}, in bytes. */
    final long mode;
    final long offset;
    final long size;
    final long ptr;
    /** Whether the field {@code offset} has 64 bits. */
    final boolean isOffsetLong;
    private final LL128Line ll128Line;

    KernelLayout(long fifoOffset, GroupLayout entry, LL128Line ll128Line) {
        this.fifoOffset = fifoOffset;
        this.ll128Line = ll128Line;
        entryBytes = entry.byteSize();
        mode = fifoOffset + entry.byteOffset(groupElement("mode"));
        offset = fifoOffset + entry.byteOffset(groupElement("offset"));
        size = fifoOffset + entry.byteOffset(groupElement("size"));
        ptr = fifoOffset + entry.byteOffset(groupElement("ptr"));
        isOffsetLong = entry.select(groupElement("offset")).byteSize() == Long.BYTES;
    }

    /**
     * {@return the layout in a release of NCCL; null if it is unknown because the release is newer than
     * {@link #NEWEST_KNOWN}}
     *
     * @param version number that {@code ncclGetVersion} returns, for example 23102 for 2.31.2
     */
    public static @Nullable KernelLayout ofRelease(int version) {
        return version <= LAST_OF_V28 ? V28 : version / 100 <= NEWEST_RELEASE ? V31 : null;
    }

    /**
     * {@return the layout in a release of RCCL; null if it is unknown} RCCL 2.31 introduces entries of 32 bytes, and
     * other LL128 lines for each GPU.
     *
     * @param version number that {@code ncclGetVersion} returns; 0 if it is unknown
     */
    public static @Nullable KernelLayout ofRccl(int version) {
        return version >= FIRST_OF_RCCL && version / 100 <= NEWEST_OF_RCCL ? RCCL : null;
    }

    /** {@return the line of protocol LL128} */
    public LL128Line ll128Line() {
        return ll128Line;
    }

    @Override
    public String toString() {
        return "connFifo entries of " + entryBytes + " bytes" + (this == RCCL ? " at offset " + fifoOffset : "");
    }
}
