package org.millrace.plugin.fallback;

import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.FrameEnd;
import org.millrace.net.FrameHeader;
import org.millrace.net.check.FrameCheck;

/** The check of the messages that NCCL's proxy sends. */
final class MessageCheck extends FrameCheck {

    private final FrameEnd end;

    MessageCheck(PayloadCheck action, FrameEnd end) {
        super(action, FallbackConnection.TAG, RequestRing.CAPACITY);
        this.end = end;
    }

    /** Returns false, because after a failure NCCL may free the memory of messages in flight. */
    @Override
    protected boolean keepsPayloads() {
        return false;
    }

    @Override
    protected String describe(FrameHeader header) {
        return end + ", message with tag " + (int) header.word(FallbackConnection.TAG);
    }
}
