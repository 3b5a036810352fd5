package org.millrace.plugin;

import java.time.Duration;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleStrategy;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.proxy.AbstractProxy;
import org.millrace.proxy.ConnectionName;
import org.millrace.proxy.ProxyAgent;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.ReceiveProxy;
import org.millrace.proxy.SendProxy;
import org.millrace.proxy.SlotBuffers;
import org.millrace.proxy.UnpackReceiveSource;
import org.millrace.trace.ProcessTrace;

/**
 * Path on which Java threads move the data. The device handle of a connection tells NCCL that the connection needs no
 * progress from NCCL's proxy. Millrace's own proxies serve the memory of the connections.
 */
final class TakeoverPath implements DataPath {

    private static final byte ID = 2;
    private static final byte ID_WITH_DEVICE_SLOTS = 3;

    private final CallingNccl nccl;
    private final IntFunction<ProxyThreads> threadsAmong;
    private final @Nullable UnpackDevice unpack;
    private final @Nullable DeviceSlots deviceSlots;
    private volatile Threads serving;
    private volatile @Nullable WarmUp warmUp;
    /** Whether the number of threads is final. */
    private boolean settled;

    /** An agent with its thread, and the number of connections that it serves. Guarded by the path's lock. */
    private static final class Server {

        private final ProxyAgent agent;
        private final AgentRunner runner;
        private int senders;
        private int receivers;

        Server(ProxyAgent agent, IdleStrategy idle) {
            this.agent = agent;
            runner = AgentRunner.start(agent, idle);
        }

        void count(boolean receives, int more) {
            senders += receives ? 0 : more;
            receivers += receives ? more : 0;
        }
    }

    private record Threads(ProxyThreads number, List<Server> servers) {

        static Threads start(ProxyThreads number, @Nullable DeviceSlots deviceSlots) {
            Runnable atEnd = deviceSlots == null ? () -> {} : deviceSlots::leave;
            return new Threads(number,
                    IntStream.range(0, number.count())
                            .mapToObj(i -> new Server(new ProxyAgent("proxy-" + i, atEnd), number.newIdleStrategy()))
                            .toList());
        }

        void close() {
            servers.forEach(server -> server.runner.close());
        }
    }

    /**
     * Starts the threads.
     *
     * @param nccl         the NCCL that owns the connections
     * @param threads      number of threads if this process is alone
     * @param threadsAmong returns the number of threads, given the number of processes on this host with connections,
     *                     including this one
     * @param unpack       memory that the plugin and unpacking kernels share, closed with the path; null for other
     *                     kernels
     * @param deviceSlots  object that serves slots in GPU memory, closed with the path; null if slots are in host
     *                     memory
     */
    public TakeoverPath(CallingNccl nccl, ProxyThreads threads, IntFunction<ProxyThreads> threadsAmong,
            @Nullable UnpackDevice unpack, @Nullable DeviceSlots deviceSlots) {
        this.nccl = nccl;
        this.threadsAmong = threadsAmong;
        this.unpack = unpack;
        this.deviceSlots = deviceSlots;
        serving = Threads.start(threads, deviceSlots);
    }

    CallingNccl nccl() {
        return nccl;
    }

    @Override
    public byte id() {
        return deviceSlots == null ? ID : ID_WITH_DEVICE_SLOTS;
    }

    @Override
    public DataPath.Connection sending(FrameSender sender, Network network, DataPath.Owner owner,
            DataPath.ConnectionNumber number, @Nullable IntFunction<Pending<FrameSender>> more) {
        return new TakeoverSender(sender, network, this, owner, number);
    }

    @Override
    public DataPath.Connection receiving(FrameReceiver receiver, Network network, DataPath.Owner owner,
            DataPath.ConnectionNumber number, List<Pending<FrameReceiver>> more) {
        return new TakeoverReceiver(receiver, network, this, owner, number,
                unpack == null ? null : unpack.connection(network, false));
    }

    @Override
    public boolean takesOver() {
        return true;
    }

    @Override
    public void opened(NetEndpoint endpoint) {
        // planted faults are meant for the program's frames
        warmUp = endpoint.faults().isEmpty() ? WarmUp.startOnce(endpoint, this, !serving.number.ownCore()) : null;
    }

    List<ProxyAgent> agents() {
        return serving.servers.stream().map(server -> server.agent).toList();
    }

    /**
     * Prepares the threads before a connection is served. The processes of this host are counted only now, because all
     * ranks run when the first connection is made.
     */
    synchronized void connectionComing() {
        if (!settled) {
            settled = true;
            settle();
        }
        serving.servers.forEach(server -> server.runner.forget());
    }

    private void settle() {
        WarmUp begun = warmUp;
        if (begun != null) {
            begun.finish(); // also if an operation was enqueued before, because NCCL then still connects
        }
        ProxyThreads threads = threadsAmong.apply(ProcessTrace.livingProcesses());
        if (!threads.isLike(serving.number)) {
            if (begun != null) {
                begun.stop(); // the threads that serve the warm-up's connections end next
            }
            serving.close();
            serving = Threads.start(threads, deviceSlots);
            NcclLog.info("connections are served by " + threads);
        }
    }

    /**
     * {@inheritDoc} A caller that waits for one of the threads calls this method too, because the thread may be parked
     * for milliseconds.
     */
    @Override
    public void operationComing() {
        for (Server server : serving.servers) {
            server.runner.wake();
        }
    }

    /**
     * Returns the agent for the next connection. It is the agent with the fewest connections of the same direction,
     * because receivers copy more than senders do. Among equals, it is the one with the fewest connections.
     */
    synchronized ProxyAgent assign(boolean receives) {
        Server least = Collections.min(serving.servers,
                Comparator.<Server>comparingInt(server -> receives ? server.receivers : server.senders)
                        .thenComparingInt(server -> server.senders + server.receivers));
        least.count(receives, 1);
        return least.agent;
    }

    synchronized void release(ProxyAgent agent, boolean receives) {
        for (Server server : serving.servers) {
            if (server.agent == agent) {
                server.count(receives, -1);
            }
        }
    }

    /**
     * {@inheritDoc} Stops the warm-up first. Its connections may have copies in flight in the contexts that
     * {@link #close} destroys.
     */
    @Override
    public void stop() {
        if (warmUp != null) {
            warmUp.stop();
        }
        serving.close();
    }

    @Override
    public void close() {
        if (unpack != null) {
            unpack.close();
        }
        if (deviceSlots != null) {
            deviceSlots.close();
        }
    }

    @Override
    public boolean takesDeviceMemory() {
        return deviceSlots != null;
    }

    @Nullable
    DeviceSlots deviceSlotsIfAny() {
        return deviceSlots;
    }

    DeviceSlots deviceSlots() {
        return Objects.requireNonNull(deviceSlots, "NCCL registered memory of a GPU, which was not offered");
    }

    @Override
    public boolean unpacks() {
        return unpack != null;
    }

    @Override
    public String toString() {
        return "Java takes the proxy over, with " + serving.number
                + (deviceSlots == null ? "" : "; slots are in the GPU's memory")
                + (unpack == null ? "" : "; " + unpack);
    }

    /** The sending end of a connection that was taken over. */
    static final class TakeoverSender extends TakeoverConnection {

        private final FrameSender sender;
        private final DataPath.DrainTimeout timeout;

        TakeoverSender(FrameSender sender, Network network, TakeoverPath path, DataPath.Owner owner,
                DataPath.ConnectionNumber number) {
            super(new End(sender, sender.peer(), sender::blame, sender::close), network, path, owner, number);
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

        /**
         * Returns the communicator's remaining time. A completed kernel has left all its data in the slots, and only
         * this proxy can send it.
         */
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
        AbstractProxy start(SlotBuffers buffers, MemoryRegion lines, @Nullable Staging device) {
            return SendProxy.byMemory(ConnectionName.of(sender.toString()), buffers, 0,
                    device == null ? sender : new StagedSender(sender, device), this::stopped);
        }
    }

    /** The receiving end of a connection that was taken over. */
    static final class TakeoverReceiver extends TakeoverConnection {

        private final FrameReceiver receiver;
        private final UnpackDevice.@Nullable Connection unpack;

        /**
         * Creates a receiver that is served once its memory is known.
         *
         * @param unpack memory that the connection shares with kernels that unpack; null for other kernels
         */
        TakeoverReceiver(FrameReceiver receiver, Network network, TakeoverPath path, DataPath.Owner owner,
                DataPath.ConnectionNumber number, UnpackDevice.@Nullable Connection unpack) {
            super(new End(receiver, receiver.peer(), receiver::blame, receiver::close), network, path, owner, number);
            this.receiver = receiver;
            this.unpack = unpack;
        }

        /** Returns false, because a kernel that waits for data leaves no mark in memory. */
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

        /** Returns the space in which received LL and LL128 lines wait until they are stored one by one, in bytes. */
        @Override
        long stagingBytes(ConnectionLayout layout) {
            return layout.bufferOffset(Protocol.SIMPLE);
        }

        @Override
        AbstractProxy start(SlotBuffers buffers, MemoryRegion lines, @Nullable Staging device) {
            ConnectionName name = ConnectionName.of(receiver.toString());
            if (unpack == null) {
                return ReceiveProxy.byMemory(name, buffers, lines, 0,
                        device == null ? receiver : new StagedReceiver(receiver, device), this::stopped);
            }
            UnpackReceiveSource.UnpackMemory pages = unpack.prepare(buffers.layout().slotBytes(Protocol.SIMPLE));
            return ReceiveProxy.byMemory(name, buffers, lines, 0, receiver, this::stopped,
                    slots -> new UnpackReceiveSource(name, pages, slots));
        }

        /** Returns zero, because a completed kernel has received all its data. */
        @Override
        Duration drainTimeout() {
            return Duration.ZERO;
        }

        @Override
        void gaveUp(String lastSeen) {
            // data is in flight only after an abort
        }

        @Override
        void closed() {
            if (unpack != null) {
                unpack.close();
            }
        }
    }
}
