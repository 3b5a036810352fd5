package org.millrace.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Map;
import org.millrace.CommunicatorListener;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.Sleeper;
import org.millrace.config.Configuration;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.LsaMemory;
import org.millrace.engine.bootstrap.ControlPlane;
import org.millrace.engine.bootstrap.JoinOptions;
import org.millrace.engine.bootstrap.RemoteFailure;
import org.millrace.gin.GinAgent;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.GinException;
import org.millrace.gin.GinOptions;
import org.millrace.gin.HostWindowMemory;
import org.millrace.gin.Window;
import org.millrace.net.FullMesh;
import org.millrace.net.Listener;
import org.millrace.net.Network;

/**
 * A rank of a group that uses GIN on the emulated device: it meets the others, is connected with each, and has a thread
 * that carries descriptors out. Ranks may be threads, processes or machines.
 */
public final class GinRank implements AutoCloseable {

    private static final long KEY = 0x47494EL;

    private final ControlPlane control;
    private final Duration stallDeadline;
    private final EngineResources resources;
    private final Network network;
    private final GinAgent agent;
    private final GinCommunicator communicator;

    private GinRank(ControlPlane control, Duration stallDeadline, EngineResources resources, Network network,
            GinAgent agent, GinCommunicator communicator) {
        this.control = control;
        this.stallDeadline = stallDeadline;
        this.resources = resources;
        this.network = network;
        this.agent = agent;
        this.communicator = communicator;
    }

    /**
     * Joins a group. Returns when all ranks are connected.
     *
     * @param rendezvous where the ranks meet, as for {@link org.millrace.Millrace}
     * @param settings   stronger than the environment
     * @throws org.millrace.MillraceException if the group does not come together
     */
    public static GinRank join(String rendezvous, int rank, int size, Map<String, String> settings) {
        Configuration configuration = Configuration.load(settings);
        EngineResources resources = new EngineResources();
        ControlPlane control = null;
        try {
            control = resources.add(ControlPlane.join(rendezvous, rank, size,
                    JoinOptions.of(configuration, CommunicatorListener.STANDARD_ERROR)));
            ControlPlane joined = control;
            Agreement agreement = Agreement.reach(control, configuration);
            EngineOptions options = EngineOptions.decide(configuration, agreement);
            EngineTrace.open(configuration, control);
            long number = EngineTrace.number(control);
            resources.add(new EngineTrace(number, control));
            Network network = resources.add(Networks.open(configuration, agreement));
            FullMesh mesh;
            try (Listener here = network.listen()) {
                mesh = FullMesh.connect(network, here, control.allGather(here.address()), rank, KEY,
                        options.connectDeadline(),
                        () -> joined.failure() == null ? null : new GinException(joined.failure().message()));
                control.barrier(); // no rank may begin, and perhaps end, before its peers' connections are made
            }
            GinCommunicator communicator = new GinCommunicator(number, rank, mesh.senders(), mesh.receivers(),
                    GinOptions.defaults(), failure -> joined.fail(failure));
            GinAgent agent = new GinAgent("gin-" + rank);
            agent.add(communicator);
            Sleeper sleeper = nanos -> Sleeper.PARK.sleep(Math.min(nanos, options.silentSleepNanos()));
            resources.add(AgentRunner.start(agent, options.idle().apply(sleeper)));
            control.onEvent(() -> hear(joined, communicator));
            return new GinRank(control, options.stallDeadline(), resources, network, agent, communicator);
        } catch (RuntimeException | Error thrown) {
            if (control != null) {
                control.fail(thrown);
            }
            resources.close();
            throw thrown;
        }
    }

    /**
     * A peer that failed may look alive: a shutdown message that was not its own was read, or nothing was under way to
     * it. Kernels that wait for its signals leave when it says so, and not at their deadline.
     */
    private static void hear(ControlPlane control, GinCommunicator communicator) {
        RemoteFailure told = control.failure();
        if (told != null) {
            communicator.failSoon(new GinException(told.message()));
        }
    }

    /** This rank's number. */
    public int rank() {
        return communicator.rank();
    }

    public int size() {
        return communicator.ranks();
    }

    /** What carries this rank's descriptors out. */
    public GinCommunicator communicator() {
        return communicator;
    }

    /**
     * Makes memory a window. Collective: all ranks do so in the same order.
     *
     * @param arena whose memory it is; not to be closed before this rank
     */
    public LocalWindow window(Arena arena, long bytes) {
        MemorySegment memory = LsaMemory.allocate(arena, bytes);
        return new LocalWindow(communicator.register(HostWindowMemory.register(network, memory)), memory);
    }

    /** A window and the memory of this rank that it is. */
    public record LocalWindow(Window window, MemorySegment memory) {
    }

    /**
     * Makes a device communicator, which is closed with this rank. Collective.
     *
     * @param requirements the same on every rank
     */
    public GinDeviceCommunicator device(GinRequirements requirements) {
        return resources.add(new GinDeviceCommunicator(communicator, requirements));
    }

    /** Returns when all ranks have called it; for set-up and end, not for blocks. */
    public void barrier() {
        control.barrier();
    }

    /** Leaves the group, after what is under way is through. Ranks that leave together call {@link #barrier} before. */
    @Override
    public void close() {
        agent.remove(communicator, stallDeadline);
        resources.close();
    }
}
