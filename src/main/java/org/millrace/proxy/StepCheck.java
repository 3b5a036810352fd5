package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.check.CheckedReceiver;
import org.millrace.net.check.CheckedSender;
import org.millrace.net.check.FrameCheck;

/** The check of the payloads of steps between two proxies. */
public final class StepCheck extends FrameCheck {

    /** Object with the connection's name as text. */
    private final Object name;
    private final boolean announced;

    private StepCheck(PayloadCheck action, Object name, boolean announced) {
        super(action, StepHeader.PROTOCOL, ConnectionLayout.SLOTS);
        this.name = name;
        this.announced = announced;
    }

    /**
     * {@return the sender for a {@link SendProxy}: the given sender, or a sender that also checks payloads}
     *
     * @param name      object with the connection's name as text, which only messages use
     * @param announced true if the operations are announced; headers then contain the operations
     */
    public static FrameSender of(PayloadCheck action, Object name, boolean announced, FrameSender sender) {
        return action == PayloadCheck.OFF ? sender : new CheckedSender(sender, new StepCheck(action, name, announced));
    }

    /**
     * {@return the receiver for a {@link ReceiveProxy}: the given receiver, or a receiver that also checks payloads}
     *
     * @param name      object with the connection's name as text, which only messages use
     * @param announced true if the operations are announced; headers then contain the operations
     */
    public static FrameReceiver of(PayloadCheck action, Object name, boolean announced, FrameReceiver receiver) {
        return action == PayloadCheck.OFF ? receiver
                : new CheckedReceiver(receiver, new StepCheck(action, name, announced));
    }

    /**
     * Returns false for announced operations. They may use the user's memory, which the user may free after a failure.
     */
    @Override
    protected boolean keepsPayloads() {
        return !announced;
    }

    @Override
    protected String describe(FrameHeader header) {
        long step = StepHeader.step(header);
        long protocol = StepHeader.protocol(header);
        return name + ", step " + step + " (slot " + ConnectionLayout.slot(step) + ", "
                + (protocol <= Protocol.SIMPLE.id() ? Protocol.of((int) protocol) : "protocol " + protocol)
                + (announced ? ", " + StepHeader.describeOperation(header) : "") + ")";
    }
}
