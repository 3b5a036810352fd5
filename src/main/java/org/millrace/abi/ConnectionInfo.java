package org.millrace.abi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.PageMemory;

/**
 * A device's view of its end of a connection ({@code ncclConnInfo} in NCCL): the locations of the slots and of the
 * counters. The step counter itself belongs to the device.
 *
 * @param buffers the buffers, one after another as {@code layout} describes; memory after them is not accessed
 * @param shared  location of the slots of protocol Simple if the connection shares them (mode OFFSET); null if the
 *                connection has its own slots
 * @param direct  view that lets the sending device point to the user's memory when no proxy lies between the devices;
 *                null if it does not
 * @param unpack  memory that the device gathers received data from; null if data arrives in slots
 */
public record ConnectionInfo(ConnectionLayout layout, MemorySegment buffers, SendMem sendMem, RecvMem recvMem,
        long firstStep, @Nullable SharedSlots shared, @Nullable DirectMemory direct,
        UnpackHandle.@Nullable UnpackMemory unpack) {

    /** Slots that several connections share. The {@code connFifo} entry of a step contains the offset of its slot. */
    public record SharedSlots(MemorySegment memory, long slotBytes) {
    }

    /**
     * Allocates memory for a connection, in NCCL's layout.
     *
     * <p>
     * The segments belong to the global scope. A proxy's accesses therefore check no arena, and no close can interrupt
     * the proxy during a pass. The memory itself belongs to the arena, which may be closed only after the thread that
     * polls the memory has acknowledged its stop.
     *
     * @return a connection with all counters at {@code firstStep} and no sizes
     */
    public static ConnectionInfo allocate(Arena arena, ConnectionLayout layout, long firstStep) {
        return at(unscoped(PageMemory.allocate(layout.totalBytes(), arena)), layout, firstStep);
    }

    /**
     * {@return polled memory as a segment of the global scope} No access then checks an arena, and no close interrupts
     * an access. The owner frees the memory after all threads that poll it have stopped.
     */
    @SuppressWarnings("restricted") // reinterprets an allocation, within its bounds
    public static MemorySegment unscoped(MemorySegment owned) {
        return MemorySegment.ofAddress(owned.address()).reinterpret(owned.byteSize());
    }

    /**
     * Returns a connection in existing memory, which two sides may share. The method initializes the counters.
     * Therefore only one side may call it, and only before the other side accesses the memory.
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
     * Stores the flag of a step in all lines. Zeros are correct as the flag of the step before step 0. Lines must not
     * carry the flag of a future step.
     */
    private void flagAllLines(long step) {
        long half = LLLine.half(0, LLLine.flag(step));
        for (long at = 0; at < layout.llBytes(); at += LLLine.BYTES) {
            LLLine.storeOpaque(buffers, at, half, half);
        }
        LL128Line.flagsRelease(buffers, layout.bufferOffset(Protocol.LL128),
                (int) (layout.ll128Bytes() / LL128Line.BYTES), LL128Line.flag(step));
    }

    /**
     * Returns the same connection with shared slots of protocol Simple. The method sets modes, so it must be called
     * before any other thread or device accesses the memory.
     *
     * @param sends whether this is the sending end; head then starts as if all slots were taken, because a device may
     *              use a slot only after head has granted it
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

    /** {@return the same connection, with a sending device that may point to the user's memory} */
    public ConnectionInfo withDirect(DirectMemory memory) {
        return new ConnectionInfo(layout, buffers, sendMem, recvMem, firstStep, shared, memory, unpack);
    }

    /** {@return the same connection, with a receiving device that gathers slices of protocol Simple} */
    public ConnectionInfo withUnpack(UnpackHandle.UnpackMemory memory) {
        return new ConnectionInfo(layout, buffers, sendMem, recvMem, firstStep, shared, direct, memory);
    }

    /** {@return the size of a slot in bytes} */
    public long slotBytes(Protocol protocol) {
        return protocol == Protocol.SIMPLE && shared != null ? shared.slotBytes : layout.slotBytes(protocol);
    }

    /**
     * {@return a connection in memory that another side has initialized ({@link #at}); the method writes nothing to the
     * memory}
     */
    public static ConnectionInfo over(MemorySegment memory, ConnectionLayout layout, long firstStep) {
        return new ConnectionInfo(layout, memory, layout.sendMem(memory), layout.recvMem(memory), firstStep, null, null,
                null);
    }

    /** {@return the slots of one protocol, {@link ConnectionLayout#SLOTS} of them} */
    public MemorySegment buffer(Protocol protocol) {
        return buffers.asSlice(layout.bufferOffset(protocol), layout.bufferBytes(protocol));
    }
}
