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

/** The device's end of a connection that it receives on. All protocols share its step counter. */
public final class ReceivePort extends Port {

    private final LineFlags flags;
    /** Null if data arrives in the slots. */
    private final @Nullable SliceGather gather;
    /** Null if no peer points to its own memory. */
    private final @Nullable DirectMemory direct;
    private long tail;

    public ReceivePort(ConnectionName name, ConnectionInfo info) {
        super(name, info);
        this.gather = info.unpack() == null ? null : new SliceGather(info.unpack());
        this.direct = info.direct();
        this.flags = new LineFlags(layout, lines());
        this.tail = info.firstStep();
    }

    /** Begins an operation. Skips the steps up to a whole chunk and returns their credits. */
    public void begin(int chunkSteps) {
        if (gather != null) {
            gather.leave(); // the previous operation has ended
        }
        step = Steps.roundUp(step, chunkSteps);
        sendMem.headRelease(step);
    }

    /**
     * Returns whether the next slots have arrived ({@code waitPeer}). The acquire of tail pairs with the proxy's
     * release and makes the slot's data visible.
     */
    public boolean hasData(int steps) {
        long needed = step + steps;
        if (!Steps.reached(tail, needed)) {
            tail = recvMem.tailAcquire();
        }
        return Steps.reached(tail, needed);
    }

    /**
     * Returns whether the next step's lines have arrived, which only their flags show. Always true for a step without
     * lines, so this end may be ahead of the sender.
     */
    public boolean hasLines(Protocol protocol, long bytes) {
        return protocol == Protocol.LL ? flags.llReady(step, bytes) : flags.ll128Ready(step, bytes);
    }

    /** Assembles the data of the next slots, which have arrived, if the device is responsible for that. */
    public void unpack(long bytes) {
        if (gather != null) {
            gather.next(buffer(), slotOffset(), bytes);
        }
    }

    /** Returns the memory with the data of the next step: its slot, or the memory that the peer points to. */
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
     * Returns the slots to the sender ({@code postPeer}). The release of head pairs with the proxy's acquire: the slot
     * has been read and may be overwritten.
     */
    public void release(int steps) {
        if (direct != null) {
            direct.read(ConnectionLayout.slot(step));
        }
        step += steps;
        sendMem.headRelease(step);
    }

    /**
     * Lets the data of a later step, at distance {@code ahead} from the next one, arrive in the user's memory instead
     * of a slot (mode PTR). The release of size pairs with the proxy's acquire and makes the address visible.
     */
    public void offer(int ahead, long address, long bytes) {
        int slot = ConnectionLayout.slot(step + ahead);
        recvMem.ptrPlain(slot, address);
        recvMem.sizeRelease(slot, bytes);
    }

    /** Returns the address of the slot of a later step, on a connection with its own slots. */
    public long slotAddress(int ahead) {
        return buffer().address() + ConnectionLayout.slot(step + ahead) * slotBytes;
    }

    @Override
    public String toString() {
        return name + " waits for data: step " + step + ", head " + sendMem.headAcquire() + ", tail "
                + recvMem.tailAcquire();
    }

    /**
     * Gathers the slices of one connection piece by piece from a list, as one block's warps do. Used by the block only.
     */
    static final class SliceGather {

        /** Number of bytes that a GPU copies at a time. Buffers must be aligned to it. */
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
         * Assembles the bytes of the next slice, of 0 bytes or more, in its slot. The slice has arrived, because tail
         * covers it.
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
            // Acquire, paired with the proxy's release. It follows the acquire of tail in any case.
            long count = meta.countAcquire(slice);
            for (int piece = 0; piece < count; piece++) {
                MemorySegment.copy(bounce, Integer.toUnsignedLong(meta.sourceOffset(slice, piece)), slots,
                        slot + meta.targetOffset(slice, piece), Integer.toUnsignedLong(meta.length(slice, piece)));
            }
        }

        /** Called when the operation has ended. Stores the head for the next operation. */
        public void leave() {
            handle.headRelease(head);
        }
    }
}
