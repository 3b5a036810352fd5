package org.millrace.net.check;

import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.MillraceException;
import org.millrace.config.Settings;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;

/**
 * The check of one connection's payloads: where its frames carry their checksums, and the reaction to a changed
 * payload. The checksum of a frame is the high half of one word of its header, which the layer above the network
 * otherwise leaves 0.
 */
public abstract class FrameCheck {

    private static final Logger LOG = LogManager.getLogger(FrameCheck.class);
    private static final long LOW_HALF = 0xFFFF_FFFFL;

    private final PayloadCheck action;
    private final int word;
    private final int frames;
    /**
     * Checksums of the payloads that were reported because they arrived changed. An element contains the checksum from
     * the header (high half) and the checksum of the arrived payload (low half). An element is freed when the payload's
     * slot is checked again. A free element is 0.
     */
    private final long[] arrivedChanged;
    private int nextArrival;
    private boolean missingReported;

    /**
     * Creates the check of a connection.
     *
     * @param action reaction to a changed payload; {@code OFF} disables the check
     * @param word   index of the header's word; the sum is in the word's high half
     * @param frames maximum number of the connection's frames in flight in one direction
     */
    protected FrameCheck(PayloadCheck action, int word, int frames) {
        this.action = action;
        this.word = word;
        this.frames = frames;
        arrivedChanged = new long[frames];
    }

    /** {@return the given sender, or a sender that also checks payloads} */
    public final FrameSender of(FrameSender sender) {
        return action == PayloadCheck.OFF ? sender : new CheckedSender(sender, this);
    }

    /** {@return the given receiver, or a receiver that also checks payloads} */
    public final FrameReceiver of(FrameReceiver receiver) {
        return action == PayloadCheck.OFF ? receiver : new CheckedReceiver(receiver, this);
    }

    /**
     * Returns whether the payload of a frame is checked.
     *
     * @param header header of a frame with a payload
     */
    protected boolean covers(FrameHeader header) {
        return true;
    }

    /**
     * Returns whether the sender may read the payloads in flight after the connection is lost. The sender must not read
     * them if the user or libnccl can free the payloads' memory at the same time.
     */
    protected boolean keepsPayloads() {
        return true;
    }

    /**
     * {@return text for messages that identifies a frame: connection, operation, peer, channel, step and slot where
     * they exist}
     */
    protected abstract String describe(FrameHeader header);

    /** {@return the sum in a frame's header; {@link PayloadSum#NONE} if the sender computes no sums} */
    public final int sum(FrameHeader header) {
        return (int) (header.word(word) >>> Integer.SIZE);
    }

    final void store(FrameHeader header, int sum) {
        header.word(word, header.word(word) & LOW_HALF | (long) sum << Integer.SIZE);
    }

    final int frames() {
        return frames;
    }

    /**
     * Reports that a payload changed in the receiver's slot. Reports nothing if the payload already had this sum on
     * arrival, because that change was reported then.
     *
     * @param found sum of the payload now
     * @param what  description of the change and of its likely causes
     * @throws MillraceException if a changed payload fails the connection
     */
    public final void changedLater(FrameHeader header, int found, String what) {
        long sums = sums(header, found);
        for (int i = 0; i < arrivedChanged.length; i++) {
            if (arrivedChanged[i] == sums) {
                arrivedChanged[i] = 0;
                return;
            }
        }
        changed(header, found, what);
    }

    /** Reports a payload that arrived changed. See {@link #changedLater}. */
    final void changedOnArrival(FrameHeader header, int found, String what) {
        arrivedChanged[nextArrival] = sums(header, found);
        nextArrival = (nextArrival + 1) % arrivedChanged.length;
        changed(header, found, what);
    }

    private long sums(FrameHeader header, int found) {
        return (long) sum(header) << Integer.SIZE | found & LOW_HALF;
    }

    final void changed(FrameHeader header, int found, String what) {
        report("%s: %s (%s: %d bytes had the checksum %08x and have %08x)".formatted(describe(header), what,
                Settings.CHECK.name(), header.payloadBytes(), sum(header), found));
    }

    /** Reports, once, that frames with a payload have no checksum. */
    final void missing(FrameHeader header) {
        if (!missingReported) {
            missingReported = true;
            report(describe(header)
                    + ": the frame has no checksum, because the sender's process does not check payloads:" + " set "
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
