package org.millrace.plugin;

import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleStrategy;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.proxy.ProxyAgent;
import org.millrace.trace.ProcessTrace;

/**
 * Java threads move the data: NCCL is told that its connections need no progress from its proxy, and our own proxies
 * serve their memory.
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
    /** Whether the number of threads is what it stays. */
    private boolean settled;

    /** An agent on its thread, and how many connections it serves. Guarded by the path's lock. */
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
     * @param nccl         whose connections it serves
     * @param threads      how many if this process is alone
     * @param threadsAmong how many if so many processes of this host have connections, this one among them
     * @param unpack       what kernels that unpack need, closed with the path; null for those that do not
     * @param deviceSlots  what serves slots in the memory of GPUs, closed with the path; null if slots are in the
     *                     host's
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
        // a fault that is planted is for the program's frames
        warmUp = endpoint.faults().isEmpty() ? WarmUp.startOnce(endpoint, this, !serving.number.ownCore()) : null;
    }

    List<ProxyAgent> agents() {
        return serving.servers.stream().map(server -> server.agent).toList();
    }

    /**
     * Called before a connection is served. All ranks have begun when the first is made: only now they can be counted.
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
            begun.finish(); // though an operation may have been enqueued: NCCL connects behind that
        }
        ProxyThreads threads = threadsAmong.apply(ProcessTrace.livingProcesses());
        if (!threads.isLike(serving.number)) {
            if (begun != null) {
                begun.stop(); // its connections are served by threads that end
            }
            serving.close();
            serving = Threads.start(threads, deviceSlots);
            NcclLog.info("connections are served by " + threads);
        }
    }

    /** {@inheritDoc} Who waits for a thread wakes it too: it may be parked for milliseconds. */
    @Override
    public void operationComing() {
        for (Server server : serving.servers) {
            server.runner.wake();
        }
    }

    /**
     * A thread for the next connection: that which serves the fewest of its direction, as receivers copy more than
     * senders do; of those the one that serves the fewest.
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

    /** {@inheritDoc} A warm-up leaves connections, with copies under way in the contexts that {@link #close} ends. */
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
}
