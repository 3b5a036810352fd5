package org.millrace;

import java.lang.foreign.MemorySegment;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.Objects;

/**
 * Elements that an operation sends or receives: memory, what its elements are, and so how many there are.
 *
 * <p>
 * Memory of a device is used where it lies: {@link #of(MemorySegment, DataType)}. Memory of the host is copied to the
 * device and back, in the order of the stream, as part of the operation: arrays, {@link #ofHost}, and buffers. The
 * emulated device uses host memory outside of the Java heap where it lies.
 *
 * <p>
 * An operand is a view, and immutable: what it shows must neither change nor be looked at from the call of an operation
 * until that is complete.
 */
public final class Operand {

    private final MemorySegment memory;
    private final DataType type;
    private final boolean ofHost;

    private Operand(MemorySegment memory, DataType type, boolean ofHost) {
        Objects.requireNonNull(type, "the type of an operand is null");
        if (memory.byteSize() % type.bytes() != 0) {
            throw new IllegalArgumentException(memory.byteSize() + " bytes are not a whole number of " + type.label()
                    + " elements of " + type.bytes() + " bytes");
        }
        this.memory = memory;
        this.type = type;
        this.ofHost = ofHost;
    }

    /** {@return all elements of an array, as {@link DataType#FLOAT32}} */
    public static Operand of(float[] array) {
        return new Operand(MemorySegment.ofArray(array), DataType.FLOAT32, true);
    }

    /** {@return all elements of an array, as {@link DataType#FLOAT64}} */
    public static Operand of(double[] array) {
        return new Operand(MemorySegment.ofArray(array), DataType.FLOAT64, true);
    }

    /** {@return all elements of an array, as {@link DataType#INT32}} */
    public static Operand of(int[] array) {
        return new Operand(MemorySegment.ofArray(array), DataType.INT32, true);
    }

    /** {@return all elements of an array, as {@link DataType#INT64}} */
    public static Operand of(long[] array) {
        return new Operand(MemorySegment.ofArray(array), DataType.INT64, true);
    }

    /** {@return all elements of an array, as {@link DataType#INT8}} */
    public static Operand of(byte[] array) {
        return new Operand(MemorySegment.ofArray(array), DataType.INT8, true);
    }

    /**
     * {@return the bytes from a buffer's position to its limit, neither of which is moved}
     *
     * @param buffer on the heap or direct; its order is that of this machine, {@link ByteOrder#nativeOrder()}, unless
     *               elements are single bytes
     * @param type   what the elements are
     * @throws IllegalArgumentException if the buffer has another order, or does not end with an element
     */
    public static Operand of(ByteBuffer buffer, DataType type) {
        return of(buffer, buffer.order(), type);
    }

    /** {@return a buffer's elements from position to limit, neither of which is moved; of this machine's order} */
    public static Operand of(FloatBuffer buffer) {
        return of(buffer, buffer.order(), DataType.FLOAT32);
    }

    /** {@return a buffer's elements from position to limit, neither of which is moved; of this machine's order} */
    public static Operand of(DoubleBuffer buffer) {
        return of(buffer, buffer.order(), DataType.FLOAT64);
    }

    /** {@return a buffer's elements from position to limit, neither of which is moved; of this machine's order} */
    public static Operand of(IntBuffer buffer) {
        return of(buffer, buffer.order(), DataType.INT32);
    }

    /** {@return a buffer's elements from position to limit, neither of which is moved; of this machine's order} */
    public static Operand of(LongBuffer buffer) {
        return of(buffer, buffer.order(), DataType.INT64);
    }

    /** A buffer's elements from position to limit, which are of the type, and in that order. */
    private static Operand of(Buffer buffer, ByteOrder order, DataType type) {
        if (type.bytes() > 1 && order != ByteOrder.nativeOrder()) {
            throw new IllegalArgumentException("the buffer's elements of " + type.bytes() + " bytes are " + order
                    + ", and devices compute with " + ByteOrder.nativeOrder()
                    + ": call order(ByteOrder.nativeOrder()) of its ByteBuffer before it is filled");
        }
        return ofHost(MemorySegment.ofBuffer(buffer), type);
    }

    /**
     * {@return elements in memory that the device uses where it lies}
     *
     * @param memory from {@link Device#allocate} or {@link Device#view}; a segment of the Java heap is copied, as an
     *               array is
     * @param type   what the elements are
     * @throws IllegalArgumentException if it does not end with an element
     */
    public static Operand of(MemorySegment memory, DataType type) {
        return new Operand(memory, type, !memory.isNative());
    }

    /**
     * {@return elements in memory of the host, on the heap or not}
     *
     * @param memory from an arena, a file that is mapped, or a heap segment; every thread may use it
     * @param type   what the elements are
     * @throws IllegalArgumentException if it does not end with an element
     */
    public static Operand ofHost(MemorySegment memory, DataType type) {
        return new Operand(memory, type, true);
    }

    /**
     * {@return some of these elements}
     *
     * @param first how many of them come before, 0 or more
     * @param count how many there are
     * @throws IndexOutOfBoundsException if these are not that many
     */
    public Operand slice(long first, long count) {
        Objects.checkFromIndexSize(first, count, count());
        return new Operand(memory.asSlice(first * type.bytes(), count * type.bytes()), type, ofHost);
    }

    /** {@return how many elements there are, 0 or more} */
    public long count() {
        return memory.byteSize() / type.bytes();
    }

    /** {@return what the elements are} */
    public DataType type() {
        return type;
    }

    /** {@return where they lie} */
    public MemorySegment memory() {
        return memory;
    }

    /** Whether the memory is the host's: a device may have to copy it. */
    boolean isOfHost() {
        return ofHost;
    }

    @Override
    public String toString() {
        return count() + " " + type.label() + (ofHost ? " of the host" : "");
    }
}
