package org.millrace.proxy;

import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.FrameHeader;
import org.millrace.net.check.FrameCheck;

/** Creates the check of the payloads that two proxies transfer. */
public final class StepCheck {

    private StepCheck() {}

    /**
     * Creates the check of a connection between a {@link SendProxy} and a {@link ReceiveProxy}. Payloads of announced
     * operations are not read after a failure, because the user may then free memory that contains them.
     *
     * @param name      object whose {@code toString} returns the connection's name; called only for messages
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
