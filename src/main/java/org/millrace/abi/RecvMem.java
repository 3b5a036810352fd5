package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclRecvMem;

/**
 * {@code ncclRecvMem}: the half of a connection's control memory that announces data.
 *
 * <pre>
 *    0        8              128                                              4096
 *    +--------+------ - - ---+-----------------------------------------  - - -+----------- - - --+
 *    | tail   |     pad      | connFifo[0], connFifo[1], ... connFifo[7]      | flush, pad        |
 *    +--------+------ - - ---+-----------------------------------------  - - -+----------- - - --+
 *      u64
 * </pre>
 *
 * <p>
 * An entry of {@code connFifo} has the fields {@code mode}, {@code offset}, {@code size} ({@link #EMPTY} if it
 * announces nothing) and {@code ptr}. A {@link FifoLayout} defines their layout.
 *
 * <p>
 * {@code tail} is the number of steps with slots that contain data.
 *
 * <table>
 * <caption>Writers of the fields</caption>
 * <tr>
 * <th>field</th>
 * <th>send side</th>
 * <th>receive side</th>
 * </tr>
 * <tr>
 * <td>tail</td>
 * <td>the sending kernel, for the proxy. LL never advances it</td>
 * <td>the proxy, for the receiving kernel; LL and LL128 kernels poll flags instead</td>
 * </tr>
 * <tr>
 * <td>size</td>
 * <td>the sending kernel; the proxy sets it to {@link #EMPTY} before it frees the slot</td>
 * <td>the receiving kernel, to announce that its registered buffer is ready; a proxy without a registered buffer leaves
 * it unchanged</td>
 * </tr>
 * <tr>
 * <td>mode</td>
 * <td>the host, once</td>
 * <td>the host, once</td>
 * </tr>
 * <tr>
 * <td>offset</td>
 * <td>the proxy, before it grants the slot with head</td>
 * <td>the proxy, before it announces the slot with tail</td>
 * </tr>
 * <tr>
 * <td>ptr</td>
 * <td>the device, before tail</td>
 * <td>the device, before head</td>
 * </tr>
 * </table>
 *
 * <p>
 * NCCL itself never uses mode PTR. The mode is for a device side and a proxy that both belong to Millrace.
 *
 * <p>
 * A release of {@code tail} pairs with the acquire on the other side. It publishes the slot's data and its
 * {@code connFifo} entry. LL has no tail: a kernel writes {@code size} and then the lines, and only the flags in the
 * lines announce the data. An acquire of {@code size} then orders no data. It keeps the reads of the lines after the
 * read of {@code size}.
 *
 * <p>
 * {@code flush} belongs to NCCL's GDRCopy path. Facts: NCCL 2.28 {@code comm.h}, {@code collectives.h},
 * {@code device/prims_*.h}, {@code transport/net.cc}.
 */
public final class RecvMem extends PolledStruct {
    /** The struct's size: one page. */
    public static final long BYTES = ncclRecvMem.sizeof();
    /** The alignment that the accesses require. NCCL's own structs lie on a page boundary. */
    public static final long ALIGNMENT = ncclRecvMem.layout().byteAlignment();
    /** The size of a {@code connFifo} entry that announces nothing. */
    public static final long EMPTY = -1;
    /** {@link #modePlain(int)}: the data is in the connection's own slot. */
    public static final int MODE_NORMAL = device_h.NCCL_MODE_NORMAL();
    /** {@link #modePlain(int)}: the data is at {@link #offsetPlain(int)} of the buffer that all peers share. */
    public static final int MODE_OFFSET = device_h.NCCL_MODE_OFFSET();
    /** {@link #modePlain(int)}: the data is at {@link #ptrPlain(int)}, in a registered buffer of the user. */
    public static final int MODE_PTR = device_h.NCCL_MODE_PTR();
    /** Offset of {@code tail}. */
    public static final long TAIL_OFFSET = ncclRecvMem.layout().byteOffset(groupElement("tail"));

    private static final int SLOTS = device_h.NCCL_STEPS();

    private final FifoLayout fifo;
    /** Address of the size of slot 0, and distance between two sizes. Kept here because every step accesses a size. */
    private final long sizes;
    private final long entryBytes;

    private RecvMem(MemorySegment segment, FifoLayout fifo) {
        super("ncclRecvMem", segment, BYTES, ALIGNMENT);
        this.fifo = fifo;
        this.sizes = base + fifo.size;
        this.entryBytes = fifo.entryBytes;
    }

    /**
     * {@return a view of a receive half in Millrace's own memory, with the newest layout; the segment has exactly
     * {@link #BYTES} bytes and is aligned to {@link #ALIGNMENT}}
     */
    public static RecvMem of(MemorySegment segment) {
        return of(segment, FifoLayout.NEWEST);
    }

    /** {@return a view of a receive half of exactly {@link #BYTES} bytes, aligned to {@link #ALIGNMENT}} */
    public static RecvMem of(MemorySegment segment, FifoLayout fifo) {
        return new RecvMem(segment, fifo);
    }

    /** {@return the number of steps that contain data; their data and sizes are visible after this acquire} */
    public long tailAcquire() {
        return (long) Words.LONG.getAcquire(Words.MEMORY, base + TAIL_OFFSET);
    }

    /** {@return the number of steps that contain data, without order; for the only writer of the field} */
    public long tailPlain() {
        return (long) Words.LONG.get(Words.MEMORY, base + TAIL_OFFSET);
    }

    /** Announces all steps before the given step, and publishes their data. */
    public void tailRelease(long step) {
        Words.LONG.setRelease(Words.MEMORY, base + TAIL_OFFSET, step);
    }

    /** Initializes {@code tail} with a plain store, before any other thread or device accesses the memory. */
    public void tailPlain(long step) {
        Words.LONG.set(Words.MEMORY, base + TAIL_OFFSET, step);
    }

    /** {@return the number of bytes in a slot, or {@link #EMPTY}; later reads of the slot stay after this load} */
    public long sizeAcquire(int slot) {
        return (long) Words.LONG.getAcquire(Words.MEMORY, sizes + entry(slot));
    }

    /**
     * {@return the number of bytes in a slot, or {@link #EMPTY}; only valid after an acquire of tail made it visible}
     */
    public long sizePlain(int slot) {
        return (long) Words.LONG.get(Words.MEMORY, sizes + entry(slot));
    }

    /**
     * Announces a slot's size after all earlier accesses of this thread.
     *
     * @param bytes size of the data, or {@link #EMPTY}
     */
    public void sizeRelease(int slot, long bytes) {
        Words.LONG.setRelease(Words.MEMORY, sizes + entry(slot), bytes);
    }

    /**
     * Sets a slot's size; a later release of head or tail publishes it.
     *
     * @param bytes size of the data, or {@link #EMPTY}
     */
    public void sizePlain(int slot, long bytes) {
        Words.LONG.set(Words.MEMORY, sizes + entry(slot), bytes);
    }

    /** {@return the location of a slot's data: {@link #MODE_NORMAL}, {@link #MODE_OFFSET} or {@link #MODE_PTR}} */
    public int modePlain(int slot) {
        return (int) Words.INT.get(Words.MEMORY, base + fifo.mode + entry(slot));
    }

    /**
     * Sets the location of a slot's data; a later release of head or tail publishes it.
     *
     * @param mode {@link #MODE_NORMAL}, {@link #MODE_OFFSET} or {@link #MODE_PTR}
     */
    public void modePlain(int slot, int mode) {
        Words.INT.set(Words.MEMORY, base + fifo.mode + entry(slot), mode);
    }

    /** {@return the offset of a slot's data in the shared buffer, in bytes} */
    public long offsetPlain(int slot) {
        long at = base + fifo.offset + entry(slot);
        return fifo.isOffsetLong ? (long) Words.LONG.get(Words.MEMORY, at) : (int) Words.INT.get(Words.MEMORY, at);
    }

    /**
     * Sets the offset of a slot's data in the shared buffer; a later release of head or tail publishes it.
     *
     * @param offset offset in bytes
     */
    public void offsetPlain(int slot, int offset) {
        long at = base + fifo.offset + entry(slot);
        if (fifo.isOffsetLong) {
            Words.LONG.set(Words.MEMORY, at, (long) offset);
        } else {
            Words.INT.set(Words.MEMORY, at, offset);
        }
    }

    /** {@return the address of a slot's data in a registered buffer} */
    public long ptrPlain(int slot) {
        return (long) Words.LONG.get(Words.MEMORY, base + fifo.ptr + entry(slot));
    }

    /**
     * Sets the address of a slot's data in a registered buffer; a later release of head or tail publishes it.
     *
     * @param address an address that the device and the proxy can use
     */
    public void ptrPlain(int slot, long address) {
        Words.LONG.set(Words.MEMORY, base + fifo.ptr + entry(slot), address);
    }

    private long entry(int slot) {
        return Objects.checkIndex(slot, SLOTS) * entryBytes;
    }

    /**
     * {@return the current values of a connection's counters, for a message} An example is
     * {@code "head 16, tail 18, sizes [64 64 -1 -1 -1 -1 -1 -1]"}.
     */
    public String describe(SendMem sendMem) {
        StringBuilder text = new StringBuilder();
        text.append("head ").append(sendMem.headAcquire()).append(", tail ").append(tailAcquire()).append(", sizes [");
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            text.append(slot == 0 ? "" : " ").append(sizePlain(slot));
        }
        return text.append(']').toString();
    }
}
