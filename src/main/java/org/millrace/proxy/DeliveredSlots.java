package org.millrace.proxy;

import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.check.CheckedFrames;
import org.millrace.net.check.FrameCheck;
import org.millrace.proxy.spi.Steps;

/**
 * The received payloads in slots that the device has not freed, oldest first. After the device has freed a slot, and
 * before the slot is used again, the payload is compared with the checksum in its frame's header. Payloads in the
 * user's memory are not checked. The user may change this memory as soon as the operation is complete, and the proxy
 * may notice the completion only after this change. Proxy's thread only.
 */
final class DeliveredSlots {

    private static final String CHANGED =
            "the payload changed in the receiver's slot after it was stored: a thread or a"
                    + " network wrote the slot before the device had freed it";

    private final FrameCheck check;
    private final CheckedFrames slots;

    DeliveredSlots(FrameCheck check) {
        this.check = check;
        slots = new CheckedFrames(check, true, CHANGED, 0);
    }

    /**
     * Adds the frame with the given header, which the step source has admitted. Called before the frame's payload is
     * received. Does nothing if the payload has no checksum, or if its destination is not a slot.
     */
    void add(FrameHeader header, ReceiveStepSource source) {
        MemoryRegion region = check.isSummed(header) ? source.slotRegion() : null;
        if (region != null) {
            slots.add(header, null, region, source.slotOffset());
        }
    }

    /**
     * Checks and removes the payloads in slots that the device has freed: the slots of the steps before {@code head}.
     */
    void consumed(long head) {
        while (!slots.isEmpty() && Steps.reached(head, StepHeader.step(slots.oldest()) + 1)) {
            slots.verifyOldest();
        }
    }
}
