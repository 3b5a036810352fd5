package org.millrace.plugin.takeover;

import java.util.List;
import java.util.Objects;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.AgentRunner;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.plugin.net.DataPath;
import org.millrace.plugin.net.NetEndpoint;
import org.millrace.plugin.net.ProxyThreads;
import org.millrace.plugin.unpack.UnpackDevice;
import org.millrace.proxy.ProxyAgent;

/**
 * Java threads move the data: NCCL is told that its connections need no progress from its proxy, and our own proxies
 * serve their memory.
 */
public final class TakeoverPath implements DataPath {

    private static final byte ID = 2;
    private static final byte ID_WITH_DEVICE_SLOTS = 3;

    private final ProxyAgent[] agents;
    private final AgentRunner[] runners;
    private final int[] sendersServed;
    private final int[] receiversServed;
    private final ProxyThreads threads;

    private final @Nullable UnpackDevice unpack;
    private final @Nullable DeviceSlots deviceSlots;
    private volatile @Nullable WarmUp warmUp;

    /**
     * Starts the threads.
     *
     * @param unpack      what kernels that unpack need, closed with the path; null for those that do not
     * @param deviceSlots what serves slots in the memory of GPUs, closed with the path; null if slots are in the host's
     */
    public TakeoverPath(ProxyThreads threads, @Nullable UnpackDevice unpack, @Nullable DeviceSlots deviceSlots) {
        this.unpack = unpack;
        this.deviceSlots = deviceSlots;
        agents = new ProxyAgent[threads.count()];
        runners = new AgentRunner[threads.count()];
        sendersServed = new int[threads.count()];
        receiversServed = new int[threads.count()];
        this.threads = threads;
        for (int i = 0; i < agents.length; i++) {
            agents[i] = new ProxyAgent("proxy-" + i);
            runners[i] = AgentRunner.start(agents[i], threads.newIdleStrategy());
        }
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
        warmUp = endpoint.faults().isEmpty() ? WarmUp.startOnce(endpoint, this, !threads.ownCore()) : null;
    }

    /** All threads. */
    List<ProxyAgent> agents() {
        return List.of(agents);
    }

    /** Called before a connection is served. */
    void connectionComing() {
        if (warmUp != null) {
            warmUp.finish();
        }
    }

    @Override
    public void operationComing() {
        if (warmUp != null) {
            warmUp.cease();
        }
        for (AgentRunner runner : runners) {
            runner.wake();
        }
    }

    /**
     * A thread for the next connection: that which serves the fewest of its direction, as receivers copy more than
     * senders do; of those the one that serves the fewest.
     */
    synchronized ProxyAgent assign(boolean receives) {
        int[] served = receives ? receiversServed : sendersServed;
        int[] others = receives ? sendersServed : receiversServed;
        int least = 0;
        for (int i = 1; i < agents.length; i++) {
            int more = served[i] - served[least];
            if (more < 0 || more == 0 && others[i] < others[least]) {
                least = i;
            }
        }
        served[least]++;
        return agents[least];
    }

    synchronized void release(ProxyAgent agent, boolean receives) {
        (receives ? receiversServed : sendersServed)[List.of(agents).indexOf(agent)]--;
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
        return "Java takes the proxy over, with " + threads
                + (deviceSlots == null ? "" : "; slots are in the GPU's memory")
                + (unpack == null ? "" : "; " + unpack);
    }
}
