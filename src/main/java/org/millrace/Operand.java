package org.millrace;

import java.lang.foreign.MemorySegment;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.operation.Required;

/**
 * Elements that an operation sends or receives: memory with an element type and a count.
 *
 * <p>
 * Device memory is used in place: {@link #of(MemorySegment, DataType)}. Host memory is copied to the device and back,
 * as part of the operation and in the order of its stream. Arrays, buffers and the memory of {@link #ofHost} are copied
 * in this way. The emulated device uses host memory outside the Java heap in place.
 *
 * <p>
 * An operand is an immutable view of the memory. From the call of an operation until its completion, the program must
 * not change or read the elements.
 */
public final class Operand {

    private final List<MemorySegment> memories;
    private final DataType type;
    private final boolean ofHost;
    /**
     * Size of an element in bytes. If NCCL has no type of this size, the size is a multiple of the size of
     * {@link #type}. An operation then moves an element as several elements of {@link #type}.
     */
    private final int width;
    /**
     * The program's booleans. {@link #memories} has a copy of the booleans, because Java has no memory segment of
     * booleans. Null for other element types.
     */
    private final @Nullable Booleans booleans;

    private record Booleans(boolean[] array, int from, byte[] copy) {

        void load() {
            for (int i = 0; i < copy.length; i++) {
                copy[i] = (byte) (array[from + i] ? 1 : 0);
            }
        }

        void store() {
            for (int i = 0; i < copy.length; i++) {
                array[from + i] = copy[i] != 0;
            }
        }
    }

    private Operand(MemorySegment memory, DataType type, boolean ofHost) {
        this(List.of(present("memory", memory)), present("type", type), ofHost, type.bytes(), null);
    }

    private Operand(List<MemorySegment> memories, DataType type, boolean ofHost, int width,
            @Nullable Booleans booleans) {
        for (MemorySegment memory : memories) {
            if (memory.byteSize() % width != 0) {
                throw new IllegalArgumentException(memory.byteSize() + " bytes are not a whole number of "
                        + type.label() + " elements of " + width + " bytes");
            }
        }
        this.memories = memories;
        this.type = type;
        this.ofHost = ofHost;
        this.width = width;
        this.booleans = booleans;
    }

    private static <T> T present(String name, T value) {
        return Required.argument("Operand", name, value);
    }

    /** {@return all elements of an array, as {@link DataType#FLOAT32}} */
    public static Operand of(float[] array) {
        return new Operand(MemorySegment.ofArray(present("array", array)), DataType.FLOAT32, true);
    }

    /**
     * {@return some elements of an array, from an index (inclusive) to an index (exclusive), as
     * {@link DataType#FLOAT32}}
     */
    public static Operand of(float[] array, int from, int to) {
        return of(array).range(from, to);
    }

    /** {@return all elements of an array, as {@link DataType#FLOAT64}} */
    public static Operand of(double[] array) {
        return new Operand(MemorySegment.ofArray(present("array", array)), DataType.FLOAT64, true);
    }

    /**
     * {@return some elements of an array, from an index (inclusive) to an index (exclusive), as
     * {@link DataType#FLOAT64}}
     */
    public static Operand of(double[] array, int from, int to) {
        return of(array).range(from, to);
    }

    /** {@return all elements of an array, as {@link DataType#INT32}} */
    public static Operand of(int[] array) {
        return new Operand(MemorySegment.ofArray(present("array", array)), DataType.INT32, true);
    }

    /**
     * {@return some elements of an array, from an index (inclusive) to an index (exclusive), as {@link DataType#INT32}}
     */
    public static Operand of(int[] array, int from, int to) {
        return of(array).range(from, to);
    }

    /** {@return all elements of an array, as {@link DataType#INT64}} */
    public static Operand of(long[] array) {
        return new Operand(MemorySegment.ofArray(present("array", array)), DataType.INT64, true);
    }

    /**
     * {@return some elements of an array, from an index (inclusive) to an index (exclusive), as {@link DataType#INT64}}
     */
    public static Operand of(long[] array, int from, int to) {
        return of(array).range(from, to);
    }

    /** {@return all elements of an array, as {@link DataType#INT8}} */
    public static Operand of(byte[] array) {
        return new Operand(MemorySegment.ofArray(present("array", array)), DataType.INT8, true);
    }

    /**
     * {@return some elements of an array, from an index (inclusive) to an index (exclusive), as {@link DataType#INT8}}
     */
    public static Operand of(byte[] array, int from, int to) {
        return of(array).range(from, to);
    }

    /**
     * {@return all elements of an array} The elements can be moved but not reduced, because NCCL has no 16-bit integer
     * type.
     */
    public static Operand of(short[] array) {
        return new Operand(List.of(MemorySegment.ofArray(present("array", array))), DataType.INT8, true, Short.BYTES,
                null);
    }

    /**
     * {@return some elements of an array, from an index (inclusive) to an index (exclusive)} The elements can be moved
     * but not reduced, because NCCL has no 16-bit integer type.
     */
    public static Operand of(short[] array, int from, int to) {
        return of(array).range(from, to);
    }

    /**
     * {@return all elements of an array} The elements can be moved but not reduced, because NCCL has no 16-bit integer
     * type.
     */
    public static Operand of(char[] array) {
        return new Operand(List.of(MemorySegment.ofArray(present("array", array))), DataType.UINT8, true,
                Character.BYTES, null);
    }

    /**
     * {@return some elements of an array, from an index (inclusive) to an index (exclusive)} The elements can be moved
     * but not reduced, because NCCL has no 16-bit integer type.
     */
    public static Operand of(char[] array, int from, int to) {
        return of(array).range(from, to);
    }

    /**
     * {@return all elements of an array, as {@link DataType#UINT8}} {@link ReduceOp#MIN} is then a logical AND, and
     * {@link ReduceOp#MAX} is a logical OR.
     */
    public static Operand of(boolean[] array) {
        return of(array, 0, present("array", array).length);
    }

    /**
     * {@return some elements of an array, from an index (inclusive) to an index (exclusive), as {@link DataType#UINT8}}
     * Reductions have the same meaning as for {@link #of(boolean[])}.
     */
    public static Operand of(boolean[] array, int from, int to) {
        byte[] copy = new byte[to - Objects.checkFromToIndex(from, to, present("array", array).length)];
        return new Operand(List.of(MemorySegment.ofArray(copy)), DataType.UINT8, true, 1,
                new Booleans(array, from, copy));
    }

    /**
     * {@return an operand that consists of several operands, for instance a bucket of a model's gradients} One
     * operation then moves the elements of all these operands.
     *
     * @param parts operands of one type, in host memory; no booleans
     * @throws IllegalArgumentException if the array is empty, or an operand has another type, is not in host memory, or
     *                                  consists of booleans
     */
    public static Operand bucket(Operand... parts) {
        if (present("array of parts", parts).length == 0) {
            throw new IllegalArgumentException("a bucket without operands: pass one operand or more");
        }
        List<MemorySegment> all = new ArrayList<>();
        for (Operand part : parts) {
            if (present("part", part).type != parts[0].type || part.width != parts[0].width || !part.ofHost
                    || part.booleans != null) {
                throw new IllegalArgumentException("a bucket of " + parts[0] + " and " + part
                        + ": its parts are of one type, in memory of the host, and no booleans");
            }
            all.addAll(part.memories);
        }
        return new Operand(List.copyOf(all), parts[0].type, true, parts[0].width, null);
    }

    /**
     * {@return the bytes from a buffer's position to its limit} Position and limit stay unchanged.
     *
     * @param buffer buffer on the heap or direct. Its byte order must be native ({@link ByteOrder#nativeOrder()}),
     *               unless elements are single bytes
     * @param type   element type
     * @throws IllegalArgumentException if the buffer has another order, or its size is not a multiple of the element
     *                                  size
     */
    public static Operand of(ByteBuffer buffer, DataType type) {
        return of(buffer, present("buffer", buffer).order(), type);
    }

    /**
     * {@return a buffer's elements from position to limit} Position and limit stay unchanged. The byte order must be
     * native.
     */
    public static Operand of(FloatBuffer buffer) {
        return of(buffer, present("buffer", buffer).order(), DataType.FLOAT32);
    }

    /**
     * {@return a buffer's elements from position to limit} Position and limit stay unchanged. The byte order must be
     * native.
     */
    public static Operand of(DoubleBuffer buffer) {
        return of(buffer, present("buffer", buffer).order(), DataType.FLOAT64);
    }

    /**
     * {@return a buffer's elements from position to limit} Position and limit stay unchanged. The byte order must be
     * native.
     */
    public static Operand of(IntBuffer buffer) {
        return of(buffer, present("buffer", buffer).order(), DataType.INT32);
    }

    /**
     * {@return a buffer's elements from position to limit} Position and limit stay unchanged. The byte order must be
     * native.
     */
    public static Operand of(LongBuffer buffer) {
        return of(buffer, present("buffer", buffer).order(), DataType.INT64);
    }

    /** Returns a buffer's elements from position to limit, with the given type and byte order. */
    private static Operand of(Buffer buffer, ByteOrder order, DataType type) {
        if (present("type", type).bytes() > 1 && order != ByteOrder.nativeOrder()) {
            throw new IllegalArgumentException("the buffer's elements of " + type.bytes() + " bytes are " + order
                    + ", and devices compute with " + ByteOrder.nativeOrder()
                    + ": call order(ByteOrder.nativeOrder()) of its ByteBuffer before it is filled");
        }
        return ofHost(MemorySegment.ofBuffer(buffer), type);
    }

    /**
     * {@return elements in memory that the device uses in place}
     *
     * @param memory memory from {@link Device#allocate} or {@link Device#view}; a segment of the Java heap is copied
     *               like an array
     * @param type   element type
     * @throws IllegalArgumentException if the size of the memory is not a multiple of the element size
     */
    public static Operand of(MemorySegment memory, DataType type) {
        return new Operand(memory, type, !present("memory", memory).isNative());
    }

    /**
     * {@return elements in host memory, on the heap or not}
     *
     * @param memory memory of an arena, a mapped file, or the heap; every thread must be allowed to use it
     * @param type   element type
     * @throws IllegalArgumentException if the size of the memory is not a multiple of the element size
     */
    public static Operand ofHost(MemorySegment memory, DataType type) {
        return new Operand(memory, type, true);
    }

    /**
     * {@return a part of this operand's elements}
     *
     * @param first index of the first element, 0 or more
     * @param count number of elements
     * @throws IndexOutOfBoundsException if this operand does not contain the whole part
     */
    public Operand slice(long first, long count) {
        Objects.checkFromIndexSize(first, count, count());
        if (booleans != null) {
            return of(booleans.array, Math.toIntExact(booleans.from + first),
                    Math.toIntExact(booleans.from + first + count));
        }
        List<MemorySegment> parts = new ArrayList<>();
        long skip = first * width;
        long left = count * width;
        for (MemorySegment memory : memories) {
            long here = Math.min(left, Math.max(0, memory.byteSize() - skip));
            if (here > 0) {
                parts.add(memory.asSlice(skip, here));
            }
            skip = Math.max(0, skip - memory.byteSize());
            left -= here;
        }
        return new Operand(parts.isEmpty() ? List.of(memories.getFirst().asSlice(0, 0)) : List.copyOf(parts), type,
                ofHost, width, null);
    }

    private Operand range(int from, int to) {
        return slice(from, to - (long) Objects.checkFromToIndex(from, to, Math.toIntExact(count())));
    }

    /** {@return the number of elements, 0 or more} */
    public long count() {
        return bytes() / width;
    }

    /** {@return the element type; a type of single bytes if NCCL has no type for the array's elements} */
    public DataType type() {
        return type;
    }

    /**
     * {@return the memory of the elements}
     *
     * @throws IllegalStateException if the operand consists of more than one part
     */
    public MemorySegment memory() {
        if (memories.size() > 1) {
            throw new IllegalStateException(this + " consist of " + memories.size() + " parts");
        }
        return memories.getFirst();
    }

    long bytes() {
        long bytes = 0;
        for (MemorySegment memory : memories) {
            bytes += memory.byteSize();
        }
        return bytes;
    }

    List<MemorySegment> memories() {
        return memories;
    }

    /**
     * Converts a count of this operand's elements to a count of elements of {@link #type}. Operations move elements of
     * {@link #type}.
     */
    long counted(long elements) {
        return elements * width / type.bytes();
    }

    /** Returns whether one element of this operand is one element of {@link #type}, and can therefore be reduced. */
    boolean isElementwise() {
        return width == type.bytes();
    }

    /** Returns whether the memory is host memory, which a device may have to copy. */
    boolean isOfHost() {
        return ofHost;
    }

    /** Returns whether code on the host can access the memory directly. */
    boolean isOnHost(Device device) {
        return ofHost || device.reaches(memory(), type);
    }

    /** Returns whether a device may use the memory in place: the memory is one part and is not a copy of booleans. */
    boolean isPlain() {
        return memories.size() == 1 && booleans == null;
    }

    boolean isSame(@Nullable Operand other) {
        // MemorySegment.equals compares only the beginnings of two segments, so the sizes are compared, too.
        return other != null && memories.equals(other.memories) && bytes() == other.bytes()
                && (booleans == null || other.booleans == booleans);
    }

    /**
     * Returns the function that copies the program's booleans to the memory; null if the operand has no booleans. The
     * caller runs this function before the memory is copied to a device.
     */
    @Nullable
    Runnable loading() {
        return booleans == null ? null : booleans::load;
    }

    /**
     * Returns the function that copies the memory back to the program's booleans; null if the operand has no booleans.
     */
    @Nullable
    Runnable storing() {
        return booleans == null ? null : booleans::store;
    }

    /** Copies the elements of this operand to host memory. */
    void write(MemorySegment to) {
        if (booleans != null) {
            booleans.load();
        }
        long at = 0;
        for (MemorySegment memory : memories) {
            MemorySegment.copy(memory, 0, to, at, memory.byteSize());
            at += memory.byteSize();
        }
    }

    /** Copies host memory to the elements of this operand. */
    void read(MemorySegment from) {
        long at = 0;
        for (MemorySegment memory : memories) {
            MemorySegment.copy(from, at, memory, 0, memory.byteSize());
            at += memory.byteSize();
        }
        if (booleans != null) {
            booleans.store();
        }
    }

    @Override
    public String toString() {
        return count() + " " + (isElementwise() ? type.label() : "16-bit") + (ofHost ? " of the host" : "");
    }
}
