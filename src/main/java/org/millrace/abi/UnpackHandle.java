package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.unpackNetDeviceHandle;

/**
 * {@code unpackNetDeviceHandle}: what the handle of a {@link NetDeviceHandle#UNPACK} connection points to.
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
 * The plugin fills it in before the connection is used; afterwards only the kernel writes {@code head}, at the end of
 * each operation. All accesses are plain. The kernel adds 1 <em>before</em> it uses a slice of {@link UnpackMeta}: a
 * head of {@link #BEFORE_FIRST} makes it begin with slice 0.
 */
public final class UnpackHandle {
    public static final long BYTES = unpackNetDeviceHandle.sizeof();
    public static final long ALIGNMENT = unpackNetDeviceHandle.layout().byteAlignment();
    /** The head with which slice 0 comes next. */
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
     * @param head {@link #BEFORE_FIRST}, or where an earlier user of the same lists stopped
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

    /** {@return how many slices the kernel had used when its last operation ended, less one} */
    public long head() {
        return (long) Words.LONG.get(segment, HEAD);
    }

    /** The kernel's part: stores the head when an operation has ended. */
    public void headRelease(long head) {
        Words.LONG.setRelease(segment, HEAD, head);
    }

    /** {@return {@link #head()}, while a kernel may be storing it} */
    public long headAcquire() {
        return (long) Words.LONG.getAcquire(segment, HEAD);
    }

    private static long offset(String field) {
        return unpackNetDeviceHandle.layout().byteOffset(groupElement(field));
    }

    /**
     * What a device needs to gather what it receives on a connection: where pieces arrive, and the lists of them.
     *
     * @param bounce    what the lists' source offsets count from
     * @param threshold bytes of a slice of protocol Simple below which it arrives in its slot, without a list
     */
    public record UnpackMemory(MemorySegment meta, MemorySegment handle, MemorySegment bounce, long threshold) {
    }
}
