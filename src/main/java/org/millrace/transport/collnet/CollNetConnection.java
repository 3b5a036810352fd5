package org.millrace.transport.collnet;

import java.lang.foreign.Arena;
import java.util.List;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.collnet.CollectiveNetwork;
import org.millrace.net.MemoryRegion;
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
     * @param channel    which of a rank's
     * @param collective what reduces; closed with this
     * @param layout     the same on all ranks
     * @param listener   learns that a proxy stopped
     */
    public CollNetConnection(int rank, int channel, CollectiveNetwork collective, ConnectionLayout layout,
            long firstStep, StopListener listener) {
        this.collective = collective;
        send = ConnectionInfo.allocate(arena, layout, firstStep);
        receive = ConnectionInfo.allocate(arena, layout, firstStep);
        RequestFifo requests = new RequestFifo();
        regions = List.of(collective.register(send.buffer(Protocol.SIMPLE)),
                collective.register(receive.buffer(Protocol.SIMPLE)));
        sendProxy = new CollNetSendProxy(rank, name(rank, channel, "->"), send, receive, regions.getFirst(),
                regions.getLast(), collective, requests, listener);
        receiveProxy = new CollNetReceiveProxy(name(rank, channel, "<-"), receive, collective, requests, listener);
    }

    /** A direction's name: of the device's ends, too. */
    public static ConnectionName name(int rank, int channel, String arrow) {
        String self = "rank " + rank;
        return new ConnectionName(self, "the collective network",
                self + " " + arrow + " collective network, channel " + channel);
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

    /** {@return whether an operation can go this way} */
    public boolean reduceSupport(DataType type, ReduceOp op) {
        return collective.reduceSupport(type, op);
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

        private final int[] requests = new int[ConnectionLayout.SLOTS];
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

    /**
     * One channel's part of an operation that goes through the network, as an engine enqueues it; each of its steps is
     * a request, for a window of the operation's buffer: of what all ranks' parts are one behind the other, where each
     * has one. Offsets and lengths are bytes.
     *
     * @param first        where the channel's part begins
     * @param bytes        its length
     * @param windowBytes  of each step but the last, whole elements
     * @param bytesPerRank length of each rank's part; 0 of an all-reduce
     */
    public record CollNetOp(Operation operation, DataType type, ReduceOp.BuiltIn op, long steps, long first, long bytes,
            long windowBytes, long bytesPerRank) {

        long windowOffset(long step) {
            return first + step * windowBytes;
        }

        long windowBytes(long step) {
            return Math.min(windowBytes, bytes - step * windowBytes);
        }

        /** How much of a step's window is a rank's own. */
        long ownBytes(long step, int rank) {
            long begin = Math.max(windowOffset(step), rank * bytesPerRank);
            long end = Math.min(windowOffset(step) + windowBytes(step), (rank + 1) * bytesPerRank);
            return Math.max(0, end - begin);
        }
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
            while (!requests.isEmpty() && network.test(requests.oldest()) != CollectiveNetwork.PENDING) {
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
