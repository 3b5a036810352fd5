package org.millrace;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.CFunction;

/**
 * A tensor of another library, passed as DLPack's struct ({@code dlpack.h} 1.0 and 0.8). Its elements become an
 * {@link Operand} in place.
 *
 * <pre>
 * DLTensor                     DLManagedTensor            DLManagedTensorVersioned
 *  0 void    *data              0 DLTensor dl_tensor       0 uint32_t major, minor
 *  8 int32_t  device_type      48 void    *manager_ctx     8 void    *manager_ctx
 * 12 int32_t  device_id        56 void   (*deleter)(self) 16 void   (*deleter)(self)
 * 16 int32_t  ndim                                        24 uint64_t flags
 * 20 uint8_t  code, bits                                  32 DLTensor dl_tensor
 * 22 uint16_t lanes
 * 24 int64_t *shape
 * 32 int64_t *strides, null: compact, last dimension first
 * 40 uint64_t byte_offset
 * </pre>
 */
public final class DlpackTensor implements AutoCloseable {

    private static final long DATA = 0;
    private static final long DEVICE_TYPE = 8;
    private static final long DIMENSIONS = 16;
    private static final long CODE = 20;
    private static final long BITS = 21;
    private static final long LANES = 22;
    private static final long SHAPE = 24;
    private static final long STRIDES = 32;
    private static final long BYTE_OFFSET = 40;
    private static final long TENSOR_BYTES = 48;
    private static final long MANAGED_DELETER = 56;
    private static final long MANAGED_BYTES = 64;
    private static final long VERSIONED_DELETER = 16;
    private static final long VERSIONED_FLAGS = 24;
    private static final long VERSIONED_TENSOR = 32;
    private static final long READ_ONLY = 1;
    private static final int MAJOR = 1;
    private static final int MAX_DIMENSIONS = 64;
    /** {@code kDLCPU}: host memory that no other device can access. */
    private static final int CPU = 1;
    /** {@code kDLCUDAHost}, {@code kDLROCMHost}, {@code kDLCUDAManaged}: other memory that the host can access. */
    private static final Set<Integer> REACHED_BY_HOST = Set.of(CPU, 3, 11, 13);
    /** Values of {@code DLDataTypeCode}: signed, unsigned, IEEE, bfloat16 and 8-bit floating-point numbers. */
    private static final int INT = 0;
    private static final int UINT = 1;
    private static final int FLOAT = 2;
    private static final int BFLOAT = 4;
    private static final int FLOAT8_E4M3FN = 10;
    private static final int FLOAT8_E5M2 = 12;

    private final MemorySegment tensor;
    private final @Nullable MemorySegment owned;
    private final long deleter;
    private final boolean readOnly;
    private final AtomicBoolean closed = new AtomicBoolean();

    private DlpackTensor(MemorySegment tensor, @Nullable MemorySegment owned, long deleter, boolean readOnly) {
        this.tensor = tensor;
        this.owned = owned;
        this.deleter = deleter;
        this.readOnly = readOnly;
    }

    /**
     * {@return a tensor that the other library continues to own} Closing the returned object does not free the tensor.
     *
     * @param address address of the {@code DLTensor}, or of a {@code DLManagedTensor}, which begins with a
     *                {@code DLTensor}
     */
    public static DlpackTensor borrow(long address) {
        return new DlpackTensor(struct(address, TENSOR_BYTES), null, 0, false);
    }

    /**
     * {@return a tensor that the returned object owns} Closing the returned object calls the deleter of the tensor.
     *
     * @param address address of the {@code DLManagedTensor}, as in a capsule named {@code dltensor}
     */
    public static DlpackTensor adopt(long address) {
        MemorySegment managed = struct(address, MANAGED_BYTES);
        return new DlpackTensor(managed, managed, managed.get(ValueLayout.JAVA_LONG, MANAGED_DELETER), false);
    }

    /**
     * {@return a tensor that the returned object owns} Closing the returned object calls the deleter of the tensor.
     *
     * @param address address of the {@code DLManagedTensorVersioned}, as in a capsule named {@code dltensor_versioned}
     * @throws IllegalArgumentException if the major version of the struct is not 1. In this case, the caller may use
     *                                  only the struct's deleter.
     */
    public static DlpackTensor adoptVersioned(long address) {
        MemorySegment managed = struct(address, VERSIONED_TENSOR + TENSOR_BYTES);
        int major = managed.get(ValueLayout.JAVA_INT, 0);
        if (major != MAJOR) {
            throw new IllegalArgumentException("the tensor is of DLPack " + major + "."
                    + managed.get(ValueLayout.JAVA_INT, Integer.BYTES) + ", and this reads " + MAJOR
                    + ".x: ask its library for that version (max_version in __dlpack__)");
        }
        return new DlpackTensor(managed.asSlice(VERSIONED_TENSOR), managed,
                managed.get(ValueLayout.JAVA_LONG, VERSIONED_DELETER),
                (managed.get(ValueLayout.JAVA_LONG, VERSIONED_FLAGS) & READ_ONLY) != 0);
    }

    @SuppressWarnings("restricted") // safe if the caller of the public methods passes a valid address
    private static MemorySegment struct(long address, long bytes) {
        if (address == 0) {
            throw new IllegalArgumentException("the address of a DLPack tensor is 0");
        }
        return MemorySegment.ofAddress(address).reinterpret(bytes);
    }

    /**
     * Returns the elements as an operand in place.
     *
     * @param device device of the operations
     * @return the operand, usable until this tensor is closed
     * @throws IllegalArgumentException if NCCL has no type for the elements, if the elements are not contiguous, or if
     *                                  the device cannot access them
     * @throws IllegalStateException    if this tensor is closed
     */
    public Operand operand(Device device) {
        if (closed.get()) {
            throw new IllegalStateException("the DLPack tensor is closed");
        }
        DataType type = type();
        long count = count();
        long address = tensor.get(ValueLayout.JAVA_LONG, DATA) + tensor.get(ValueLayout.JAVA_LONG, BYTE_OFFSET);
        long bytes = product(count, type.bytes());
        int owner = tensor.get(ValueLayout.JAVA_INT, DEVICE_TYPE);
        if (!REACHED_BY_HOST.contains(owner) && device.reaches(MemorySegment.NULL, type)) {
            throw new IllegalArgumentException("a DLPack tensor of device type " + owner + " lies in the memory of a"
                    + " GPU, and operations run on " + device.name() + ": copy it to the host, or join with"
                    + " MILLRACE_DEVICE=cuda");
        }
        if (owner == CPU) {
            MemorySegment memory = bytes == 0 ? MemorySegment.NULL : struct(address, bytes);
            return Operand.ofHost(readOnly ? memory.asReadOnly() : memory, type);
        }
        MemorySegment memory = device.view(address, bytes);
        return Operand.of(readOnly ? memory.asReadOnly() : memory, type);
    }

    private DataType type() {
        int code = Byte.toUnsignedInt(tensor.get(ValueLayout.JAVA_BYTE, CODE));
        int bits = Byte.toUnsignedInt(tensor.get(ValueLayout.JAVA_BYTE, BITS));
        DataType type = switch (code) {
            case INT -> bits == 8 ? DataType.INT8 : bits == 32 ? DataType.INT32 : bits == 64 ? DataType.INT64 : null;
            case UINT ->
                bits == 8 ? DataType.UINT8 : bits == 32 ? DataType.UINT32 : bits == 64 ? DataType.UINT64 : null;
            case FLOAT ->
                bits == 16 ? DataType.FLOAT16 : bits == 32 ? DataType.FLOAT32 : bits == 64 ? DataType.FLOAT64 : null;
            case BFLOAT -> bits == 16 ? DataType.BFLOAT16 : null;
            case FLOAT8_E4M3FN -> bits == 8 ? DataType.FLOAT8_E4M3 : null;
            case FLOAT8_E5M2 -> bits == 8 ? DataType.FLOAT8_E5M2 : null;
            default -> null;
        };
        if (type == null) {
            throw new IllegalArgumentException("a DLPack tensor of type code " + code + " with " + bits
                    + " bits has no type of NCCL: convert it to one of "
                    + String.join(", ", Arrays.stream(DataType.values()).map(DataType::label).toList()));
        }
        return type;
    }

    /** Returns the number of elements; throws if they are not contiguous. */
    private long count() {
        int dimensions = tensor.get(ValueLayout.JAVA_INT, DIMENSIONS);
        if (dimensions < 0 || dimensions > MAX_DIMENSIONS) {
            throw new IllegalArgumentException("a DLPack tensor of " + dimensions + " dimensions");
        }
        long[] shape = numbers(SHAPE, dimensions);
        long[] strides = tensor.get(ValueLayout.JAVA_LONG, STRIDES) == 0 ? null : numbers(STRIDES, dimensions);
        long count = 1;
        boolean compact = true;
        for (int i = dimensions - 1; i >= 0; i--) {
            if (shape[i] < 0) {
                throw new IllegalArgumentException("a DLPack tensor of shape " + Arrays.toString(shape));
            }
            compact &= strides == null || shape[i] == 1 || strides[i] == count;
            count = product(count, shape[i]);
        }
        if (!compact && count > 0) {
            throw new IllegalArgumentException("a DLPack tensor of shape " + Arrays.toString(shape) + " and strides "
                    + Arrays.toString(strides) + ": its elements must lie one behind the other, the last dimension"
                    + " first; make it contiguous");
        }
        return product(count, Short.toUnsignedLong(tensor.get(ValueLayout.JAVA_SHORT, LANES)));
    }

    /** Returns the product of two factors that are not negative. */
    private static long product(long one, long other) {
        if (one != 0 && other > Long.MAX_VALUE / one) {
            throw new IllegalArgumentException("a DLPack tensor has more than 2^63 - 1 elements or bytes");
        }
        return one * other;
    }

    private long[] numbers(long field, int count) {
        return count == 0 ? new long[0]
                : struct(tensor.get(ValueLayout.JAVA_LONG, field), (long) count * Long.BYTES)
                        .toArray(ValueLayout.JAVA_LONG);
    }

    /**
     * Frees an adopted tensor: calls the deleter of the library that created the tensor. All operations on the tensor
     * must be complete. Closing twice is allowed.
     */
    @Override
    public void close() {
        if (!closed.compareAndSet(false, true) || owned == null || deleter == 0) {
            return;
        }
        CFunction.at(MemorySegment.ofAddress(deleter)).call(owned.address());
    }
}
