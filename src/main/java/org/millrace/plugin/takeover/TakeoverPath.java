package org.millrace.plugin.takeover;

import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleProfile;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Network;
import org.millrace.plugin.net.DataPath;
import org.millrace.plugin.net.NetEndpoint;
import org.millrace.plugin.unpack.UnpackDevice;
import org.millrace.proxy.ProxyAgent;

/**
 * Java threads move the data: NCCL is told that its connections need no progress from its proxy, and our own proxies
 * serve their memory.
 */
public final class TakeoverPath implements DataPath {

    private static final byte ID = 2;

    /**
     * Threads of a process unless it is told otherwise: enough for the bandwidth of host memory, few enough to leave a
     * trainer its cores.
     */
    private static final int MOST_THREADS = 8;
    private static final int CORES_PER_THREAD = 4;

    private final ProxyAgent[] agents;
    private final AgentRunner[] runners;
    private final int[] served;

    private final @Nullable UnpackDevice unpack;
    private @Nullable WarmUp warmUp;

    private TakeoverPath(int threads, @Nullable UnpackDevice unpack) {
        this.unpack = unpack;
        agents = new ProxyAgent[threads];
        runners = new AgentRunner[threads];
        served = new int[threads];
        for (int i = 0; i < threads; i++) {
            agents[i] = new ProxyAgent("proxy-" + i);
            runners[i] = AgentRunner.start(agents[i], IdleProfile.TAKEOVER_PROXY.newStrategy());
        }
    }

    /**
     * Starts the threads.
     *
     * @param threads how many the user wants, if they say so
     * @param unpack  what kernels that unpack need, closed with the path; null for those that do not
     */
    public static TakeoverPath start(Optional<Integer> threads, @Nullable UnpackDevice unpack) {
        int usual = Math.clamp(Runtime.getRuntime().availableProcessors() / CORES_PER_THREAD, 1, MOST_THREADS);
        return new TakeoverPath(threads.orElse(usual), unpack);
    }

    @Override
    public byte id() {
        return ID;
    }

    @Override
    public DataPath.Connection sending(FrameSender sender, Network network, DataPath.Owner owner) {
        return new TakeoverConnection.Sender(sender, network, this, owner);
    }

    @Override
    public DataPath.Connection receiving(FrameReceiver receiver, Network network, DataPath.Owner owner) {
        return new TakeoverConnection.Receiver(receiver, network, this, owner,
                unpack == null ? null : unpack.connection(network, false));
    }

    @Override
    public boolean takesOver() {
        return true;
    }

    @Override
    public void opened(NetEndpoint endpoint) {
        warmUp = WarmUp.startOnce(endpoint, this);
    }

    /** All threads. */
    List<ProxyAgent> agents() {
        return List.of(agents);
    }

    /** The thread that serves the fewest connections gets the next one. */
    synchronized ProxyAgent assign() {
        int least = 0;
        for (int i = 1; i < agents.length; i++) {
            if (served[i] < served[least]) {
                least = i;
            }
        }
        served[least]++;
        return agents[least];
    }

    synchronized void release(ProxyAgent agent) {
        for (int i = 0; i < agents.length; i++) {
            if (agents[i] == agent) {
                served[i]--;
            }
        }
    }

    @Override
    public void close() {
        if (warmUp != null) {
            warmUp.stop();
        }
        for (AgentRunner runner : runners) {
            runner.close();
        }
        if (unpack != null) {
            unpack.close();
        }
    }

    @Override
    public boolean unpacks() {
        return unpack != null;
    }

    @Override
    public String toString() {
        return "Java takes the proxy over, with " + agents.length + (agents.length == 1 ? " thread" : " threads")
                + (unpack == null ? "" : "; " + unpack);
    }
}
