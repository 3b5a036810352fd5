package org.millrace.abi;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.PageMemory;

/**
 * What a device knows of its end of a connection ({@code ncclConnInfo} in NCCL): where the slots are and where the
 * counters are. The step counter itself is the device's own.
 *
 * @param buffers the buffers, one behind the other as {@code layout} says; what lies behind them is not looked at
 * @param shared  where the slots of protocol Simple are if the connection has none of its own (mode OFFSET); null if it
 *                has
 * @param direct  how the sending device points to the user's memory, where no proxy lies between; null where it does
 *                not
 * @param unpack  how the device gathers what it receives; null if it arrives in slots
 */
public record ConnectionInfo(ConnectionLayout layout, MemorySegment buffers, SendMem sendMem, RecvMem recvMem,
        long firstStep, @Nullable SharedSlots shared, @Nullable DirectMemory direct,
        UnpackHandle.@Nullable UnpackMemory unpack) {

    /** Slots that several connections share. Where in them a step's slot is, its {@code connFifo} says. */
    public record SharedSlots(MemorySegment memory, long slotBytes) {
    }

    /**
     * Takes memory for a connection, laid out as NCCL lays it out.
     *
     * <p>
     * The segments belong to the global scope, so that a proxy's accesses check no arena and no close can stop it in
     * mid-pass. The memory itself is the arena's, which may be closed only after the thread that polls it has
     * acknowledged that it stopped.
     *
     * @return a connection with all counters at {@code firstStep} and no sizes
     */
    public static ConnectionInfo allocate(Arena arena, ConnectionLayout layout, long firstStep) {
        return at(unscoped(PageMemory.allocate(layout.totalBytes(), arena)), layout, firstStep);
    }

    /**
     * {@return memory that is polled, of the global scope: no access checks an arena, and no close can stop one in its
     * middle. Whose it is frees it when those who poll it have stopped}
     */
    @SuppressWarnings("restricted") // reinterprets an allocation, within its bounds
    public static MemorySegment unscoped(MemorySegment owned) {
        return MemorySegment.ofAddress(owned.address()).reinterpret(owned.byteSize());
    }

    /**
     * A connection in memory that is there already, which two sides may share. Its counters are set, so only one side
     * may call this before the other looks.
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

    /** Zeros are right for the step before step 0: lines must not carry the flag of a step that is still to come. */
    private void flagAllLines(long step) {
        long half = LLLine.half(0, LLLine.flag(step));
        for (long at = 0; at < layout.llBytes(); at += LLLine.BYTES) {
            LLLine.storeOpaque(buffers, at, half, half);
        }
        LL128Line.flagsRelease(buffers, layout.bufferOffset(Protocol.LL128),
                (int) (layout.ll128Bytes() / LL128Line.BYTES), LL128Line.flag(step));
    }

    /**
     * The same connection with slots of protocol Simple that others share. Before anybody looks: modes are set.
     *
     * @param sends whether this is the sending end, where a device may use a slot only when head has granted it: head
     *              begins as if all slots were taken
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

    /** {@return the same connection, whose sending device may point to the user's memory} */
    public ConnectionInfo withDirect(DirectMemory memory) {
        return new ConnectionInfo(layout, buffers, sendMem, recvMem, firstStep, shared, memory, unpack);
    }

    /** {@return the same connection, whose receiving device gathers slices of protocol Simple} */
    public ConnectionInfo withUnpack(UnpackHandle.UnpackMemory memory) {
        return new ConnectionInfo(layout, buffers, sendMem, recvMem, firstStep, shared, direct, memory);
    }

    /** {@return the size of a slot in bytes} */
    public long slotBytes(Protocol protocol) {
        return protocol == Protocol.SIMPLE && shared != null ? shared.slotBytes : layout.slotBytes(protocol);
    }

    /** {@return a connection in memory that another side has set up ({@link #at}), to which nothing is written} */
    public static ConnectionInfo over(MemorySegment memory, ConnectionLayout layout, long firstStep) {
        return new ConnectionInfo(layout, memory, layout.sendMem(memory), layout.recvMem(memory), firstStep, null, null,
                null);
    }

    /** {@return one protocol's slots, as many as there are steps} */
    public MemorySegment buffer(Protocol protocol) {
        return buffers.asSlice(layout.bufferOffset(protocol), layout.bufferBytes(protocol));
    }
}
