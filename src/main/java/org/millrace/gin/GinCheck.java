package org.millrace.gin;

import org.millrace.net.FrameHeader;
import org.millrace.net.check.FrameCheck;

/**
 * The check of the payloads of puts between two ranks. Answers to gets are not checked, because other ranks may write
 * the source of a get during the transfer.
 */
final class GinCheck extends FrameCheck {

    private final String direction;

    /**
     * Creates the check of a connection.
     *
     * @param frames maximum number of frames in flight. A receiver has 1: it accepts a frame only after the previous
     *               frame's payload was checked, because both payloads may be written to the same bytes
     */
    GinCheck(LocalRank rank, String direction, int frames) {
        super(rank.options().check(), GinHeader.CHECKED, frames);
        this.direction = "rank " + rank.rank() + direction;
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
