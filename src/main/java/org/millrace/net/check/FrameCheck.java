package org.millrace.net.check;

import java.util.function.Function;
import java.util.function.Predicate;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.MillraceException;
import org.millrace.config.Settings;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;

/**
 * The check of one connection's payloads: the place of the checksums in the connection's frames, and the reaction to a
 * changed payload. The checksum of a frame is the high half of one word of its header. The layer above the network
 * leaves this half 0.
 */
public final class FrameCheck {

    private static final Logger LOG = LogManager.getLogger(FrameCheck.class);
    private static final long LOW_HALF = 0xFFFF_FFFFL;

    private final PayloadCheck action;
    private final int word;
    private final int frames;
    private final boolean keepsPayloads;
    private final Predicate<FrameHeader> covered;
    private final Function<FrameHeader, String> description;
    /**
     * Checksums of the payloads that were reported as changed on arrival. An element contains the checksum from the
     * header (high half) and the checksum of the arrived payload (low half). An element is freed when the payload's
     * slot is checked again. A free element is 0.
     */
    private final long[] arrivedChanged;
    private int nextArrival;
    private boolean missingReported;

    /**
     * @param action        reaction to a changed payload; {@code OFF} disables the check
     * @param word          index of the header's word; the sum is in the word's high half
     * @param frames        maximum number of the connection's frames in flight in one direction
     * @param keepsPayloads whether the sender may read the payloads in flight after the connection is lost. The sender
     *                      must not read them if the user or libnccl can free the payloads' memory at the same time
     * @param covered       whether the payload of a frame with this header is checked
     * @param description   function that returns the name of a frame in messages: connection, operation, peer, channel,
     *                      step and slot where they exist
     */
    public FrameCheck(PayloadCheck action, int word, int frames, boolean keepsPayloads, Predicate<FrameHeader> covered,
            Function<FrameHeader, String> description) {
        this.action = action;
        this.word = word;
        this.frames = frames;
        this.keepsPayloads = keepsPayloads;
        this.covered = covered;
        this.description = description;
        arrivedChanged = new long[frames];
    }

    /** {@return a sender that also checks payloads; the given sender if the check is off} */
    public FrameSender of(FrameSender sender) {
        return action == PayloadCheck.OFF ? sender : new CheckedSender(sender, this);
    }

    /** {@return a receiver that also checks payloads; the given receiver if the check is off} */
    public FrameReceiver of(FrameReceiver receiver) {
        return action == PayloadCheck.OFF ? receiver : new CheckedReceiver(receiver, this);
    }

    boolean covers(FrameHeader header) {
        return header.payloadBytes() > 0 && covered.test(header);
    }

    boolean keepsPayloads() {
        return keepsPayloads;
    }

    /** {@return whether a frame has a payload with a sum} */
    public boolean isSummed(FrameHeader header) {
        return header.payloadBytes() > 0 && sum(header) != PayloadSum.NONE;
    }

    /** {@return the sum in a frame's header; {@link PayloadSum#NONE} if the sender computes no sums} */
    private int sum(FrameHeader header) {
        return (int) (header.word(word) >>> Integer.SIZE);
    }

    void store(FrameHeader header, int sum) {
        header.word(word, header.word(word) & LOW_HALF | (long) sum << Integer.SIZE);
    }

    int frames() {
        return frames;
    }

    /**
     * Reports a payload if it has changed. A payload in the receiver's slot may already have had this sum on arrival.
     * In this case, the change was reported on arrival and is not reported again.
     *
     * @param found  sum of the payload now
     * @param inSlot whether the payload is already in the receiver's slot; false on arrival
     * @param what   description of the change and of its likely causes
     * @throws MillraceException if a changed payload fails the connection
     */
    void verify(FrameHeader header, int found, boolean inSlot, String what) {
        if (found == sum(header)) {
            return;
        }
        long sums = (long) sum(header) << Integer.SIZE | found & LOW_HALF;
        for (int i = 0; inSlot && i < arrivedChanged.length; i++) {
            if (arrivedChanged[i] == sums) {
                arrivedChanged[i] = 0;
                return;
            }
        }
        if (!inSlot) {
            arrivedChanged[nextArrival] = sums;
            nextArrival = (nextArrival + 1) % arrivedChanged.length;
        }
        report("%s: %s (%s: %d bytes had the checksum %08x and have %08x)".formatted(description.apply(header), what,
                Settings.CHECK.name(), header.payloadBytes(), sum(header), found));
    }

    /** Reports, once, that frames with a payload have no checksum. */
    void missing(FrameHeader header) {
        if (!missingReported) {
            missingReported = true;
            report(description.apply(header)
                    + ": the frame has no checksum, because the sender's process does not check payloads: set "
                    + Settings.CHECK.name() + " to the same value on all ranks");
        }
    }

    private void report(String message) {
        if (action == PayloadCheck.FAIL) {
            throw new MillraceException(message);
        }
        LOG.error(message);
    }
}
