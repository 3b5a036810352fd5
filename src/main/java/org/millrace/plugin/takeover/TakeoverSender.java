package org.millrace.plugin.takeover;

import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.plugin.host.NcclLog;
import org.millrace.plugin.path.DataPath;
import org.millrace.proxy.AbstractProxy;
import org.millrace.proxy.SendProxy;
import org.millrace.proxy.SlotBuffers;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;

/** The sending end of a connection that was taken over. */
final class TakeoverSender extends TakeoverConnection {

    private final FrameSender sender;
    private final DataPath.DrainTimeout timeout;

    TakeoverSender(FrameSender sender, Network network, TakeoverService service, DataPath.Owner owner,
            DataPath.ConnectionNumber number) {
        super(new End(sender, sender.peer(), sender::blame, sender::close), network, service, owner, number);
        this.sender = sender;
        timeout = owner.drainTimeout();
    }

    @Override
    boolean owes(ProxyConnection stopped) {
        return stopped.owesData();
    }

    @Override
    boolean receives() {
        return false;
    }

    /**
     * Returns the remaining part of the time limit that all connections of the communicator share during teardown; 0
     * after one connection has timed out. A sender needs time to close, because a completed kernel may have left data
     * in the slots.
     */
    @Override
    Duration drainTimeout() {
        return timeout.remaining();
    }

    @Override
    void gaveUp(String lastSeen) {
        if (timeout.expire()) {
            NcclLog.warn(
                    sender + ": the peer accepts no data, and what the device posted for it is dropped (" + lastSeen
                            + "), here and on the communicator's other connections. It was aborted, or the peer did not"
                            + " receive all that was sent");
        }
    }

    @Override
    long stagingBytes(ConnectionLayout layout) {
        return 0;
    }

    @Override
    AbstractProxy start(SlotBuffers buffers, MemoryRegion lines, @Nullable Staging device) {
        ConnectionName name = ConnectionName.of(sender.toString());
        FrameSender checked = check().of(sender);
        return SendProxy.byMemory(name, buffers, 0, device == null ? checked : new StagedSender(checked, device),
                this::stopped);
    }
}
