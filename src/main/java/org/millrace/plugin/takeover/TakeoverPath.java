package org.millrace.plugin.takeover;

import java.util.List;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.plugin.path.DataPath;
import org.millrace.plugin.path.NetEndpoint;
import org.millrace.plugin.path.UnpackDevice;

/**
 * Data path on which Java threads move the data. A connection's device handle tells NCCL that NCCL's proxy need not
 * progress the connection. Millrace's own proxies serve the memory of the connections.
 */
public final class TakeoverPath implements DataPath {

    private static final byte ID = 2;
    private static final byte ID_WITH_DEVICE_SLOTS = 3;

    private final TakeoverService service;
    private final @Nullable UnpackDevice unpack;

    /**
     * @param service threads and memory of the connections, closed with this data path
     * @param unpack  memory that the plugin and unpacking kernels share, closed with this data path; null if kernels do
     *                not unpack
     */
    public TakeoverPath(TakeoverService service, @Nullable UnpackDevice unpack) {
        this.service = service;
        this.unpack = unpack;
    }

    @Override
    public byte id() {
        return service.hasDeviceSlots() ? ID_WITH_DEVICE_SLOTS : ID;
    }

    @Override
    public DataPath.Connection sending(FrameSender sender, Network network, DataPath.Owner owner,
            DataPath.ConnectionNumber number, @Nullable IntFunction<Pending<FrameSender>> more) {
        return new TakeoverSender(sender, network, service, owner, number);
    }

    @Override
    public DataPath.Connection receiving(FrameReceiver receiver, Network network, DataPath.Owner owner,
            DataPath.ConnectionNumber number, List<Pending<FrameReceiver>> more) {
        return new TakeoverReceiver(receiver, network, service, owner, number,
                unpack == null ? null : unpack.connection(network, false));
    }

    @Override
    public boolean takesOver() {
        return true;
    }

    @Override
    public void opened(NetEndpoint endpoint) {
        // Faults that a test has configured must affect the program's frames, and not the warm-up's frames.
        if (endpoint.faults().isEmpty()) {
            service.warmUp(endpoint, this);
        }
    }

    /**
     * {@inheritDoc} A caller that waits for one of the data path's threads also calls this method, to wake the thread.
     */
    @Override
    public void operationComing() {
        service.wake();
    }

    @Override
    public void stop() {
        service.stop();
    }

    @Override
    public void close() {
        if (unpack != null) {
            unpack.close();
        }
        service.close();
    }

    @Override
    public boolean takesDeviceMemory() {
        return service.hasDeviceSlots();
    }

    @Override
    public boolean unpacks() {
        return unpack != null;
    }

    @Override
    public String toString() {
        return "Java takes the proxy over, with " + service + (unpack == null ? "" : "; " + unpack);
    }
}
