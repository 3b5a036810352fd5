package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.check.FrameCheck;
import org.millrace.net.check.PayloadSum;
import org.millrace.net.connection.FrameQueue;
import org.millrace.proxy.spi.Steps;

/**
 * The received payloads in slots that the device has not freed, oldest first. Compares each payload with the checksum
 * in its frame's header when the device has freed the slot, before the slot is used again. Only slots are checked: the
 * user may change the user's memory as soon as the operation is complete, and the proxy may notice the completion only
 * after this change. Proxy's thread only.
 */
final class DeliveredSlots {

    private static final String CHANGED =
            "the payload changed in the receiver's slot after it was stored: a thread or a"
                    + " network wrote the slot before the device had freed it";

    private final FrameCheck check;
    private final PayloadSum sums = new PayloadSum();
    private final FrameQueue slots = new FrameQueue(ConnectionLayout.SLOTS);

    DeliveredSlots(FrameCheck check) {
        this.check = check;
    }

    /**
     * Adds the frame with the given header, which the step source has admitted. Called before the frame's payload is
     * received. Does nothing if the payload has no checksum, or if its destination is not a slot.
     */
    void add(FrameHeader header, ReceiveStepSource source) {
        MemoryRegion region = check.sum(header) != PayloadSum.NONE ? source.slotRegion() : null;
        if (region != null) {
            slots.add(header, region, source.slotOffset());
        }
    }

    /**
     * Checks and removes the payloads in slots that the device has freed: the slots of the steps before {@code head}.
     */
    void consumed(long head) {
        while (!slots.isEmpty() && Steps.reached(head, StepHeader.step(slots.header()) + 1)) {
            FrameHeader header = slots.header();
            @Nullable
            MemoryRegion region = slots.region();
            int found = sums.of(region, slots.offset(), header.payloadBytes());
            slots.removeOldest();
            if (found != check.sum(header)) {
                check.changedLater(header, found, CHANGED);
            }
        }
    }
}
