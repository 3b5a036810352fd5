package org.millrace.transport;

import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.SendProxy;

/** The end that connects, once it knows where the other listens. */
final class NetSendEnd extends NetEnd<FrameSender> {

    private final NetGroups groups;
    private final ConnectionKey key;

    NetSendEnd(EndRequest request, Network network, SharedPools pools, NetGroups groups, ConnectionKey key) {
        super(request, network, pools);
        this.groups = groups;
        this.key = key;
    }

    @Override
    public byte[] setup() {
        return new byte[0];
    }

    @Override
    Pending<FrameSender> begin(byte[] peer) {
        return NetGroups.has(request()) ? groups.send(request(), peer, operations()) : network().connect(peer, key);
    }

    @Override
    void close(FrameSender sender) {
        sender.close();
    }

    @Override
    ProxyConnection proxy(FrameSender sender) {
        return SendProxy.sharing(share(), request().name(), info(), region(), operations(), sender,
                request().settings().listener());
    }
}
