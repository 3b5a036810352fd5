package org.millrace.transport.collnet;

import java.lang.foreign.Arena;
import java.util.List;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.proxy.AbstractProxy;
import org.millrace.proxy.ConnectionName;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.StopListener;

/**
 * A rank's connection to a network that reduces: slots to send from, slots to receive into, and a proxy for each. Both
 * proxies belong to one agent.
 */
public final class CollNetConnection implements AutoCloseable {

    private final Arena arena = Arena.ofShared();
    private final CollectiveNetwork collective;
    private final ConnectionInfo send;
    private final ConnectionInfo receive;
    private final List<MemoryRegion> regions;
    private final CollNetSendProxy sendProxy;
    private final CollNetReceiveProxy receiveProxy;
    private boolean closed;

    /**
     * @param network    with which the slots are registered
     * @param collective what reduces; closed with this
     * @param layout     the same on all ranks
     * @param listener   learns that a proxy stopped
     */
    public CollNetConnection(int rank, Network network, CollectiveNetwork collective, ConnectionLayout layout,
            long firstStep, StopListener listener) {
        this.collective = collective;
        send = ConnectionInfo.allocate(arena, layout, firstStep);
        receive = ConnectionInfo.allocate(arena, layout, firstStep);
        RequestFifo requests = new RequestFifo();
        regions = List.of(network.register(send.buffer(Protocol.SIMPLE)),
                network.register(receive.buffer(Protocol.SIMPLE)));
        sendProxy = new CollNetSendProxy(name(rank, "->"), send, receive, regions.getFirst(), regions.getLast(),
                collective, requests, listener);
        receiveProxy = new CollNetReceiveProxy(name(rank, "<-"), receive, collective, requests, listener);
    }

    private static ConnectionName name(int rank, String arrow) {
        String self = "rank " + rank;
        return new ConnectionName(self, "the aggregator", self + " " + arrow + " aggregator");
    }

    /** {@return where the device puts its elements} */
    public ConnectionInfo send() {
        return send;
    }

    /** {@return where the device finds results} */
    public ConnectionInfo receive() {
        return receive;
    }

    /** {@return two proxies, for one agent} */
    public List<ProxyConnection> proxies() {
        return List.of(sendProxy, receiveProxy);
    }

    /** {@return the network's end, which says whether an operation can go this way} */
    public CollectiveNetwork network() {
        return collective;
    }

    /** Announces an operation before the device runs it. */
    public void announce(CollNetOp op) {
        sendProxy.announce(op);
    }

    /** Frees the slots and ends the rank's part, after the proxies have stopped. May be called twice. */
    @Override
    public synchronized void close() {
        if (!closed) {
            closed = true;
            collective.close();
            regions.forEach(MemoryRegion::close);
            arena.close();
        }
    }

    /**
     * What the send proxy has begun and the receive proxy waits for, oldest first (NCCL's {@code reqFifo}). Both run on
     * one agent's thread.
     */
    static final class RequestFifo {

        private final int[] requests = new int[CollectiveNetwork.REQUESTS];
        private long added;
        private long done;

        boolean isFull() {
            return added - done == requests.length;
        }

        boolean isEmpty() {
            return added == done;
        }

        void add(int request) {
            requests[(int) (added++ % requests.length)] = request;
        }

        int oldest() {
            return requests[(int) (done % requests.length)];
        }

        void removeOldest() {
            done++;
        }

        /** How many are done since the beginning: the slots of as many steps are the device's again. */
        long done() {
            return done;
        }
    }

    /** One all-reduce that goes through the network, as an engine enqueues it; each of its steps is a request. */
    public record CollNetOp(DataType type, ReduceOp.BuiltIn op, long steps) {
    }

    /** Asks for the oldest request, and tells the device of results that are there. */
    private static final class CollNetReceiveProxy extends AbstractProxy {

        private final ConnectionInfo receive;
        private final CollectiveNetwork network;
        private final RequestFifo requests;

        CollNetReceiveProxy(ConnectionName name, ConnectionInfo receive, CollectiveNetwork network,
                RequestFifo requests, StopListener listener) {
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
}
