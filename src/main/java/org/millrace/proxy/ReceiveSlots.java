package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.RecvMem;
import org.millrace.net.MemoryRegion;

/**
 * The slots of a pool that one connection's frames arrive in (mode OFFSET): taken when a frame comes, said to the
 * device before tail, given back when the device has moved its head past the step.
 */
final class ReceiveSlots {

    private final RecvMem recvMem;
    private final SlotPool.Share share;
    private final int[] offsets = new int[ConnectionLayout.SLOTS];
    private final long[] steps = new long[ConnectionLayout.SLOTS];
    private long taken;
    private long given;
    /** Of a frame that was looked at and perhaps not taken yet. */
    private int reserved = SlotPool.NONE;

    ReceiveSlots(RecvMem recvMem, SlotPool.Share share) {
        this.recvMem = recvMem;
        this.share = share;
    }

    MemoryRegion memory() {
        return share.pool().memory();
    }

    /** A slot for the next frame, the same until it is taken; {@link SlotPool#NONE} if there is none. */
    int reserve() {
        if (reserved == SlotPool.NONE && taken - given < ConnectionLayout.SLOTS) {
            reserved = share.take();
        }
        return reserved;
    }

    /**
     * The frame of a step is being received into the reserved slot. Its {@code connFifo} entry is free: the device has
     * moved head past the step before.
     */
    void taken(long step) {
        int index = ConnectionLayout.slot(taken++);
        offsets[index] = reserved;
        steps[index] = step;
        recvMem.offsetPlain(ConnectionLayout.slot(step), reserved);
        reserved = SlotPool.NONE;
    }

    void consumed(long head) {
        while (taken != given && Steps.reached(head, steps[ConnectionLayout.slot(given)] + 1)) {
            share.give(offsets[ConnectionLayout.slot(given++)]);
        }
    }

    boolean isEmpty() {
        return taken == given;
    }
}
