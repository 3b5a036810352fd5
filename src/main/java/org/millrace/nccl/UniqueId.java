package org.millrace.nccl;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.SegmentAllocator;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.HexFormat;
import org.millrace.ffi.nccl.ncclUniqueId;

/**
 * What one rank draws and all ranks of a communicator must be given: 128 bytes that hold an address and a secret. Treat
 * them as a password.
 */
public final class UniqueId {

    /** How long it is. */
    public static final int BYTES = (int) ncclUniqueId.layout().byteSize();

    private final byte[] bytes;

    private UniqueId(byte[] bytes) {
        this.bytes = bytes;
    }

    /**
     * {@return an id that another rank sent}
     *
     * @throws IllegalArgumentException if there are more or fewer
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

    /** Only as much as tells two ids apart: a process that has all of it can join. */
    @Override
    public String toString() {
        return "NCCL unique id " + Integer.toHexString(hashCode());
    }
}
