package org.millrace.plugin.takeover;

import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleStrategy;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.plugin.host.CallingLibrary;
import org.millrace.plugin.host.NcclLog;
import org.millrace.plugin.host.ProxyThreads;
import org.millrace.plugin.path.DataPath;
import org.millrace.plugin.path.NetEndpoint;
import org.millrace.proxy.ProxyAgent;
import org.millrace.trace.ProcessTrace;

/** Threads and memory that serve the connections of a {@link TakeoverPath}. */
public final class TakeoverService {

    private final CallingLibrary nccl;
    private final IntFunction<ProxyThreads> threadsAmong;
    private final @Nullable DeviceSlots deviceSlots;
    private final PayloadCheck check;
    private volatile Threads serving;
    private volatile @Nullable WarmUp warmUp;
    /** Whether the number of threads is final. Guarded by the service's lock. */
    private boolean settled;

    /** A proxy agent with its thread, and the numbers of its senders and receivers. Guarded by the service's lock. */
    private static final class Server {

        private final ProxyAgent agent;
        private final AgentRunner runner;
        private int senders;
        private int receivers;

        Server(ProxyAgent agent, IdleStrategy idle) {
            this.agent = agent;
            runner = AgentRunner.start(agent, idle);
            agent.wakeBy(runner::wake);
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
     * @param nccl         the NCCL that owns the connections
     * @param threads      number of threads if no other process on this host has connections
     * @param threadsAmong function that returns the number of threads, given the number of processes on this host with
     *                     connections, including this process
     * @param deviceSlots  object that serves slots in GPU memory, closed with the service; null if slots are in host
     *                     memory
     * @param check        check of the connections' payloads
     */
    public TakeoverService(CallingLibrary nccl, ProxyThreads threads, IntFunction<ProxyThreads> threadsAmong,
            @Nullable DeviceSlots deviceSlots, PayloadCheck check) {
        this.nccl = nccl;
        this.threadsAmong = threadsAmong;
        this.deviceSlots = deviceSlots;
        this.check = check;
        serving = Threads.start(threads, deviceSlots);
    }

    CallingLibrary nccl() {
        return nccl;
    }

    PayloadCheck check() {
        return check;
    }

    /** Begins the warm-up, once in a process. */
    void warmUp(NetEndpoint endpoint, DataPath path) {
        warmUp = WarmUp.startOnce(endpoint, path, agents(), deviceSlots, !serving.number.ownCore());
    }

    List<ProxyAgent> agents() {
        return serving.servers.stream().map(server -> server.agent).toList();
    }

    /**
     * Prepares the threads before a connection is served. The first call counts the host's processes, and so fixes the
     * number of threads. An earlier count could miss ranks that do not run yet.
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
            // NCCL can connect ranks late, so this call can come after the program's first operation.
            begun.finish();
        }
        ProxyThreads threads = threadsAmong.apply(ProcessTrace.livingProcesses());
        if (!threads.isLike(serving.number)) {
            if (begun != null) {
                // The warm-up stops first, because its connections use the threads that close() stops.
                begun.stop();
            }
            serving.close();
            serving = Threads.start(threads, deviceSlots);
            NcclLog.info("connections are served by " + threads);
        }
    }

    /** Wakes the threads, which may be parked for milliseconds. */
    void wake() {
        for (Server server : serving.servers) {
            server.runner.wake();
        }
    }

    /**
     * Returns the agent for a new connection: the agent with the fewest connections of the same direction, because
     * receivers copy more than senders. Among agents with equal numbers, the agent with the fewest connections in total
     * is chosen.
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
     * Stops the warm-up and then the threads. The warm-up stops first, because its connections may have copies in
     * flight in the contexts that {@link #close} destroys.
     */
    void stop() {
        if (warmUp != null) {
            warmUp.stop();
        }
        serving.close();
    }

    void close() {
        if (deviceSlots != null) {
            deviceSlots.close();
        }
    }

    boolean hasDeviceSlots() {
        return deviceSlots != null;
    }

    DeviceSlots deviceSlots() {
        return Objects.requireNonNull(deviceSlots, "NCCL registered memory of a GPU, which was not offered");
    }

    @Override
    public String toString() {
        return serving.number + (deviceSlots == null ? "" : "; slots are in the GPU's memory");
    }
}
