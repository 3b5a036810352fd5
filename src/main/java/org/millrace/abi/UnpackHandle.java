package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.unpackNetDeviceHandle;
import org.millrace.foreign.Words;

/**
 * {@code unpackNetDeviceHandle}: the struct at the {@code handle} of a {@link NetDeviceHandle} with type
 * {@link NetDeviceHandle#UNPACK}.
 *
 * <pre>
 *    0                       8                       16                      24
 *    +-----------------------+-----------------------+-----------------------+
 *    | meta                  | bounce_buf            | head                  |
 *    +-----------------------+-----------------------+-----------------------+
 *      pointer                 pointer                 u64
 * </pre>
 *
 * <p>
 * The plugin writes the struct before the connection is used. After that, only the kernel writes to the struct: it
 * stores {@code head} at the end of each operation. NCCL's accesses are plain. Millrace's {@link #headRelease} and
 * {@link #headAcquire} are ordered. The kernel adds 1 to its head <em>before</em> it uses a slice of
 * {@link UnpackMeta}. The kernel therefore begins with slice 0 if the head is {@link #BEFORE_FIRST}.
 */
public final class UnpackHandle {
    public static final long BYTES = unpackNetDeviceHandle.sizeof();
    public static final long ALIGNMENT = unpackNetDeviceHandle.layout().byteAlignment();
    /** Value of {@code head} before slice 0 is used. */
    public static final long BEFORE_FIRST = -1;

    private static final long META = offset("meta");
    private static final long BOUNCE_BUFFER = offset("bounce_buf");
    private static final long HEAD = offset("head");

    private final MemorySegment segment;

    private UnpackHandle(MemorySegment segment) {
        this.segment = segment;
    }

    /** {@return a view of a handle of exactly {@link #BYTES} bytes, aligned to {@link #ALIGNMENT}} */
    public static UnpackHandle of(MemorySegment segment) {
        return new UnpackHandle(Words.checked("unpackNetDeviceHandle", segment, BYTES, ALIGNMENT));
    }

    /**
     * Sets every field.
     *
     * @param meta         device-visible address of the lists ({@link UnpackMeta})
     * @param bounceBuffer device-visible address of the bounce buffer
     * @param head         {@link #BEFORE_FIRST}, or the last head of an earlier connection that used the same lists
     */
    public void set(long meta, long bounceBuffer, long head) {
        Words.LONG.set(segment, META, meta);
        Words.LONG.set(segment, BOUNCE_BUFFER, bounceBuffer);
        Words.LONG.set(segment, HEAD, head);
    }

    /** Stores the head at the end of an operation, after all earlier accesses of this thread. Called by the kernel. */
    public void headRelease(long head) {
        Words.LONG.setRelease(segment, HEAD, head);
    }

    /**
     * {@return the head: one less than the number of slices that the kernel had used at the end of its last operation}
     * Callable while a kernel may store the head, because the load has acquire semantics.
     */
    public long headAcquire() {
        return (long) Words.LONG.getAcquire(segment, HEAD);
    }

    private static long offset(String field) {
        return unpackNetDeviceHandle.layout().byteOffset(groupElement(field));
    }

    /**
     * Memory that a device needs to gather a connection's received data: the bounce buffer with the data, and the lists
     * of the data's pieces.
     *
     * @param meta      memory of the lists ({@link UnpackMeta})
     * @param handle    memory of the {@link UnpackHandle}
     * @param bounce    memory of the bounce buffer; the source offsets in the lists are relative to it
     * @param threshold number of bytes; a slice of protocol Simple with fewer bytes arrives in its slot, without a list
     */
    public record UnpackMemory(MemorySegment meta, MemorySegment handle, MemorySegment bounce, long threshold) {
    }
}
