package org.millrace.gin;

import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.check.CheckedReceiver;
import org.millrace.net.check.CheckedSender;
import org.millrace.net.check.FrameCheck;

/**
 * The check of the payloads of puts between two ranks. Answers to gets are not checked, because other ranks may write
 * the source of a get meanwhile.
 */
final class GinCheck extends FrameCheck {

    private final String direction;

    private GinCheck(LocalRank rank, String direction, int frames) {
        super(rank.options().check(), GinHeader.CHECKED, frames);
        this.direction = "rank " + rank.rank() + direction;
    }

    /** Returns the given sender, or a sender that also checks payloads. */
    static FrameSender of(LocalRank rank, int peer, FrameSender sender) {
        return rank.options().check() == PayloadCheck.OFF ? sender
                : new CheckedSender(sender, new GinCheck(rank, " -> rank " + peer, rank.options().depth()));
    }

    /**
     * Returns the given receiver, or a receiver that also checks payloads. The checking receiver accepts a frame only
     * after the previous frame's payload was checked, because both payloads may be written to the same bytes.
     */
    static FrameReceiver of(LocalRank rank, int peer, FrameReceiver receiver) {
        return rank.options().check() == PayloadCheck.OFF ? receiver
                : new CheckedReceiver(receiver, new GinCheck(rank, " <- rank " + peer, 1));
    }

    @Override
    protected boolean covers(FrameHeader header) {
        return GinHeader.kind(header) == GinHeader.PUT;
    }

    @Override
    protected String describe(FrameHeader header) {
        return direction + ", " + GinHeader.describe(header);
    }
}
