package org.millrace.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.KernelChannel;
import org.millrace.abi.LL128Line;
import org.millrace.abi.Protocol;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;
import org.millrace.engine.NetTransport.Unpacking;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.connection.TracedPending;
import org.millrace.proxy.AbstractProxy;
import org.millrace.proxy.BouncePages;
import org.millrace.proxy.OperationQueue;
import org.millrace.proxy.ReceiveProxy;
import org.millrace.proxy.SendProxy;
import org.millrace.proxy.SliceLists;
import org.millrace.proxy.SlotPool;
import org.millrace.proxy.StepCheck;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.ConnectionTrace;
import org.millrace.transport.EndRequest;
import org.millrace.transport.EndSettings;
import org.millrace.transport.TransportEnd;

/**
 * One end of a connection, with a proxy that moves the connection's data over a network.
 *
 * @param <F> type of the network's object for this end, a sender or a receiver; the proxy closes the object when the
 *            proxy stops
 */
abstract class NetworkEnd<F extends AutoCloseable> implements TransportEnd {

    /**
     * Size of the buffer of protocol Simple in bytes, if slots are shared. The buffer then holds no data. Its size only
     * keeps the memory after the buffer aligned.
     */
    private static final long NO_SLOTS = 4096;

    final EndRequest request;
    final Network network;
    private final SlotPools pools;
    /** Settings for devices that gather received data; null if received data arrives in slots. */
    final @Nullable Unpacking unpacking;
    final OperationQueue operations = new OperationQueue();
    /** Owner of the connection's memory, after {@link #proxySetup}. */
    @Nullable
    Arena arena;
    private @Nullable ConnectionInfo info;
    /** Membership in a slot pool; null if the connection has its own slots. */
    private SlotPools.@Nullable PoolMember shared;
    @Nullable
    MemoryRegion region;
    private @Nullable Pending<F> pending;
    private @Nullable F end;
    private @Nullable AbstractProxy proxy;
    private @Nullable ConnectionTrace trace;

    NetworkEnd(EndRequest request, Network network, SlotPools pools, @Nullable Unpacking unpacking) {
        this.unpacking = unpacking;
        this.request = request;
        this.network = network;
        this.pools = pools;
    }

    @Override
    public void proxySetup() {
        arena = Arena.ofShared();
        EndSettings settings = request.settings();
        if (settings.sharedSlots() == null || request.index() != KernelChannel.POINT_TO_POINT) {
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
            pending = new TracedPending<>(begin(peer), request.settings().communicator(), request.here().rank());
        }
        end = pending.poll();
        if (end == null) {
            return false;
        }
        proxy = proxy(end);
        proxy.abortedBy(request.settings().abort());
        trace = request.trace(request.sends() ? Direction.SEND : Direction.RECEIVE, network.name());
        proxy.tracedBy(trace);
        return true;
    }

    abstract Pending<F> begin(byte[] peer);

    abstract AbstractProxy proxy(F end);

    /** Closes the network's sender or receiver. The proxy may already have closed it. */
    abstract void close(F end);

    @Override
    public boolean connect(byte[] peer) {
        return true;
    }

    /** Returns the proxy's share of a slot pool; null if the connection has its own slots. */
    final SlotPool.@Nullable Share share() {
        return shared == null ? null : shared.share();
    }

    @Override
    public String way() {
        return unpacking == null ? network.name() : network.name() + " unpacked";
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
        if (trace != null) {
            // If an agent served the proxy, the agent has closed this trace already. Otherwise the trace is still open.
            trace.close();
        }
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
        // Frees nothing, because proxyFree() releases all resources.
    }

    /** Sending end. It connects to the peer when it has received the peer's address. */
    static final class Sender extends NetworkEnd<FrameSender> {

        private final GroupedConnections groups;
        private final ConnectionKey key;

        Sender(EndRequest request, Network network, SlotPools pools, GroupedConnections groups,
                @Nullable Unpacking unpacking, ConnectionKey key) {
            super(request, network, pools, unpacking);
            this.groups = groups;
            this.key = key;
        }

        @Override
        public byte[] setup() {
            return new byte[0];
        }

        @Override
        Pending<FrameSender> begin(byte[] peer) {
            return GroupedConnections.has(request) ? groups.send(request, peer, operations)
                    : network.connect(peer, key);
        }

        @Override
        void close(FrameSender sender) {
            sender.close();
        }

        @Override
        AbstractProxy proxy(FrameSender sender) {
            return SendProxy.sharing(share(), request.name(), info(), region, operations,
                    StepCheck.of(request.settings().check(), request.name(), true).of(sender),
                    request.settings().listener());
        }
    }

    /** Receiving end. It listens and sends its address to the peer. */
    static final class Receiver extends NetworkEnd<FrameReceiver> {

        private final Listener listener;
        private final GroupedConnections groups;
        private final ConnectionKey key;
        private @Nullable Pending<FrameReceiver> expected;
        /** Memory for received lines of LL and LL128, as large as the buffers of both protocols together. */
        private @Nullable MemoryRegion staging;
        private @Nullable GatherMemory gather;

        Receiver(EndRequest request, Network network, SlotPools pools, GroupedConnections groups, Listener listener,
                @Nullable Unpacking unpacking, ConnectionKey key) {
            super(request, network, pools, unpacking);
            this.listener = listener;
            this.groups = groups;
            this.key = key;
        }

        @Override
        public byte[] setup() {
            expected = GroupedConnections.has(request) ? groups.receive(request) : listener.expect(key);
            return listener.address();
        }

        @Override
        public void proxySetup() {
            super.proxySetup();
            staging = network.register(arena.allocate(info().layout().bufferOffset(Protocol.SIMPLE), LL128Line.BYTES));
            if (unpacking != null) {
                gather = new GatherMemory(arena, network, super.info().slotBytes(Protocol.SIMPLE),
                        unpacking.threshold());
            }
        }

        @Override
        public ConnectionInfo info() {
            return gather == null ? super.info() : super.info().withUnpack(gather.device());
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
            if (gather != null) {
                gather.close();
            }
            super.proxyFree();
        }

        @Override
        void close(FrameReceiver receiver) {
            receiver.close();
        }

        @Override
        AbstractProxy proxy(FrameReceiver receiver) {
            return ReceiveProxy.sharing(gather == null ? null : gather.slices(), share(), request.name(), info(),
                    region, staging, operations,
                    StepCheck.of(request.settings().check(), request.name(), true).of(receiver),
                    request.settings().listener());
        }
    }

    /** Memory of a receiving connection, for a device that gathers received data: bounce buffer, lists and handle. */
    static final class GatherMemory implements AutoCloseable {

        private static final long LINE = 128;

        private final MemorySegment meta;
        private final MemorySegment handle;
        private final MemoryRegion bounce;
        private final long slotBytes;
        private final long threshold;

        GatherMemory(Arena arena, Network network, long slotBytes, long threshold) {
            this.slotBytes = slotBytes;
            this.threshold = threshold;
            meta = ConnectionInfo.unscoped(arena.allocate(UnpackMeta.BYTES, LINE));
            handle = ConnectionInfo.unscoped(arena.allocate(UnpackHandle.BYTES, LINE));
            bounce = network.register(ConnectionInfo.unscoped(arena
                    .allocate((long) BouncePages.needed(slotBytes) * BouncePages.PAGE_BYTES, BouncePages.PAGE_BYTES)));
            UnpackHandle.of(handle).set(meta.address(), bounce.segment().address(), UnpackHandle.BEFORE_FIRST);
        }

        UnpackHandle.UnpackMemory device() {
            return new UnpackHandle.UnpackMemory(meta, handle, bounce.segment(), threshold);
        }

        SliceLists.GatheredSlices slices() {
            int[] offsets = new int[BouncePages.needed(slotBytes)];
            for (int page = 0; page < offsets.length; page++) {
                offsets[page] = page * BouncePages.PAGE_BYTES;
            }
            return new SliceLists.GatheredSlices(new BouncePages(bounce, offsets, slotBytes),
                    new SliceLists(meta, handle, bounce.segment().byteSize(), UnpackHandle.BEFORE_FIRST + 1),
                    threshold);
        }

        /** Releases the bounce buffer. May be called twice. */
        @Override
        public void close() {
            bounce.close();
        }
    }
}
