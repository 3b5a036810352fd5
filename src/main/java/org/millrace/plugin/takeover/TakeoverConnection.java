package org.millrace.plugin.takeover;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.NetDeviceHandle;
import org.millrace.abi.Protocol;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.PeerClosedException;
import org.millrace.plugin.log.NcclLog;
import org.millrace.plugin.loss.ConnectionFailures;
import org.millrace.plugin.loss.LostEnd;
import org.millrace.plugin.net.DataPath;
import org.millrace.plugin.shim.NativeMemory;
import org.millrace.plugin.unpack.UnpackDevice;
import org.millrace.proxy.ConnectionName;
import org.millrace.proxy.DeviceAbortedException;
import org.millrace.proxy.ProxyAgent;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.ReceiveProxy;
import org.millrace.proxy.SendProxy;
import org.millrace.proxy.unpack.UnpackReceiveSource;

/**
 * A connection whose data Java moves. NCCL registers its three buffers, which is when the proxy starts, and deregisters
 * them, which is when it stops: the memory is freed right after the first deregistration returns.
 */
abstract class TakeoverConnection implements DataPath.Connection {

    /**
     * How long a stop waits for what still moves, however slowly: eight slots are not more than this on any network
     * worth the name.
     */
    private static final Duration DRAIN_LIMIT = Duration.ofSeconds(30);
    private static final Duration ACKNOWLEDGE = Duration.ofSeconds(10);

    private final Network network;
    private final TakeoverPath path;
    private final DataPath.Owner owner;
    private final String peer;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment handle;
    private final ConnectionLocator locator = new ConnectionLocator();
    private @Nullable MemoryRegion region;
    private @Nullable MemoryRegion staging;
    private @Nullable ProxyAgent agent;
    private @Nullable ProxyConnection proxy;
    private volatile @Nullable Throwable failure;

    private TakeoverConnection(Network network, TakeoverPath path, DataPath.Owner owner, String peer) {
        this.owner = owner;
        this.peer = peer;
        this.network = network;
        this.path = path;
        handle = arena.allocate(NetDeviceHandle.BYTES, NetDeviceHandle.ALIGNMENT);
        NetDeviceHandle.of(handle).set(NetDeviceHandle.HOST, 0, 0, 0, false);
    }

    /** Bytes of memory that the proxy needs besides the connection's own; 0 for none. */
    abstract long stagingBytes(ConnectionLayout layout);

    /** Which end this is. */
    abstract boolean receives();

    /** Makes the proxy, which from now on owns the network's end. */
    abstract ProxyConnection start(ConnectionLayout layout, MemoryRegion memory, MemoryRegion staging);

    /** How long a stop waits for what is under way while nothing moves. */
    abstract Duration drainTimeout();

    /** A stop gave up what was under way. */
    abstract void gaveUp(String lastSeen);

    /** Gives back what an end has besides; the proxy has stopped. */
    void closed() {
        // most have nothing
    }

    /** Ends the network's end where no proxy ever owned it. */
    abstract void closeUnstarted();

    @Override
    public long deviceHandle() {
        return handle.address();
    }

    @Override
    public final int register(long address, long bytes) {
        int number = locator.add(address, bytes);
        if (locator.complete()) {
            ConnectionLayout layout = locator.layout();
            region = network.register(locator.memory());
            staging = network.register(allocateStaging(stagingBytes(layout)));
            proxy = start(layout, region, staging);
            owner.losses().useCurrentDevice();
            agent = path.assign(receives());
            agent.add(List.of(proxy));
        }
        return number;
    }

    /**
     * Of the global scope, as all memory is that a proxy works with: see {@link NativeMemory}. It is the arena's, which
     * is closed after the proxy has stopped.
     */
    private MemorySegment allocateStaging(long bytes) {
        return NativeMemory.at(arena.allocate(bytes, LL128Line.BYTES).address(), bytes);
    }

    /**
     * The proxy has stopped; NCCL has no ear for why, so it is said in the log, and to the Java program if there is
     * one. Called by the agent's thread.
     */
    final void stopped(ProxyConnection stopped, @Nullable Throwable reason) {
        if (reason == null) {
            return;
        }
        failure = reason;
        String what = NcclLog.describe(reason);
        String name = stopped.name().toString();
        String line = (what.startsWith(name) ? what : name + ": " + what) + " (" + stopped.lastSeen() + ")";
        if (isMeant(stopped, reason)) {
            NcclLog.info(line);
        } else {
            NcclLog.warn(line);
            ConnectionFailures.report(new MillraceException(line, reason));
            owner.losses().add(new LostEnd(peer, line, reason instanceof PeerClosedException, () -> owes(stopped)));
        }
    }

    /**
     * Communicators are destroyed on one rank before the other, and aborted on purpose: nobody has to be warned of it
     * unless data was still to be sent.
     */
    private static boolean isMeant(ProxyConnection stopped, Throwable reason) {
        return reason instanceof DeviceAbortedException || reason instanceof PeerClosedException && !stopped.owesData();
    }

    /** Whether the device has posted what nobody sends any more. */
    abstract boolean owes(ProxyConnection stopped);

    @Override
    public final void deregister(int number) {
        stop();
    }

    private void stop() {
        if (agent == null) {
            return;
        }
        owner.losses().ending();
        ProxyAgent.Acknowledgement removal =
                agent.remove(List.of(proxy), failure == null ? drainTimeout() : Duration.ZERO);
        if (!removal.await(DRAIN_LIMIT)) {
            removal = agent.remove(List.of(proxy), Duration.ZERO);
            if (!removal.await(ACKNOWLEDGE)) {
                throw new MillraceException(
                        proxy.name() + ": the proxy's thread does not let go of the connection's memory:"
                                + " a pass of it does not return");
            }
        }
        if (!removal.drained()) {
            gaveUp(proxy.lastSeen());
        }
        path.release(agent, receives());
        agent = null;
        region.close();
        staging.close();
    }

    @Override
    public final int post(long address, long bytes, int number) {
        throw taken();
    }

    @Override
    public final int test(int request) {
        throw taken();
    }

    private IllegalStateException taken() {
        return new IllegalStateException("NCCL's proxy asks for progress of a connection that was taken over:"
                + " is this NCCL older than 2.28, or newer than 2.30?");
    }

    @Override
    public final void close() {
        boolean started = proxy != null;
        stop();
        if (!started) {
            closeUnstarted();
        }
        closed();
        arena.close();
    }

    /** The sending end of a connection that was taken over. */
    static final class Sender extends TakeoverConnection {

        private final FrameSender sender;
        private final DataPath.DrainTimeout timeout;

        Sender(FrameSender sender, Network network, TakeoverPath path, DataPath.Owner owner) {
            super(network, path, owner, sender.peer());
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

        /** A kernel that has ended has all its data in the slots, and nobody else would send it. */
        @Override
        Duration drainTimeout() {
            return timeout.remaining();
        }

        @Override
        void gaveUp(String lastSeen) {
            if (timeout.expire()) {
                NcclLog.warn(sender + ": the peer takes nothing, and what the device posted for it is dropped ("
                        + lastSeen
                        + "), here and on the communicator's other connections. It was aborted, or the peer did not"
                        + " receive all that was sent");
            }
        }

        @Override
        long stagingBytes(ConnectionLayout layout) {
            return 0;
        }

        @Override
        ProxyConnection start(ConnectionLayout layout, MemoryRegion memory, MemoryRegion staging) {
            return SendProxy.byMemory(ConnectionName.of(sender.toString()), layout, memory, 0, sender, this::stopped);
        }

        @Override
        void closeUnstarted() {
            sender.close();
        }

        @Override
        public String toString() {
            return sender.toString();
        }
    }

    /** The receiving end of a connection that was taken over. */
    static final class Receiver extends TakeoverConnection {

        private final FrameReceiver receiver;
        private final UnpackDevice.@Nullable Connection unpack;

        /**
         * A receiver that is served once its memory is known.
         *
         * @param unpack what kernels that unpack need; null for those that do not
         */
        Receiver(FrameReceiver receiver, Network network, TakeoverPath path, DataPath.Owner owner,
                UnpackDevice.@Nullable Connection unpack) {
            super(network, path, owner, receiver.peer());
            this.receiver = receiver;
            this.unpack = unpack;
        }

        /** What a kernel waits for leaves no mark in memory. */
        @Override
        boolean owes(ProxyConnection stopped) {
            return false;
        }

        @Override
        public long deviceHandle() {
            return unpack == null ? super.deviceHandle() : unpack.deviceHandle();
        }

        @Override
        boolean receives() {
            return true;
        }

        /** LL and LL128 lines wait there until they are stored one by one. */
        @Override
        long stagingBytes(ConnectionLayout layout) {
            return layout.bufferOffset(Protocol.SIMPLE);
        }

        @Override
        ProxyConnection start(ConnectionLayout layout, MemoryRegion memory, MemoryRegion staging) {
            ConnectionName name = ConnectionName.of(receiver.toString());
            if (unpack == null) {
                return ReceiveProxy.byMemory(name, layout, memory, staging, 0, receiver, this::stopped);
            }
            UnpackReceiveSource.UnpackMemory pages =
                    unpack.prepare(layout.slotBytes(Protocol.SIMPLE), receiver.scatters());
            return ReceiveProxy.byMemory(name, layout, memory, staging, 0, receiver, this::stopped,
                    slots -> new UnpackReceiveSource(name, pages, slots));
        }

        /** A kernel that has ended has all it waited for. */
        @Override
        Duration drainTimeout() {
            return Duration.ZERO;
        }

        @Override
        void gaveUp(String lastSeen) {
            // only after an abort is anything under way
        }

        @Override
        void closed() {
            if (unpack != null) {
                unpack.close();
            }
        }

        @Override
        void closeUnstarted() {
            receiver.close();
        }

        @Override
        public String toString() {
            return receiver.toString();
        }
    }
}
