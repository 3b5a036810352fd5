package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.millrace.ffi.device.device_h;
import org.millrace.ffi.device.ncclRecvMem;
import org.millrace.foreign.PolledStruct;
import org.millrace.foreign.Words;

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
 * An entry of {@code connFifo} has the fields {@code mode}, {@code offset}, {@code size} and {@code ptr}. The size is
 * {@link #EMPTY} if the entry announces no data. A {@link KernelLayout} defines the layout of an entry.
 *
 * <p>
 * {@code tail} is the number of steps that have been posted. The data of all steps below {@code tail} lies in slots, or
 * has left the slots.
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
 * <td>the receiving kernel, to announce that its registered buffer is ready; without a registered buffer the proxy
 * leaves the size unchanged</td>
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
 * NCCL itself never uses mode PTR. The mode is used only if the device and the proxy both belong to Millrace.
 *
 * <p>
 * A release of {@code tail} publishes the slot's data and its {@code connFifo} entry. The release pairs with the
 * acquire of {@code tail} by the reader. LL has no tail: a sending kernel writes {@code size} and then the lines, and
 * only the flags in the lines announce the data. With LL, an acquire of {@code size} publishes no data. This acquire
 * only makes the proxy read the lines after {@code size}.
 *
 * <p>
 * NCCL uses {@code flush} with GDRCopy (mapped GPU memory), and Millrace does not use it. Facts: NCCL 2.28
 * {@code comm.h}, {@code collectives.h}, {@code device/prims_*.h}, {@code transport/net.cc}.
 */
public final class RecvMem extends PolledStruct {
    /** Size of the struct in bytes: one page. */
    public static final long BYTES = ncclRecvMem.sizeof();
    /** Alignment that the accesses require, in bytes. NCCL's own structs lie on a page boundary. */
    public static final long ALIGNMENT = ncclRecvMem.layout().byteAlignment();
    /** Value of {@code size} in a {@code connFifo} entry that announces no data. */
    public static final long EMPTY = -1;
    /** Value of {@link #modePlain(int)}: the data lies in the connection's own slot. */
    public static final int MODE_NORMAL = device_h.NCCL_MODE_NORMAL();
    /**
     * Value of {@link #modePlain(int)}: the data lies at {@link #offsetPlain(int)} in a buffer that several connections
     * share.
     */
    public static final int MODE_OFFSET = device_h.NCCL_MODE_OFFSET();
    /**
     * Value of {@link #modePlain(int)}: the data lies at {@link #ptrPlain(int)}, in a registered buffer of the user.
     */
    public static final int MODE_PTR = device_h.NCCL_MODE_PTR();
    /** Offset of {@code tail} in the struct, in bytes. */
    public static final long TAIL_OFFSET = ncclRecvMem.layout().byteOffset(groupElement("tail"));

    private static final int SLOTS = device_h.NCCL_STEPS();

    private final KernelLayout layout;
    /**
     * Address of slot 0's size, and distance from the size of a slot to the size of the next slot, in bytes. These
     * values are stored in fields because every step accesses a size.
     */
    private final long sizes;
    private final long entryBytes;

    private RecvMem(MemorySegment segment, KernelLayout layout) {
        super("ncclRecvMem", segment, BYTES, ALIGNMENT);
        this.layout = layout;
        this.sizes = base + layout.size;
        this.entryBytes = layout.entryBytes;
    }

    /**
     * {@return a view of the struct in Millrace's own memory, with the newest layout of {@code connFifo}; the segment
     * has exactly {@link #BYTES} bytes and is aligned to {@link #ALIGNMENT}}
     */
    public static RecvMem of(MemorySegment segment) {
        return of(segment, KernelLayout.NEWEST);
    }

    /** {@return a view of the struct in a segment of exactly {@link #BYTES} bytes, aligned to {@link #ALIGNMENT}} */
    public static RecvMem of(MemorySegment segment, KernelLayout layout) {
        return new RecvMem(segment, layout);
    }

    /** {@return tail: the number of posted steps; their data and sizes are visible after this acquire} */
    public long tailAcquire() {
        return (long) Words.LONG.getAcquire(Words.MEMORY, base + TAIL_OFFSET);
    }

    /** Sets tail to a step: announces all steps before this step, and publishes their data. */
    public void tailRelease(long step) {
        Words.LONG.setRelease(Words.MEMORY, base + TAIL_OFFSET, step);
    }

    /** {@return the number of bytes in a slot, or {@link #EMPTY}; later loads from the slot happen after this load} */
    public long sizeAcquire(int slot) {
        return (long) Words.LONG.getAcquire(Words.MEMORY, sizes + entry(slot));
    }

    /**
     * {@return the number of bytes in a slot, or {@link #EMPTY}; valid only after an acquire of tail that covers the
     * step}
     */
    public long sizePlain(int slot) {
        return (long) Words.LONG.get(Words.MEMORY, sizes + entry(slot));
    }

    /**
     * Stores the size of a slot's data, after all earlier accesses of this thread.
     *
     * @param bytes size of the data, or {@link #EMPTY}
     */
    public void sizeRelease(int slot, long bytes) {
        Words.LONG.setRelease(Words.MEMORY, sizes + entry(slot), bytes);
    }

    /**
     * Stores the size of a slot's data. A later release of head or tail publishes the size.
     *
     * @param bytes size of the data, or {@link #EMPTY}
     */
    public void sizePlain(int slot, long bytes) {
        Words.LONG.set(Words.MEMORY, sizes + entry(slot), bytes);
    }

    /**
     * {@return the mode of a slot: {@link #MODE_NORMAL}, {@link #MODE_OFFSET} or {@link #MODE_PTR}} The mode determines
     * the location of the slot's data.
     */
    public int modePlain(int slot) {
        return (int) Words.INT.get(Words.MEMORY, base + layout.mode + entry(slot));
    }

    /**
     * Stores the mode of a slot. The mode determines the location of the slot's data. A later release of head or tail
     * publishes the mode.
     *
     * @param mode {@link #MODE_NORMAL}, {@link #MODE_OFFSET} or {@link #MODE_PTR}
     */
    public void modePlain(int slot, int mode) {
        Words.INT.set(Words.MEMORY, base + layout.mode + entry(slot), mode);
    }

    /** {@return the offset of a slot's data in the shared buffer, in bytes} */
    public long offsetPlain(int slot) {
        long at = base + layout.offset + entry(slot);
        return layout.isOffsetLong ? (long) Words.LONG.get(Words.MEMORY, at) : (int) Words.INT.get(Words.MEMORY, at);
    }

    /**
     * Stores the offset of a slot's data in the shared buffer. A later release of head or tail publishes the offset.
     *
     * @param offset offset in bytes
     */
    public void offsetPlain(int slot, int offset) {
        long at = base + layout.offset + entry(slot);
        if (layout.isOffsetLong) {
            Words.LONG.set(Words.MEMORY, at, (long) offset);
        } else {
            Words.INT.set(Words.MEMORY, at, offset);
        }
    }

    /** {@return the address of a slot's data in a registered buffer} */
    public long ptrPlain(int slot) {
        return (long) Words.LONG.get(Words.MEMORY, base + layout.ptr + entry(slot));
    }

    /**
     * Stores the address of a slot's data in a registered buffer. A later release of head or tail publishes the
     * address.
     *
     * @param address an address that the device and the proxy can use
     */
    public void ptrPlain(int slot, long address) {
        Words.LONG.set(Words.MEMORY, base + layout.ptr + entry(slot), address);
    }

    private long entry(int slot) {
        return Objects.checkIndex(slot, SLOTS) * entryBytes;
    }

    /**
     * Returns the current values of a connection's counters as text for a message. An example is
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
