package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.unpackNetDeviceHandle;

/**
 * {@code unpackNetDeviceHandle}: the struct that the handle of a {@link NetDeviceHandle#UNPACK} connection points to.
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
 * The plugin fills it in before the connection is used. After that only the kernel writes {@code head}, at the end of
 * each operation. NCCL's accesses are plain. {@link #headRelease} and {@link #headAcquire} are ordered. The kernel adds
 * 1 <em>before</em> it uses a slice of {@link UnpackMeta}, so it begins with slice 0 if the head is
 * {@link #BEFORE_FIRST}.
 */
public final class UnpackHandle {
    public static final long BYTES = unpackNetDeviceHandle.sizeof();
    public static final long ALIGNMENT = unpackNetDeviceHandle.layout().byteAlignment();
    /** Value of the head before slice 0 is used. */
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
     * @param head {@link #BEFORE_FIRST}, or the head at which an earlier user of the same lists stopped
     */
    public void set(long meta, long bounceBuffer, long head) {
        Words.LONG.set(segment, META, meta);
        Words.LONG.set(segment, BOUNCE_BUFFER, bounceBuffer);
        Words.LONG.set(segment, HEAD, head);
    }

    /** {@return the device-visible address of the lists} */
    public long meta() {
        return (long) Words.LONG.get(segment, META);
    }

    /** {@return the device-visible address of the bounce buffer} */
    public long bounceBuffer() {
        return (long) Words.LONG.get(segment, BOUNCE_BUFFER);
    }

    /** {@return the number of slices that the kernel had used at the end of its last operation, minus one} */
    public long head() {
        return (long) Words.LONG.get(segment, HEAD);
    }

    /** Stores the head at the end of an operation. Called by the kernel. */
    public void headRelease(long head) {
        Words.LONG.setRelease(segment, HEAD, head);
    }

    /** {@return {@link #head()}, read while a kernel may store it} */
    public long headAcquire() {
        return (long) Words.LONG.getAcquire(segment, HEAD);
    }

    private static long offset(String field) {
        return unpackNetDeviceHandle.layout().byteOffset(groupElement(field));
    }

    /**
     * Memory that a device needs to gather the received data of a connection: the pieces and the lists of them.
     *
     * @param bounce    bounce buffer; the source offsets in the lists are relative to it
     * @param threshold number of bytes; a slice of protocol Simple with fewer bytes arrives in its slot, without a list
     */
    public record UnpackMemory(MemorySegment meta, MemorySegment handle, MemorySegment bounce, long threshold) {
    }
}
