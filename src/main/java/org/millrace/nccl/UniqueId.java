package org.millrace.nccl;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.HexFormat;
import org.millrace.ffi.nccl.ncclUniqueId;

/**
 * An id that one rank creates and that all ranks of a communicator need. It consists of 128 bytes with an address and a
 * secret. It must be protected like a password, because any process with the id can join.
 */
public final class UniqueId {

    /** Length of an id in bytes. */
    public static final int BYTES = (int) ncclUniqueId.layout().byteSize();

    private final byte[] bytes;

    private UniqueId(byte[] bytes) {
        this.bytes = bytes;
    }

    /**
     * {@return the id with the bytes that another rank sent}
     *
     * @throws IllegalArgumentException if the number of bytes is not {@link #BYTES}
     */
    public static UniqueId of(byte[] bytes) {
        if (bytes.length != BYTES) {
            throw new IllegalArgumentException("an NCCL unique id has " + BYTES + " bytes, not " + bytes.length);
        }
        return new UniqueId(bytes.clone());
    }

    /**
     * {@return the id with the text that another rank sent}
     *
     * @param hex 256 hexadecimal digits
     * @throws IllegalArgumentException if the text is not 256 hexadecimal digits
     */
    public static UniqueId ofHex(String hex) {
        if (hex.length() != 2 * BYTES) {
            throw new IllegalArgumentException(
                    "an NCCL unique id has " + 2 * BYTES + " hexadecimal digits, not " + hex.length());
        }
        return new UniqueId(HexFormat.of().parseHex(hex));
    }

    static UniqueId read(MemorySegment struct) {
        return new UniqueId(struct.toArray(ValueLayout.JAVA_BYTE));
    }

    /** {@return a copy of the id's 128 bytes} */
    public byte[] toBytes() {
        return bytes.clone();
    }

    /** {@return the id's bytes as 256 hexadecimal digits} */
    public String toHex() {
        return HexFormat.of().formatHex(bytes);
    }

    MemorySegment write(SegmentAllocator allocator) {
        return ncclUniqueId.allocate(allocator).copyFrom(MemorySegment.ofArray(bytes));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof UniqueId id && Arrays.equals(bytes, id.bytes);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(bytes);
    }

    /**
     * Returns only a part of the id, which is enough to distinguish two ids. A process with the whole id could join the
     * communicator.
     */
    @Override
    public String toString() {
        return "NCCL unique id " + Integer.toHexString(hashCode());
    }
}
