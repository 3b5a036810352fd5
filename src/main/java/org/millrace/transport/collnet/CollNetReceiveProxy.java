package org.millrace.transport.collnet;

import org.millrace.abi.ConnectionInfo;
import org.millrace.proxy.AbstractProxy;
import org.millrace.proxy.ConnectionName;
import org.millrace.proxy.StopListener;
import org.millrace.transport.collnet.CollNetConnection.RequestFifo;

/** Asks for the oldest request, and tells the device of results that are there. */
final class CollNetReceiveProxy extends AbstractProxy {

    private final ConnectionInfo receive;
    private final CollectiveNetwork network;
    private final RequestFifo requests;

    CollNetReceiveProxy(ConnectionName name, ConnectionInfo receive, CollectiveNetwork network, RequestFifo requests,
            StopListener listener) {
        super(name, listener);
        this.receive = receive;
        this.network = network;
        this.requests = requests;
    }

    /** The release of tail pairs with the device's acquire: it sees the result in its slot. */
    @Override
    public int progress() {
        int delivered = 0;
        while (!requests.isEmpty() && network.test(requests.oldest())) {
            requests.removeOldest();
            receive.recvMem().tailRelease(receive.firstStep() + requests.done());
            delivered++;
        }
        return delivered;
    }

    @Override
    public boolean drained() {
        return requests.isEmpty();
    }

    @Override
    public String lastSeen() {
        return "head " + receive.sendMem().headAcquire() + ", tail " + receive.recvMem().tailAcquire();
    }
}
