package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo.SharedSlots;
import org.millrace.abi.ConnectionLayout;
import org.millrace.net.MemoryRegion;

/**
 * The slots that all connections of one channel and one direction share ({@code NCCL_NET_SHARED_BUFFERS}). A rank with
 * many peers then does not need eight slots for each peer. The {@code connFifo} entry of a step contains the offset of
 * the step's slot (mode OFFSET).
 *
 * <p>
 * Each connection that may attach can always have one slot. A connection can have more slots, up to
 * {@link #SHARED_STEPS} divided by the number of connections that currently hold slots (NCCL: {@code min(NCCL_STEPS,
 * NCCL_SHARED_STEPS / nsubs)}). One free slot must remain for each connection without a slot. No connection can
 * therefore block another, regardless of the device's order of operations. NCCL has 16 slots for at most 8 connections
 * at a time. With the pool of Millrace, all connections may be active at the same time, in any order.
 *
 * <p>
 * Used by one thread: one agent must serve all connections of a pool.
 */
public final class SlotPool {

    /** Minimum number of slots of a pool, as in NCCL ({@code NCCL_SHARED_STEPS}). */
    public static final int SHARED_STEPS = 16;

    static final int NONE = -1;

    private final MemoryRegion memory;
    private final int slotBytes;
    private final int connections;
    private final int[] free;
    private final @Nullable Share[] owner;
    private int freeCount;
    /** Number of connections without a slot, including the connections that may still attach. */
    private int withoutSlot;
    private int attached;

    /**
     * Creates a pool. All its slots are free.
     *
     * @param memory      memory of {@code slots(connections) * slotBytes} bytes
     * @param connections maximum number of connections that share the pool
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
            // Slots are taken from the end of this array, so slot 0 is taken first.
            free[slot] = slots - 1 - slot;
        }
        this.freeCount = slots;
        this.withoutSlot = connections;
    }

    /**
     * {@return the number of slots of a pool} There are {@link #SHARED_STEPS} slots for two connections, which may have
     * {@link ConnectionLayout#SLOTS} slots each. There is one slot more for each further connection.
     *
     * @param connections maximum number of connections that share the pool
     */
    public static int slots(int connections) {
        return Math.max(SHARED_STEPS, connections - 2 + SHARED_STEPS);
    }

    /**
     * Attaches a connection.
     *
     * @throws IllegalStateException if the maximum number of connections is already attached
     */
    public Share attach() {
        if (attached == connections) {
            throw new IllegalStateException("the pool was made for " + attached + " connections, and all are attached");
        }
        attached++;
        return new Share();
    }

    /** {@return the maximum number of slots of one connection if {@code holders} connections hold slots} */
    private static int depth(int holders) {
        return Math.clamp(SHARED_STEPS / holders, 1, ConnectionLayout.SLOTS);
    }

    /**
     * {@return the location of the slots, in the form that a device needs; see
     * {@link org.millrace.abi.ConnectionInfo#withShared}}
     */
    public SharedSlots slots() {
        return new SharedSlots(memory.segment(), slotBytes);
    }

    MemoryRegion memory() {
        return memory;
    }

    /** {@return the number of free slots; all slots are free if nothing is in flight} */
    public int freeSlots() {
        return freeCount;
    }

    /** The share of one connection: the slots that it holds. */
    public final class Share {

        private int held;

        private Share() {}

        SlotPool pool() {
            return SlotPool.this;
        }

        /** Takes a slot. Returns its offset in the pool, or {@link #NONE} if the connection must wait. */
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

        /** Returns a slot to the pool. No thread or device may access the slot afterwards. */
        void give(int offset) {
            int slot = offset / slotBytes;
            if (owner[slot] != this) {
                throw new IllegalStateException(
                        "slot " + slot + " of a shared buffer was released by a connection that does not hold it");
            }
            owner[slot] = null;
            free[freeCount++] = slot;
            if (--held == 0) {
                withoutSlot++;
            }
        }
    }
}
