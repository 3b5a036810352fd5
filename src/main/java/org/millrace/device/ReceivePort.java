package org.millrace.device;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.DirectMemory;
import org.millrace.abi.Protocol;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;
import org.millrace.proxy.ConnectionName;
import org.millrace.proxy.LineFlags;
import org.millrace.proxy.Steps;

/** The device's end of a connection that it receives on. Its step counter is that of all protocols. */
public final class ReceivePort extends Port {

    private final LineFlags flags;
    /** Null if data arrives in the slots. */
    private final @Nullable SliceGather gather;
    /** Null where no peer points to memory of its own. */
    private final @Nullable DirectMemory direct;
    private long tail;

    public ReceivePort(ConnectionName name, ConnectionInfo info) {
        super(name, info);
        this.gather = info.unpack() == null ? null : new SliceGather(info.unpack());
        this.direct = info.direct();
        this.flags = new LineFlags(layout, lines());
        this.tail = info.firstStep();
    }

    /** Begins an operation: the steps up to a whole chunk are skipped, and their credits returned. */
    public void begin(int chunkSteps) {
        if (gather != null) {
            gather.leave(); // the operation before, whatever it was, has ended
        }
        step = Steps.roundUp(step, chunkSteps);
        sendMem.headRelease(step);
    }

    /**
     * Whether the next slots have arrived ({@code waitPeer}). The acquire of tail pairs with the proxy's release: the
     * slot's data is there.
     */
    public boolean hasData(int steps) {
        long needed = step + steps;
        if (!Steps.reached(tail, needed)) {
            tail = recvMem.tailAcquire();
        }
        return Steps.reached(tail, needed);
    }

    /**
     * Whether the next step's lines are there, which their flags alone say. A step without lines is, always: this end
     * may be ahead of the other.
     */
    public boolean hasLines(Protocol protocol, long bytes) {
        return protocol == Protocol.LL ? flags.llReady(step, bytes) : flags.ll128Ready(step, bytes);
    }

    /** The next slots' data is there: puts it together where that is left to the device. */
    public void unpack(long bytes) {
        if (gather != null) {
            gather.next(buffer(), slotOffset(), bytes);
        }
    }

    /** Where the data of the next step is: in its slot, or where the peer says. */
    public MemorySegment data() {
        int slot = ConnectionLayout.slot(step);
        return direct != null && direct.isPointed(recvMem, slot) ? direct.memory(slot) : buffer();
    }

    /** Of the data of the next step in {@link #data()}. */
    public long dataOffset() {
        int slot = ConnectionLayout.slot(step);
        return direct != null && direct.isPointed(recvMem, slot) ? recvMem.ptrPlain(slot) : slotOffset();
    }

    /**
     * Gives the slots back ({@code postPeer}). The release of head pairs with the proxy's acquire: the slot has been
     * read and may be overwritten.
     */
    public void release(int steps) {
        if (direct != null) {
            direct.read(ConnectionLayout.slot(step));
        }
        step += steps;
        sendMem.headRelease(step);
    }

    /**
     * Lets the data of a step that is so many steps ahead arrive in the user's memory, and not in a slot (mode PTR).
     * The release of size pairs with the proxy's acquire: it sees where.
     */
    public void offer(int ahead, long address, long bytes) {
        int slot = ConnectionLayout.slot(step + ahead);
        recvMem.ptrPlain(slot, address);
        recvMem.sizeRelease(slot, bytes);
    }

    /** Of the slot of a step that is so many steps ahead, of a connection with slots of its own. */
    public long slotAddress(int ahead) {
        return buffer().address() + ConnectionLayout.slot(step + ahead) * slotBytes;
    }

    @Override
    public String toString() {
        return name + " waits for data: step " + step + ", head " + sendMem.headAcquire() + ", tail "
                + recvMem.tailAcquire();
    }

    /**
     * Gathers the slices of one connection, as one block's warps do: piece by piece, as its list says. Used by the
     * block alone.
     */
    static final class SliceGather {

        /** A GPU copies so many bytes at a time, and demands of buffers that they are aligned for it. */
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
         * The next slice, of 0 bytes or more, has arrived (tail covers it): its bytes are put together in its slot.
         *
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
            // pairs with the proxy's release, and is behind the acquire of tail in any case
            long count = meta.countAcquire(slice);
            for (int piece = 0; piece < count; piece++) {
                MemorySegment.copy(bounce, Integer.toUnsignedLong(meta.sourceOffset(slice, piece)), slots,
                        slot + meta.targetOffset(slice, piece), Integer.toUnsignedLong(meta.length(slice, piece)));
            }
        }

        /** The operation has ended: the head is kept for the next one. */
        public void leave() {
            handle.headRelease(head);
        }
    }
}
