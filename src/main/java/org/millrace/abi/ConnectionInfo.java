package org.millrace.abi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.PageMemory;

/**
 * The locations of the slots and counters of one end of a connection, for the device ({@code ncclConnInfo} in NCCL).
 * This object does not contain the current step, which the device counts itself.
 *
 * @param layout    sizes and offsets of the buffers
 * @param buffers   memory of the buffers, as {@code layout} describes; memory after the buffers is not accessed
 * @param sendMem   half of the control memory, with head
 * @param recvMem   half of the control memory, with tail and connFifo
 * @param firstStep number of the first step
 * @param shared    slots of protocol Simple if the connection shares slots with other connections (mode OFFSET); null
 *                  if the connection has its own slots
 * @param direct    pointers of the sending device to the user's memory, if no proxy lies between the devices; null if
 *                  all data lies in slots
 * @param unpack    bounce buffer and lists, if the device gathers received data; null if received data lies in slots
 */
public record ConnectionInfo(ConnectionLayout layout, MemorySegment buffers, SendMem sendMem, RecvMem recvMem,
        long firstStep, @Nullable SharedSlots shared, @Nullable DirectMemory direct,
        UnpackHandle.@Nullable UnpackMemory unpack) {

    /**
     * Slots that several connections share. The {@code connFifo} entry of a step contains the offset of the step's
     * slot.
     */
    public record SharedSlots(MemorySegment memory, long slotBytes) {
    }

    /**
     * Allocates memory for a connection, in NCCL's layout.
     *
     * <p>
     * The returned segments belong to the global scope. A proxy's accesses therefore check no arena, and closing an
     * arena cannot interrupt the proxy during a pass. The memory itself belongs to {@code arena}. The arena may be
     * closed only after the thread that polls the memory has acknowledged its stop.
     *
     * @return a connection with all counters at {@code firstStep} and an empty {@code connFifo}
     */
    public static ConnectionInfo allocate(Arena arena, ConnectionLayout layout, long firstStep) {
        return at(unscoped(PageMemory.allocate(layout.totalBytes(), arena)), layout, firstStep);
    }

    /**
     * Returns memory that threads poll, as a segment of the global scope. An access then checks no arena, and closing
     * an arena does not interrupt an access. The owner must not free the memory before all threads that poll it have
     * stopped.
     */
    @SuppressWarnings("restricted") // safe: the new segment has the bounds of the given memory
    public static MemorySegment unscoped(MemorySegment owned) {
        return MemorySegment.ofAddress(owned.address()).reinterpret(owned.byteSize());
    }

    /**
     * Returns a connection in existing memory, which two processes or threads may share. The method initializes the
     * counters. Therefore only one of the two sides may call it, and only before the other side accesses the memory.
     */
    public static ConnectionInfo at(MemorySegment memory, ConnectionLayout layout, long firstStep) {
        ConnectionInfo info = over(memory, layout, firstStep);
        info.sendMem.headRelease(firstStep);
        info.recvMem.tailRelease(firstStep);
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            info.recvMem.sizePlain(slot, RecvMem.EMPTY);
        }
        if (firstStep != 0) {
            info.flagAllLines(firstStep - 1);
        }
        return info;
    }

    /**
     * Stores the flag of a step in all lines, so that no line carries the flag of a later step. A connection that
     * starts at step 0 needs no call: its preceding step has flag 0, and the memory starts as zeros.
     */
    private void flagAllLines(long step) {
        long half = LLLine.half(0, LLLine.flag(step));
        for (long at = 0; at < layout.llBytes(); at += LLLine.BYTES) {
            LLLine.storeOpaque(buffers, at, half, half);
        }
        LL128Line.NCCL.flagsRelease(buffers, layout.bufferOffset(Protocol.LL128),
                (int) (layout.ll128Bytes() / LL128Line.BYTES), LL128Line.flag(step));
    }

    /**
     * Returns a copy of this object with shared slots for protocol Simple. The method writes the modes in {@code
     * connFifo}, so it must be called before any other thread or device accesses the memory.
     *
     * @param sends whether this is the sending end. The head of the sending end starts as if all slots were in use, so
     *              the device waits for head before it uses a shared slot.
     */
    public ConnectionInfo withShared(SharedSlots slots, boolean sends) {
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            recvMem.modePlain(slot, RecvMem.MODE_OFFSET);
        }
        if (sends) {
            sendMem.headRelease(firstStep - ConnectionLayout.SLOTS);
        }
        return new ConnectionInfo(layout, buffers, sendMem, recvMem, firstStep, slots, direct, unpack);
    }

    /** {@return a copy of this object that allows the sending device to point to the user's memory} */
    public ConnectionInfo withDirect(DirectMemory memory) {
        return new ConnectionInfo(layout, buffers, sendMem, recvMem, firstStep, shared, memory, unpack);
    }

    /** {@return a copy of this object whose receiving device gathers slices of protocol Simple from a bounce buffer} */
    public ConnectionInfo withUnpack(UnpackHandle.UnpackMemory memory) {
        return new ConnectionInfo(layout, buffers, sendMem, recvMem, firstStep, shared, direct, memory);
    }

    /** {@return the size of a slot of a protocol, in bytes} */
    public long slotBytes(Protocol protocol) {
        return protocol == Protocol.SIMPLE && shared != null ? shared.slotBytes : layout.slotBytes(protocol);
    }

    /**
     * {@return a connection in memory that another process or thread has initialized with {@link #at}; the method does
     * not write to the memory}
     */
    public static ConnectionInfo over(MemorySegment memory, ConnectionLayout layout, long firstStep) {
        return new ConnectionInfo(layout, memory, layout.sendMem(memory), layout.recvMem(memory), firstStep, null, null,
                null);
    }

    /** {@return the buffer of one protocol: {@link ConnectionLayout#SLOTS} slots} */
    public MemorySegment buffer(Protocol protocol) {
        return buffers.asSlice(layout.bufferOffset(protocol), layout.bufferBytes(protocol));
    }
}
