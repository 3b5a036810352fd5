package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.FrameHeader;
import org.millrace.net.check.FrameCheck;

/** The check of the payloads of steps between two proxies. */
public final class StepCheck extends FrameCheck {

    /** Object with the connection's name as its text. Only messages create the text. */
    private final Object name;
    private final boolean announced;

    /**
     * Creates the check of a connection between a {@link SendProxy} and a {@link ReceiveProxy}.
     *
     * @param name      object with the connection's name as its text; only messages create the text
     * @param announced true if the operations are announced; headers then contain the operations
     */
    public StepCheck(PayloadCheck action, Object name, boolean announced) {
        super(action, StepHeader.PROTOCOL, ConnectionLayout.SLOTS);
        this.name = name;
        this.announced = announced;
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
