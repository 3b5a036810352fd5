package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo.SharedSlots;
import org.millrace.abi.ConnectionLayout;
import org.millrace.net.MemoryRegion;

/**
 * The slots that all connections of one channel and direction share ({@code NCCL_NET_SHARED_BUFFERS}). A rank with many
 * peers then does not need eight slots for each peer. The {@code connFifo} entry of a step contains the offset of its
 * slot (mode OFFSET).
 *
 * <p>
 * Every expected connection can always have one slot. It gets more slots up to a depth of {@link #SHARED_STEPS} divided
 * by the number of connections that currently hold slots (NCCL: {@code min(NCCL_STEPS, NCCL_SHARED_STEPS / nsubs)}).
 * One slot must remain for each connection that has none. No connection can therefore block another, regardless of the
 * device's order of operations. NCCL has 16 slots for at most 8 connections at a time. Here all connections may be
 * active at once, in any order.
 *
 * <p>
 * Used by only one proxy thread: one agent serves all connections of a pool.
 */
public final class SlotPool {

    /** Number of slots of a channel, as in NCCL ({@code NCCL_SHARED_STEPS}). */
    public static final int SHARED_STEPS = 16;

    static final int NONE = -1;

    private final MemoryRegion memory;
    private final int slotBytes;
    private final int connections;
    private final int[] free;
    private final @Nullable Share[] owner;
    private int freeCount;
    /** Number of connections that hold no slot, including connections that are not attached yet. */
    private int withoutSlot;
    private int attached;

    /**
     * Creates a pool with all slots free.
     *
     * @param memory {@code slots(connections) * slotBytes} bytes
     * @throws IllegalArgumentException if the memory has another size
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
     * {@return the number of slots of a pool} There are {@link #SHARED_STEPS} slots for two active connections, which
     * may have {@link ConnectionLayout#SLOTS} each, and one slot for each other connection.
     *
     * @param connections maximum number of connections that share the pool
     */
    public static int slots(int connections) {
        return Math.max(SHARED_STEPS, connections - 2 + SHARED_STEPS);
    }

    /**
     * Attaches a connection.
     *
     * @throws IllegalStateException if the pool already has the number of connections that it was made for
     */
    public Share attach() {
        if (attached == connections) {
            throw new IllegalStateException(
                    "the pool was made for " + attached + " connections, and they are all there");
        }
        attached++;
        return new Share();
    }

    /** {@return the maximum number of slots of a connection while {@code holders} connections hold slots} */
    private static int depth(int holders) {
        return Math.clamp(SHARED_STEPS / holders, 1, ConnectionLayout.SLOTS);
    }

    /** {@return the location of the slots for a device, see {@link org.millrace.abi.ConnectionInfo#withShared}} */
    public SharedSlots slots() {
        return new SharedSlots(memory.segment(), slotBytes);
    }

    MemoryRegion memory() {
        return memory;
    }

    /** {@return the number of free slots: all slots if nothing is in flight} */
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

        /** Returns the offset of a slot in the pool, or {@link #NONE} if the connection must wait. */
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

        /** Returns a slot to the pool. No thread or device may access it afterwards. */
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
