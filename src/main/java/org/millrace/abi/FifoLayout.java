package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.MemoryLayout.PathElement.sequenceElement;

import java.lang.foreign.MemoryLayout;
import org.jspecify.annotations.Nullable;
import org.millrace.ffi.device.ncclConnFifo;
import org.millrace.ffi.device.ncclConnFifo_v28;
import org.millrace.ffi.device.ncclRecvMem;
import org.millrace.ffi.device.ncclRecvMem_v28;

/**
 * The layout of the entries of {@code connFifo} in {@link RecvMem}, which depends on NCCL's release.
 *
 * <pre>
 *    V28      0           4           8                       16                      24
 *             +-----------+-----------+-----------------------+-----------------------+
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
 */
public enum FifoLayout {
    /** NCCL 2.28 to 2.30, and alpha releases of 2.31. */
    V28(ncclRecvMem_v28.layout(), ncclConnFifo_v28.sizeof(), ncclConnFifo_v28.offset$layout().byteSize()),
    /** NCCL 2.31 and later, and Millrace's own memory. */
    V31(ncclRecvMem.layout(), ncclConnFifo.sizeof(), ncclConnFifo.offset$layout().byteSize());

    /** Layout of the memory that Millrace allocates itself. */
    public static final FifoLayout NEWEST = V31;
    /** Newest release with a known layout, at any patch level. */
    public static final String NEWEST_KNOWN = "2.32";
    private static final int NEWEST_RELEASE = 232;
    /** Last version with entries of 24 bytes, an alpha release of 2.31. */
    private static final int LAST_OF_V28 = 23100;

    /** Size of an entry in bytes. */
    final long entryBytes;
    /** Offsets of the first entry's fields in {@link RecvMem}, in bytes. */
    final long mode;
    final long offset;
    final long size;
    final long ptr;
    /** Whether the field {@code offset} has 64 bits. */
    final boolean isOffsetLong;

    FifoLayout(MemoryLayout recvMem, long entryBytes, long offsetBytes) {
        this.entryBytes = entryBytes;
        mode = field(recvMem, "mode");
        offset = field(recvMem, "offset");
        size = field(recvMem, "size");
        ptr = field(recvMem, "ptr");
        isOffsetLong = offsetBytes == Long.BYTES;
    }

    /**
     * {@return the layout of {@code connFifo} in a release; null if it is unknown because the release is newer than
     * {@link #NEWEST_KNOWN}}
     *
     * @param version number that {@code ncclGetVersion} returns, for example 23102 for 2.31.2
     */
    public static @Nullable FifoLayout ofRelease(int version) {
        return version <= LAST_OF_V28 ? V28 : version / 100 <= NEWEST_RELEASE ? V31 : null;
    }

    private static long field(MemoryLayout recvMem, String name) {
        return recvMem.byteOffset(groupElement("connFifo"), sequenceElement(0), groupElement(name));
    }

    @Override
    public String toString() {
        return "connFifo entries of " + entryBytes + " bytes";
    }
}
