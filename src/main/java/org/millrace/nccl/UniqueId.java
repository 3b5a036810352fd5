package org.millrace.nccl;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.HexFormat;
import org.millrace.ffi.nccl.ncclUniqueId;

/**
 * An id that one rank creates and that all ranks of a communicator need: 128 bytes with an address and a secret. Treat
 * it as a password.
 */
public final class UniqueId {

    /** Length of an id in bytes. */
    public static final int BYTES = (int) ncclUniqueId.layout().byteSize();

    private final byte[] bytes;

    private UniqueId(byte[] bytes) {
        this.bytes = bytes;
    }

    /**
     * {@return an id that another rank sent}
     *
     * @throws IllegalArgumentException if the number of bytes differs
     */
    public static UniqueId of(byte[] bytes) {
        if (bytes.length != BYTES) {
            throw new IllegalArgumentException("an NCCL unique id has " + BYTES + " bytes, not " + bytes.length);
        }
        return new UniqueId(bytes.clone());
    }

    /**
     * {@return an id that another rank sent as text}
     *
     * @param hex 256 hexadecimal digits
     * @throws IllegalArgumentException if it is anything else
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

    /** {@return a copy of its 128 bytes} */
    public byte[] toBytes() {
        return bytes.clone();
    }

    /** {@return its bytes as 256 hexadecimal digits} */
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

    /** Returns only enough to distinguish two ids, because a process with the whole id can join. */
    @Override
    public String toString() {
        return "NCCL unique id " + Integer.toHexString(hashCode());
    }
}
