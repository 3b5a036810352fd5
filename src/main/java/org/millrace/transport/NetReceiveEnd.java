package org.millrace.transport;

import org.millrace.abi.LL128Line;
import org.millrace.abi.Protocol;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.ReceiveProxy;

/** The end that listens, and says where. */
final class NetReceiveEnd extends NetEnd<FrameReceiver> {

    private final Listener listener;
    private final NetGroups groups;
    private final ConnectionKey key;
    private Pending<FrameReceiver> expected;
    /** Where lines arrive: as long as the buffers of LL and LL128, which lie before that of Simple. */
    private MemoryRegion staging;

    NetReceiveEnd(EndRequest request, Network network, SharedPools pools, NetGroups groups, Listener listener,
            ConnectionKey key) {
        super(request, network, pools);
        this.listener = listener;
        this.groups = groups;
        this.key = key;
    }

    @Override
    public byte[] setup() {
        expected = NetGroups.has(request()) ? groups.receive(request()) : listener.expect(key);
        return listener.address();
    }

    @Override
    public void proxySetup() {
        super.proxySetup();
        staging = network().register(arena().allocate(info().layout().bufferOffset(Protocol.SIMPLE), LL128Line.BYTES));
    }

    @Override
    Pending<FrameReceiver> begin(byte[] peer) {
        return expected;
    }

    @Override
    public void proxyFree() {
        if (expected != null) {
            expected.close();
        }
        if (staging != null) {
            staging.close();
            staging = null;
        }
        super.proxyFree();
    }

    @Override
    void close(FrameReceiver receiver) {
        receiver.close();
    }

    @Override
    ProxyConnection proxy(FrameReceiver receiver) {
        return ReceiveProxy.sharing(share(), request().name(), info(), region(), staging, operations(), receiver,
                request().settings().listener());
    }
}
