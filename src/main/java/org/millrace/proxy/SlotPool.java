package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo.SharedSlots;
import org.millrace.abi.ConnectionLayout;
import org.millrace.net.MemoryRegion;

/**
 * The slots that all connections of one channel and direction share, so that a rank with many peers does not need eight
 * slots for each ({@code NCCL_NET_SHARED_BUFFERS}). Which slot a step gets is said in {@code connFifo} (mode OFFSET).
 *
 * <p>
 * Every connection that may come can always have one slot. It gets more, up to a depth of {@link #SHARED_STEPS} divided
 * by the connections that hold slots just now (NCCL: {@code min(NCCL_STEPS, NCCL_SHARED_STEPS / nsubs)}), as long as
 * one is left for each connection that has none. So no connection can keep another from going on, whatever the order in
 * which the device runs their operations. (NCCL has 16 slots for at most 8 connections at a time; here all connections
 * may be under way, in any order.)
 *
 * <p>
 * Used by one proxy thread alone: all connections of a pool are served by one agent.
 */
public final class SlotPool {

    /** Slots of a channel, as in NCCL ({@code NCCL_SHARED_STEPS}). */
    public static final int SHARED_STEPS = 16;

    static final int NONE = -1;

    private final MemoryRegion memory;
    private final int slotBytes;
    private final int connections;
    private final int[] free;
    private final @Nullable Share[] owner;
    private int freeCount;
    /** Connections that hold no slot, those that are not there yet among them. */
    private int withoutSlot;
    private int attached;

    /**
     * A pool with all slots free.
     *
     * @param memory {@code slots(connections) * slotBytes} bytes
     * @throws IllegalArgumentException if the memory is of another size
     */
    public SlotPool(MemoryRegion memory, int slotBytes, int connections) {
        int slots = slots(connections);
        if (memory.segment().byteSize() != (long) slots * slotBytes) {
            throw new IllegalArgumentException(slots + " slots of " + slotBytes + " bytes for " + connections
                    + " connections do not make the " + memory.segment().byteSize() + " bytes of the memory");
        }
        this.memory = memory;
        this.slotBytes = slotBytes;
        this.connections = connections;
        this.free = new int[slots];
        this.owner = new Share[slots];
        for (int slot = 0; slot < slots; slot++) {
            free[slot] = slots - 1 - slot; // handed out from the end: slot 0 first
        }
        this.freeCount = slots;
        this.withoutSlot = connections;
    }

    /**
     * {@return how many slots a pool has: {@link #SHARED_STEPS} for those under way, two of which may have
     * {@link ConnectionLayout#SLOTS} each, and one for each other}
     *
     * @param connections how many share it at the most
     */
    public static int slots(int connections) {
        return Math.max(SHARED_STEPS, connections - 2 + SHARED_STEPS);
    }

    /**
     * A connection joins.
     *
     * @throws IllegalStateException if there are as many connections as the pool was made for
     */
    public Share attach() {
        if (attached == connections) {
            throw new IllegalStateException(
                    "the pool was made for " + attached + " connections, and they are all there");
        }
        attached++;
        return new Share();
    }

    /** {@return the most slots of a connection while so many hold some} */
    private static int depth(int holders) {
        return Math.clamp(SHARED_STEPS / holders, 1, ConnectionLayout.SLOTS);
    }

    /** {@return where a device finds the slots, for {@link org.millrace.abi.ConnectionInfo#withShared}} */
    public SharedSlots slots() {
        return new SharedSlots(memory.segment(), slotBytes);
    }

    MemoryRegion memory() {
        return memory;
    }

    /** {@return how many slots nobody holds: all of them when nothing is under way} */
    public int freeSlots() {
        return freeCount;
    }

    /** One connection's slots. */
    public final class Share {

        private int held;

        private Share() {}

        SlotPool pool() {
            return SlotPool.this;
        }

        /** A slot's offset in the pool, or {@link #NONE} if the connection has to wait. */
        int take() {
            if (held > 0 && (held >= depth(connections - withoutSlot) || freeCount <= withoutSlot)) {
                return NONE;
            }
            if (held++ == 0) {
                withoutSlot--;
            }
            int slot = free[--freeCount];
            owner[slot] = this;
            return slot * slotBytes;
        }

        /** Gives a slot back that nobody will touch any more. */
        void give(int offset) {
            int slot = offset / slotBytes;
            if (owner[slot] != this) {
                throw new IllegalStateException(
                        "slot " + slot + " of a shared buffer was given back by a connection that does not hold it");
            }
            owner[slot] = null;
            free[freeCount++] = slot;
            if (--held == 0) {
                withoutSlot++;
            }
        }
    }
}
