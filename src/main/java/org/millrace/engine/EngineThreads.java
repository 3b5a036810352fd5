package org.millrace.engine;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.millrace.MillraceException;
import org.millrace.agent.Agent;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.BackoffIdleStrategy;
import org.millrace.agent.IdleStrategy;
import org.millrace.device.stream.EmulatedDevice;
import org.millrace.proxy.ProxyAgent;
import org.millrace.proxy.ProxyConnection;

/**
 * A rank's polling threads: one that runs device and proxies in turn, or one for each. Where there are as many ranks as
 * cores one thread is better: two would take the core from each other just when one waits for the other. A communicator
 * that is split shares them with those that come of it; the last one stops them.
 */
final class EngineThreads implements AutoCloseable {

    private static final long FIRST_PARK_NANOS = 10_000;
    private static final Duration ACKNOWLEDGE_DEADLINE = Duration.ofSeconds(10);

    private final EmulatedDevice device;
    private final ProxyAgent proxies;
    private final AgentSet agents;
    private final AgentRunner[] runners;
    private final AtomicInteger users = new AtomicInteger(1);

    EngineThreads(int rank, EngineOptions options) {
        this.device = new EmulatedDevice(rank);
        this.proxies = new ProxyAgent("proxy-" + rank);
        boolean together = options.threads() == 1;
        this.agents = together ? new AgentSet(device.name() + "+" + proxies.name(), device, proxies)
                : new AgentSet(device.name(), device);
        runners = together ? new AgentRunner[] {start(agents, options)}
                : new AgentRunner[] {start(agents, options), start(proxies, options)};
    }

    private static AgentRunner start(Agent agent, EngineOptions options) {
        IdleStrategy idle = new BackoffIdleStrategy(options.spins(), options.yields(), FIRST_PARK_NANOS,
                Math.max(FIRST_PARK_NANOS, options.maxParkNanos()));
        return AgentRunner.start(agent, idle);
    }

    /** For one more communicator, which closes them as well. */
    EngineThreads share() {
        if (users.getAndUpdate(count -> count == 0 ? 0 : count + 1) == 0) {
            throw new MillraceException(
                    device.name() + ": its threads have stopped, because the communicator was closed");
        }
        return this;
    }

    EmulatedDevice device() {
        return device;
    }

    ProxyAgent proxies() {
        return proxies;
    }

    /** Runs a communicator's own agent on the device's thread. */
    void add(Agent agent) {
        agents.add(agent);
    }

    void remove(Agent agent) {
        agents.remove(agent);
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
            for (AgentRunner runner : runners) {
                runner.close();
            }
        }
    }
}
