package org.millrace.plugin.fallback;

import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.FrameEnd;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.check.CheckedReceiver;
import org.millrace.net.check.CheckedSender;
import org.millrace.net.check.FrameCheck;

/** The check of the messages that NCCL's proxy sends. */
final class MessageCheck extends FrameCheck {

    private final FrameEnd end;

    private MessageCheck(PayloadCheck action, FrameEnd end) {
        super(action, FallbackConnection.TAG, RequestRing.CAPACITY);
        this.end = end;
    }

    /** Returns the given sender, or a sender that also checks payloads. */
    static FrameSender of(PayloadCheck action, FrameSender sender) {
        return action == PayloadCheck.OFF ? sender : new CheckedSender(sender, new MessageCheck(action, sender));
    }

    /** Returns the given receiver, or a receiver that also checks payloads. */
    static FrameReceiver of(PayloadCheck action, FrameReceiver receiver) {
        return action == PayloadCheck.OFF ? receiver
                : new CheckedReceiver(receiver, new MessageCheck(action, receiver));
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
