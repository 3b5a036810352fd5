package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;

/**
 * Lets a device use the slots of a connection that has none of its own (mode OFFSET). The device waits as ever until
 * {@code head + 8 ≥ step + steps}; here {@code head} is moved ahead, step by step, each time a slot of the pool is
 * there for the step and its place is said:
 *
 * <pre>
 *   this proxy                                     device
 *   connFifo[step % 8].offset = slot of the pool
 *   head = step + 1 - 8 (release)            →     head (acquire)    pairs: the device sees the offset
 * </pre>
 *
 * Steps of LL and LL128, and those whose data is in the user's memory, are granted without a slot.
 */
final class SendCredits {

    private final SendMem sendMem;
    private final RecvMem recvMem;
    private final SlotPool.Share share;
    private final int[] offsets = new int[ConnectionLayout.SLOTS];
    /** First step that the device may not use yet. */
    private long granted;
    /** First step that is not sent. */
    private long released;

    SendCredits(SendMem sendMem, RecvMem recvMem, SlotPool.Share share, long firstStep) {
        this.sendMem = sendMem;
        this.recvMem = recvMem;
        this.share = share;
        this.granted = firstStep;
        this.released = firstStep;
    }

    /** Grants what can be granted of an operation that goes on at a step and ends before another. */
    void grant(ProxyOp op, long step, long last) {
        if (!Steps.reached(granted, step)) {
            skipTo(step);
        }
        boolean needsSlot = op.protocol() == Protocol.SIMPLE && op.user() == null;
        long before = granted;
        while (granted != last && granted - released < ConnectionLayout.SLOTS) {
            int offset = needsSlot ? share.take() : SlotPool.NONE;
            if (needsSlot && offset == SlotPool.NONE) {
                break;
            }
            int slot = ConnectionLayout.slot(granted);
            offsets[slot] = offset;
            recvMem.offsetPlain(slot, offset);
            granted++;
        }
        if (granted != before) {
            sendMem.headRelease(granted - ConnectionLayout.SLOTS);
        }
    }

    /** An operation's first step was rounded up: the steps before it are nobody's. */
    private void skipTo(long step) {
        if (released == granted) {
            released = step;
        }
        while (granted != step) {
            offsets[ConnectionLayout.slot(granted++)] = SlotPool.NONE;
        }
    }

    int offset(long step) {
        return offsets[ConnectionLayout.slot(step)];
    }

    /** A frame was sent. */
    void release(long end) {
        while (released != end) {
            int offset = offsets[ConnectionLayout.slot(released++)];
            if (offset != SlotPool.NONE) {
                share.give(offset);
            }
        }
    }

    SlotPool pool() {
        return share.pool();
    }
}
