package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.agent.Agent;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.HelpedAgent;
import org.millrace.agent.IdleStrategy;
import org.millrace.agent.LimitedSleeper;
import org.millrace.agent.PollingThreads;
import org.millrace.agent.Sleeper;
import org.millrace.device.EmulatedDevice;
import org.millrace.net.shm.Doorbell;
import org.millrace.net.shm.SharedHeap;
import org.millrace.proxy.ProxyAgent;
import org.millrace.proxy.spi.ProxyConnection;

/**
 * Threads of a rank. Either one polling thread runs device and proxies alternately, or device and proxies have one
 * polling thread each. One thread is better if there are as many ranks as cores: two threads would take the core from
 * each other just when one waits for the other. A further thread makes connections, and sleeps while no connection is
 * requested. A communicator shares its threads with the communicators that are split from it. The communicator that is
 * closed last stops the threads.
 */
final class EngineThreads implements AutoCloseable {

    /** Maximum time until a thread acknowledges that it no longer accesses an object. */
    static final Duration ACKNOWLEDGE_DEADLINE = Duration.ofSeconds(10);

    final EmulatedDevice device;
    final ProxyAgent proxies;
    final ConnectorService connectorService;
    /** Wakes the thread that runs the device. */
    private final Doorbell doorbell;
    /** Wakes the thread that runs the proxies. */
    private final Doorbell proxyDoorbell;
    private final AgentRunner[] runners;
    private final AtomicInteger users = new AtomicInteger(1);
    /** Number of connections with proxies. While it is 0, device and proxies have no work for each other. */
    private final AtomicInteger served = new AtomicInteger();
    private final PollingThreads.Sharing sharing;

    /**
     * @param heap      memory that other processes map; null if they map none
     * @param processes number of processes on this host that run ranks of the group
     */
    EngineThreads(int rank, EngineOptions options, @Nullable SharedHeap heap, int processes) {
        sharing = PollingThreads.OF_PROCESS.share(processes);
        this.device = new EmulatedDevice(rank, options.longestOperation(), options.closeDeadline());
        this.proxies = new ProxyAgent("proxy-" + rank);
        boolean together = options.threads() == 1;
        doorbell = heap == null ? new Doorbell() : heap.doorbell();
        device.wakeBy(doorbell::wakeOwner);
        proxyDoorbell = together ? doorbell : new Doorbell();
        proxies.wakeBy(proxyDoorbell::wakeOwner);
        BooleanSupplier isQuiet = () -> device.isIdle() && proxies.isDrained();
        Agent first = together ? new Sleeping(new InTurn(device, proxies), doorbell, () -> {}, isQuiet)
                : new Sleeping(device, doorbell, () -> wakeIfServed(proxyDoorbell), device::isIdle);
        AgentRunner runner = options.ownSleepNanos() > 0 ? startHelped(first, options)
                : AgentRunner.start(first, idle(options, doorbell));
        runners = together ? new AgentRunner[] {runner}
                : new AgentRunner[] {runner,
                        AgentRunner.start(new Sleeping(proxies, proxyDoorbell, () -> wakeIfServed(doorbell), isQuiet),
                                idle(options, proxyDoorbell))};
        connectorService = new ConnectorService(rank);
    }

    /**
     * Wakes another thread of the rank after a pass with work. Does nothing if no connection has a proxy, because
     * without proxies the threads have no work for each other.
     */
    void wakeIfServed(Doorbell other) {
        if (served.get() > 0) {
            other.wakeOwner();
        }
    }

    private static IdleStrategy idle(EngineOptions options, Doorbell doorbell) {
        return idle(options, doorbell, doorbell.sleeper(options.silentSleepNanos()));
    }

    private static IdleStrategy idle(EngineOptions options, Doorbell doorbell, Sleeper sleeper) {
        IdleStrategy polling = options.idle().apply(sleeper);
        return options.hasCore() ? polling : doorbell.strategy(polling, sleeper, options.wokenSleepNanos());
    }

    private AgentRunner startHelped(Agent agent, EngineOptions options) {
        LimitedSleeper limited = new LimitedSleeper(doorbell.sleeper(options.silentSleepNanos()));
        HelpedAgent helped = new HelpedAgent(agent, idle(options, doorbell), idle(options, doorbell, limited), limited,
                options.ownSleepNanos());
        device.runBy(helped);
        return AgentRunner.start(helped, helped);
    }

    @Override
    public String toString() {
        return "the threads of " + device.name();
    }

    /** Returns this object for one more communicator, which must also close the object. */
    EngineThreads share() {
        if (users.getAndUpdate(count -> count == 0 ? 0 : count + 1) == 0) {
            throw new MillraceException(
                    device.name() + ": its threads have stopped, because the communicator was closed");
        }
        return this;
    }

    /** Refuses operands that the device's thread must not access. */
    void checkReach(String what, MemorySegment segment, long bytes) {
        Thread user = deviceThread();
        if (!segment.isAccessibleBy(user)) {
            throw new IllegalArgumentException(
                    what + ": the segment belongs to a confined arena, and the device's thread " + user.getName()
                            + " may not touch it; use Arena.ofShared()");
        }
    }

    Thread deviceThread() {
        return runners[0].thread();
    }

    /**
     * Adds {@code change} to the counts of connections: 1 for a connection that was made, and -1 for a connection that
     * was closed. A new connection must be counted before a kernel uses it. The connection is also counted as silent if
     * its peer does not wake this rank. A thread must then poll the connection.
     */
    void count(TransportConnection connection, int change) {
        boolean proxied = !connection.proxies().isEmpty();
        served.addAndGet(proxied ? change : 0);
        (proxied ? proxyDoorbell : doorbell).addSilent(connection.wakesThisRank() ? 0 : change);
        doorbell.wakeOwner();
    }

    /** Stops the proxies. Returns false if their thread did not acknowledge. */
    boolean release(List<ProxyConnection> connections, Duration drain) {
        return proxies.remove(connections, drain).await(drain.plus(ACKNOWLEDGE_DEADLINE));
    }

    /** Releases the threads for one communicator. The last release stops them. */
    @Override
    public void close() {
        if (users.decrementAndGet() == 0) {
            connectorService.close();
            for (AgentRunner runner : runners) {
                runner.close();
            }
            sharing.close();
            device.staging().close();
        }
    }

    /**
     * Agent that serves all connections in the last pass before its thread sleeps. The thread announces the sleep
     * before this pass. Stores of other threads before the announcement do not wake this thread, so this pass must find
     * them. The pass also publishes whether any work is in flight.
     *
     * @param own       doorbell that wakes the agent's thread
     * @param wakeOther action that wakes the thread that polls memory written by this agent
     */
    record Sleeping(Agent agent, Doorbell own, Runnable wakeOther, BooleanSupplier isQuiet) implements Agent {

        @Override
        public int doWork() {
            boolean last = own.isAnnounced();
            if (last) {
                agent.serveAll();
            }
            int work = agent.doWork();
            if (work > 0) {
                wakeOther.run();
            } else if (last) {
                own.setQuiet(isQuiet.getAsBoolean());
            }
            return work;
        }

        @Override
        public String name() {
            return agent.name();
        }

        @Override
        public void serveAll() {
            agent.serveAll();
        }

        @Override
        public void onFailure(Throwable failure) {
            agent.onFailure(failure);
        }

        @Override
        public void onClose() {
            agent.onClose();
        }
    }

    /** Two agents on one thread. A failure in one agent does not prevent the pass of the other. */
    record InTurn(Agent first, Agent second) implements Agent {

        @Override
        public int doWork() {
            return pass(first) + pass(second);
        }

        private static int pass(Agent agent) {
            try {
                return agent.doWork();
            } catch (Throwable failure) {
                agent.onFailure(failure);
                return 0;
            }
        }

        @Override
        public void serveAll() {
            first.serveAll();
            second.serveAll();
        }

        @Override
        public String name() {
            return first.name() + "+" + second.name();
        }

        @Override
        public void onFailure(Throwable failure) {
            try {
                first.onFailure(failure);
            } finally {
                second.onFailure(failure);
            }
        }

        @Override
        public void onClose() {
            close(first);
            close(second);
        }

        private static void close(Agent agent) {
            try {
                agent.onClose();
            } catch (Throwable failure) {
                agent.onFailure(failure);
            }
        }
    }
}
