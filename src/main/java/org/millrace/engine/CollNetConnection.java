package org.millrace.engine;

import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.collnet.CollectiveNetwork;
import org.millrace.collnet.CollectiveNetworkProvider;
import org.millrace.collnet.CollectiveNetworkProvider.Place;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Pending;
import org.millrace.proxy.AbstractProxy;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.ConnectionTrace;
import org.millrace.transport.EndRequest;
import org.millrace.transport.TransportEnd;

/**
 * A rank's connection with a network that reduces, on one channel. It owns the resources that both of the rank's ends
 * share ({@code ncclCollNetSharedRes}): the network, slots for sent data, slots for received data, and a proxy for each
 * direction. The receiving end connects the rank with the network, and the sending end waits until the rank is
 * connected. Both proxies run on one agent, and the agent's thread calls the proxies' methods. Operations are announced
 * on the program's threads, or on the thread that makes connections. All other methods are called on the thread that
 * makes connections.
 */
final class CollNetConnection {

    private final CollectiveNetworkProvider provider;
    private final int number;
    private final Runnable onFreed;
    private final Arena arena = Arena.ofShared();
    private final List<MemoryRegion> regions = new ArrayList<>();
    private @Nullable Place place;
    private @Nullable Pending<CollectiveNetwork> pending;
    private @Nullable CollectiveNetwork collective;
    private @Nullable ConnectionInfo send;
    private @Nullable ConnectionInfo receive;
    private @Nullable CollNetSendProxy sendProxy;
    private @Nullable CollNetReceiveProxy receiveProxy;
    private @Nullable ConnectionTrace sent;
    private @Nullable ConnectionTrace received;
    private int ends;

    /** @param number index of the network among all networks of the communicator */
    CollNetConnection(CollectiveNetworkProvider provider, int number, Runnable onFreed) {
        this.provider = provider;
        this.number = number;
        this.onFreed = onFreed;
    }

    /** Returns a new end of this connection. The first phase of the new end has not begun. */
    TransportEnd end(EndRequest request) {
        ends++;
        return request.sends() ? new SendEnd() : new ReceiveEnd(request);
    }

    private void connect(EndRequest request, byte[] handles) {
        int[] members = request.group().members().stream().mapToInt(each -> each).toArray();
        int rank = Arrays.binarySearch(members, request.here().rank());
        if (pending == null) {
            byte[][] each = new byte[members.length][];
            int length = handles.length / members.length;
            for (int member = 0; member < members.length; member++) {
                each[member] = Arrays.copyOfRange(handles, member * length, (member + 1) * length);
            }
            pending = place.connect(each, rank);
        }
        CollectiveNetwork made = pending.poll();
        if (made == null) {
            return;
        }
        collective = made;
        ConnectionLayout layout = request.settings().layout();
        long firstStep = request.settings().firstStep();
        ProxyConnection.StopListener listener = request.settings().listener();
        send = ConnectionInfo.allocate(arena, layout, firstStep);
        receive = ConnectionInfo.allocate(arena, layout, firstStep);
        RequestFifo requests = new RequestFifo();
        regions.add(made.register(send.buffer(Protocol.SIMPLE)));
        regions.add(made.register(receive.buffer(Protocol.SIMPLE)));
        ConnectionName name = request.name();
        sendProxy = new CollNetSendProxy(rank,
                new ConnectionName(name.self(), name.peer(), name.text().replace("<-", "->")), send, receive,
                regions.getFirst(), regions.getLast(), made, requests, listener);
        receiveProxy = new CollNetReceiveProxy(name, receive, made, requests, listener);
        sendProxy.abortedBy(request.settings().abort());
        receiveProxy.abortedBy(request.settings().abort());
        sent = request.collNetTrace(Direction.SEND);
        received = request.collNetTrace(Direction.RECEIVE);
        sendProxy.tracedBy(sent);
        receiveProxy.tracedBy(received);
    }

    private void freed() {
        if (--ends == 0) {
            onFreed.run();
            if (sent != null) {
                // If an agent served the proxy, the agent has closed this trace already. Otherwise the trace is still
                // open.
                sent.close();
            }
            if (received != null) {
                received.close();
            }
            if (pending != null) {
                pending.close();
            }
            if (collective != null) {
                collective.close();
            }
            regions.forEach(MemoryRegion::close);
            if (place != null) {
                place.close();
            }
            arena.close();
        }
    }

    /** End that sends data to the network. */
    private final class SendEnd extends End {

        @Override
        public byte[] setup() {
            return new byte[0];
        }

        @Override
        public boolean proxyConnect(byte[] nothing) {
            return collective != null;
        }

        @Override
        public ConnectionInfo info() {
            return send;
        }

        @Override
        public void announce(ProxyOp op) {
            if (op.steps() > 0) {
                sendProxy.announce(op);
            }
        }

        @Override
        public List<ProxyConnection> proxyProgress() {
            return List.of(sendProxy);
        }
    }

    /**
     * End that receives results from the network. It connects this rank with the network, also for the rank's
     * {@link SendEnd}.
     */
    private final class ReceiveEnd extends End {

        private final EndRequest request;

        ReceiveEnd(EndRequest request) {
            this.request = request;
        }

        @Override
        public void proxySetup() {
            place = provider.listen(number);
        }

        @Override
        public byte[] setup() {
            return place.handle();
        }

        @Override
        public boolean proxyConnect(byte[] handles) {
            if (collective == null) {
                CollNetConnection.this.connect(request, handles);
            }
            return collective != null;
        }

        @Override
        public ConnectionInfo info() {
            return receive;
        }

        @Override
        public void announce(ProxyOp op) {
            // Announces nothing to the receive proxy. The send proxy requests the result when it submits this rank's
            // contribution.
        }

        @Override
        public List<ProxyConnection> proxyProgress() {
            return List.of(receiveProxy);
        }
    }

    private abstract class End implements TransportEnd {

        private boolean freed;

        @Override
        public boolean connect(byte[] peer) {
            return true;
        }

        @Override
        public void free() {
            if (!freed) {
                freed = true;
                freed();
            }
        }
    }

    /**
     * Queue of requests, oldest first (NCCL's {@code reqFifo}). The send proxy starts the requests, and the receive
     * proxy waits for their completion. Both proxies run on one agent's thread.
     */
    static final class RequestFifo {

        private final int[] requests = new int[ConnectionLayout.SLOTS];
        /** Size of each request's result, in bytes. */
        private final long[] bytes = new long[ConnectionLayout.SLOTS];
        private long added;
        private long done;

        boolean isFull() {
            return added - done == requests.length;
        }

        boolean isEmpty() {
            return added == done;
        }

        void add(int request, long result) {
            bytes[(int) (added % requests.length)] = result;
            requests[(int) (added++ % requests.length)] = request;
        }

        long oldestBytes() {
            return bytes[(int) (done % requests.length)];
        }

        int oldest() {
            return requests[(int) (done % requests.length)];
        }

        void removeOldest() {
            done++;
        }

        /**
         * Returns the number of requests completed since the connection was made. Each request is one step, so the
         * device may reuse the slots of this number of steps.
         */
        long done() {
            return done;
        }
    }

    /** Proxy that polls the oldest request, and informs the device of results that have arrived. */
    private static final class CollNetReceiveProxy extends AbstractProxy {

        private final ConnectionInfo receive;
        private final CollectiveNetwork network;
        private final RequestFifo requests;

        CollNetReceiveProxy(ConnectionName name, ConnectionInfo receive, CollectiveNetwork network,
                RequestFifo requests, ProxyConnection.StopListener listener) {
            super(name, listener);
            this.receive = receive;
            this.network = network;
            this.requests = requests;
        }

        /**
         * Publishes completed results. The release store of {@code tail} pairs with the device's acquire load of
         * {@code tail}, so that the device sees the result in its slot.
         */
        @Override
        protected int pass() {
            int delivered = 0;
            if (trace != null) {
                trace.consumed(receive.sendMem().headAcquire());
            }
            while (!requests.isEmpty() && network.test(requests.oldest()) != CollectiveNetwork.PENDING) {
                long bytes = requests.oldestBytes();
                requests.removeOldest();
                long end = receive.firstStep() + requests.done();
                receive.recvMem().tailRelease(end);
                if (trace != null) {
                    trace.taken(end, bytes, Protocol.SIMPLE.id());
                    trace.done(end);
                }
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
