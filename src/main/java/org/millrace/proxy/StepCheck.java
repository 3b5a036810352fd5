package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.FrameHeader;
import org.millrace.net.check.FrameCheck;

/** The check of the payloads of steps between two proxies. */
public final class StepCheck {

    private StepCheck() {}

    /**
     * Creates the check of a connection between a {@link SendProxy} and a {@link ReceiveProxy}. Payloads of announced
     * operations are not read after a failure, because the user may then free memory that contains them.
     *
     * @param name      object with the connection's name as its text; only messages create the text
     * @param announced true if the operations are announced; headers then contain the operations
     */
    public static FrameCheck of(PayloadCheck action, Object name, boolean announced) {
        return new FrameCheck(action, StepHeader.PROTOCOL, ConnectionLayout.SLOTS, !announced, _ -> true,
                header -> describe(name, announced, header));
    }

    private static String describe(Object name, boolean announced, FrameHeader header) {
        long step = StepHeader.step(header);
        long protocol = StepHeader.protocol(header);
        return name + ", step " + step + " (slot " + ConnectionLayout.slot(step) + ", "
                + (protocol <= Protocol.SIMPLE.id() ? Protocol.of((int) protocol) : "protocol " + protocol)
                + (announced ? ", " + StepHeader.describeOperation(header) : "") + ")";
    }
}
