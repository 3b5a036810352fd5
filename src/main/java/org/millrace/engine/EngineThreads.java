package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.agent.Agent;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.HelpedAgent;
import org.millrace.agent.IdleStrategy;
import org.millrace.device.EmulatedDevice;
import org.millrace.net.shm.Doorbell;
import org.millrace.net.shm.SharedHeap;
import org.millrace.proxy.ProxyAgent;
import org.millrace.proxy.ProxyConnection;

/**
 * A rank's threads. Device and proxies are polled: by one thread in turn, or by one each. Where there are as many ranks
 * as cores one thread is better: two would take the core from each other just when one waits for the other. Connections
 * are made on a thread that sleeps while none is asked for. A communicator that is split shares its threads with those
 * that it is split into; the last to be closed stops them.
 */
final class EngineThreads implements AutoCloseable {

    /** How long a thread may take to say that it no longer touches something. */
    static final Duration ACKNOWLEDGE_DEADLINE = Duration.ofSeconds(10);

    final EmulatedDevice device;
    final ProxyAgent proxies;
    final ConnectorService connectorService;
    private final AgentRunner[] runners;
    private final AtomicInteger users = new AtomicInteger(1);

    /** @param heap what other processes map; null if they do not */
    EngineThreads(int rank, EngineOptions options, @Nullable SharedHeap heap) {
        this.device = new EmulatedDevice(rank, options.lateDeadline(), options.closeDeadline());
        this.proxies = new ProxyAgent("proxy-" + rank);
        boolean together = options.threads() == 1;
        Agent first = together ? new InTurn(device, proxies) : device;
        Doorbell doorbell = heap == null ? null : heap.doorbell();
        AgentRunner runner = options.ownSleepNanos() > 0 ? startHelped(first, options, doorbell)
                : AgentRunner.start(first, idle(options, doorbell));
        runners = together ? new AgentRunner[] {runner}
                : new AgentRunner[] {runner, AgentRunner.start(proxies, options.idle().get())};
        connectorService = new ConnectorService(rank);
    }

    /** Of a thread that runs the device. */
    private static IdleStrategy idle(EngineOptions options, @Nullable Doorbell doorbell) {
        IdleStrategy polling = options.idle().get();
        return doorbell == null || options.wokenSleepNanos() == 0 ? polling
                : doorbell.strategy(polling, options.wokenSleepNanos());
    }

    private AgentRunner startHelped(Agent agent, EngineOptions options, @Nullable Doorbell doorbell) {
        HelpedAgent helped =
                new HelpedAgent(agent, idle(options, doorbell), idle(options, doorbell), options.ownSleepNanos());
        device.runBy(helped);
        return AgentRunner.start(helped, helped);
    }

    @Override
    public String toString() {
        return "the threads of " + device.name();
    }

    /** The same threads for one more communicator, which closes them too when it ends. */
    EngineThreads share() {
        if (users.getAndUpdate(count -> count == 0 ? 0 : count + 1) == 0) {
            throw new MillraceException(
                    device.name() + ": its threads have stopped, because the communicator was closed");
        }
        return this;
    }

    /** Refuses operands that the device's thread may not touch. */
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

    /** Stops the proxies; returns false if their thread did not acknowledge. */
    boolean release(List<ProxyConnection> connections, Duration drain) {
        return proxies.remove(connections, drain).await(drain.plus(ACKNOWLEDGE_DEADLINE));
    }

    /** One communicator less. */
    @Override
    public void close() {
        if (users.decrementAndGet() == 0) {
            connectorService.close();
            for (AgentRunner runner : runners) {
                runner.close();
            }
            device.staging().close();
        }
    }

    /** Two agents on one thread. What fails in one does not keep the other from its pass. */
    private record InTurn(Agent first, Agent second) implements Agent {

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
