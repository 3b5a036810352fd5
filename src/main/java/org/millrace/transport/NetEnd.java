package org.millrace.transport;

import java.lang.foreign.Arena;
import java.util.List;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.proxy.OperationQueue;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.ProxyOp;
import org.millrace.proxy.SlotPool;

/**
 * An end whose data a proxy moves over a network.
 *
 * @param <F> the network's end: a sender or a receiver, which the proxy closes when it stops
 */
abstract class NetEnd<F extends AutoCloseable> implements TransportEnd {

    /** Simple's buffer where its slots are shared: nothing lies there, and what follows keeps its alignment. */
    private static final long NO_SLOTS = 4096;

    private final EndRequest request;
    private final Network network;
    private final SharedPools pools;
    private final OperationQueue operations = new OperationQueue();
    private Arena arena;
    private ConnectionInfo info;
    /** Null if the connection has slots of its own. */
    private SharedPools.Member shared;
    private MemoryRegion region;
    private Pending<F> pending;
    private F end;
    private ProxyConnection proxy;

    NetEnd(EndRequest request, Network network, SharedPools pools) {
        this.request = request;
        this.network = network;
        this.pools = pools;
    }

    @Override
    public void proxySetup() {
        arena = Arena.ofShared();
        EndSettings settings = request.settings();
        if (settings.sharedSlots() == null || request.index() != Connections.POINT_TO_POINT) {
            info = ConnectionInfo.allocate(arena, settings.layout(), settings.firstStep());
        } else {
            shared = pools.join(request);
            ConnectionLayout own =
                    new ConnectionLayout(settings.layout().llBytes(), settings.layout().ll128Bytes(), NO_SLOTS);
            info = ConnectionInfo.allocate(arena, own, settings.firstStep())
                    .withShared(shared.slots().slots(), request.sends());
        }
        region = network.register(info.buffers());
    }

    @Override
    public boolean proxyConnect(byte[] peer) {
        if (pending == null) {
            pending = begin(peer);
        }
        end = pending.poll();
        if (end == null) {
            return false;
        }
        proxy = proxy(end);
        return true;
    }

    /** Begins to make the network's end. */
    abstract Pending<F> begin(byte[] peer);

    /** Puts the proxy between the device's memory and the network's end. */
    abstract ProxyConnection proxy(F end);

    /** Closes the network's end, once more if the proxy did so when it stopped. */
    abstract void close(F end);

    @Override
    public boolean connect(byte[] peer) {
        return true;
    }

    final EndRequest request() {
        return request;
    }

    /** Owner of the connection's memory, after {@link #proxySetup}. */
    final Arena arena() {
        return arena;
    }

    final Network network() {
        return network;
    }

    final OperationQueue operations() {
        return operations;
    }

    /** What the proxy takes slots of a pool with; null if the connection has its own. */
    final SlotPool.Share share() {
        return shared == null ? null : shared.share();
    }

    final MemoryRegion region() {
        return region;
    }

    @Override
    public String way() {
        return network.name();
    }

    @Override
    public ConnectionInfo info() {
        return info;
    }

    @Override
    public void announce(ProxyOp op) {
        operations.add(op);
    }

    @Override
    public List<ProxyConnection> proxyProgress() {
        return List.of(proxy);
    }

    @Override
    public void proxyFree() {
        if (pending != null) {
            pending.close();
        }
        if (end != null) {
            close(end);
        }
        if (region != null) {
            region.close();
            region = null;
        }
        if (shared != null) {
            shared.leave();
            shared = null;
        }
        if (arena != null) {
            arena.close();
            arena = null;
        }
    }

    @Override
    public void free() {
        // all of it is the proxy's
    }
}
