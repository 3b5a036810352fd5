package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.DirectMemory;
import org.millrace.abi.Protocol;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;
import org.millrace.proxy.LineFlags;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.Steps;

/** The device's receiving end of a connection. All protocols share the port's step counter. */
public final class ReceivePort extends Port {

    private final LineFlags flags;
    /** Gatherer of received data from a bounce buffer; null if data arrives in slots. */
    private final @Nullable SliceGather gather;
    /** Pointers of the sending device to data outside slots (mode PTR); null if that device uses only slots. */
    private final @Nullable DirectMemory direct;
    private long tail;

    public ReceivePort(ConnectionName name, ConnectionInfo info) {
        super(name, info);
        this.gather = info.unpack() == null ? null : new SliceGather(info.unpack());
        this.direct = info.direct();
        this.flags = new LineFlags(layout, lines());
        this.tail = info.firstStep();
    }

    /**
     * Begins an operation. Rounds up the step to a multiple of a chunk's steps, and returns the skipped slots to the
     * sender.
     */
    public void begin(int chunkSteps) {
        if (gather != null) {
            // The previous operation has ended, so its final head is stored in the handle.
            gather.leave();
        }
        step = Steps.roundUp(step, chunkSteps);
        sendMem.headRelease(step);
    }

    /**
     * Returns whether the data of the next steps has arrived ({@code waitPeer}). The acquire of tail pairs with the
     * proxy's release of tail, and makes the data visible.
     */
    public boolean hasData(int steps) {
        long needed = step + steps;
        if (!Steps.reached(tail, needed)) {
            tail = recvMem.tailAcquire();
        }
        return Steps.reached(tail, needed);
    }

    /**
     * Returns whether all lines of the next step have arrived. Only the flags in the lines show the arrival. If the
     * step has no lines, returns true immediately. This end may therefore be ahead of the sender.
     */
    public boolean hasLines(Protocol protocol, long bytes) {
        return protocol == Protocol.LL ? flags.llReady(step, bytes) : flags.ll128Ready(step, bytes);
    }

    /**
     * Gathers the data of the next slots from the bounce buffer. Does nothing if the connection has no bounce buffer.
     * The data must have arrived.
     *
     * @param bytes number of bytes of the slice
     */
    public void unpack(long bytes) {
        if (gather != null) {
            gather.next(buffer(), slotOffset(), bytes);
        }
    }

    /**
     * Returns the memory that contains the data of the next step: the slots, or memory of the peer at an address that
     * the peer has published.
     */
    public MemorySegment data() {
        int slot = ConnectionLayout.slot(step);
        return direct != null && direct.isPointed(recvMem, slot) ? direct.memory(slot) : buffer();
    }

    /** Returns the offset of the next step's data in {@link #data()}. */
    public long dataOffset() {
        int slot = ConnectionLayout.slot(step);
        return direct != null && direct.isPointed(recvMem, slot) ? recvMem.ptrPlain(slot) : slotOffset();
    }

    /**
     * Returns slots to the sender ({@code postPeer}). The release of head pairs with the proxy's acquire of head. The
     * device has read the slots before, so the proxy may overwrite them.
     */
    public void release(int steps) {
        if (direct != null) {
            direct.read(ConnectionLayout.slot(step));
        }
        step += steps;
        sendMem.headRelease(step);
    }

    /**
     * Offers the user's memory to the proxy. The proxy then stores the data of a later step there, and not in a slot
     * (mode PTR). The release of size pairs with the proxy's acquire of size and makes the address visible.
     *
     * @param ahead distance of the later step from the next step
     */
    public void offer(int ahead, long address, long bytes) {
        int slot = ConnectionLayout.slot(step + ahead);
        recvMem.ptrPlain(slot, address);
        recvMem.sizeRelease(slot, bytes);
    }

    /**
     * Returns the address of the slot of a later step. The connection must have its own slots.
     *
     * @param ahead distance of the later step from the next step
     */
    public long slotAddress(int ahead) {
        return buffer().address() + ConnectionLayout.slot(step + ahead) * slotBytes;
    }

    @Override
    public String toString() {
        return name + " waits for data, at step " + step;
    }

    /**
     * Gathers the slices of one connection. A list describes the pieces of a slice. This object copies the pieces from
     * the bounce buffer to the slot, as the warps of one block do. Used only by one block at a time.
     */
    static final class SliceGather {

        /**
         * Number of bytes that a GPU copies in one access. The bounce buffer and the slots must be aligned to this
         * number of bytes.
         */
        private static final int UNIT = 16;

        private final UnpackMeta meta;
        private final UnpackHandle handle;
        private final MemorySegment bounce;
        private final long threshold;
        private long head;

        SliceGather(UnpackHandle.UnpackMemory memory) {
            this.meta = UnpackMeta.of(memory.meta());
            this.handle = UnpackHandle.of(memory.handle());
            this.bounce = memory.bounce();
            this.threshold = memory.threshold();
            head = handle.headAcquire();
        }

        /**
         * Gathers the data of the next slice into its slot. The slice must have arrived, that is, tail covers it.
         *
         * @param bytes number of bytes of the slice, 0 or more
         * @throws IllegalArgumentException if the bounce buffer or the slot is not aligned to 16 bytes
         */
        public void next(MemorySegment slots, long slot, long bytes) {
            head++;
            if (bytes == 0 || bytes < threshold) {
                return;
            }
            if (((bounce.address() | slots.address() + slot) & UNIT - 1) != 0) {
                throw new IllegalArgumentException(
                        "the bounce buffer and the slots of a connection must be aligned to " + UNIT + " bytes");
            }
            int slice = (int) head & UnpackMeta.SLICES - 1;
            // This acquire pairs with the proxy's release of the count. The caller's acquire of tail has already made
            // the list visible.
            long count = meta.countAcquire(slice);
            for (int piece = 0; piece < count; piece++) {
                MemorySegment.copy(bounce, Integer.toUnsignedLong(meta.sourceOffset(slice, piece)), slots,
                        slot + meta.targetOffset(slice, piece), Integer.toUnsignedLong(meta.length(slice, piece)));
            }
        }

        /** Stores the head in the handle, for the next operation. Called when an operation has ended. */
        public void leave() {
            handle.headRelease(head);
        }
    }
}
