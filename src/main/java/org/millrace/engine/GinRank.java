package org.millrace.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Map;
import org.apache.logging.log4j.LogManager;
import org.millrace.CommunicatorListener;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.Sleeper;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.bootstrap.JoinOptions;
import org.millrace.bootstrap.RemoteFailure;
import org.millrace.config.Configuration;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.LsaMemory;
import org.millrace.gin.GinAgent;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.GinException;
import org.millrace.gin.GinOptions;
import org.millrace.gin.HostWindowMemory;
import org.millrace.gin.Window;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.connection.FullMesh;
import org.millrace.rehearsal.Recording;
import org.millrace.trace.JoinTrace;

/**
 * Rank of a group that uses GIN (GPU-initiated networking) on the emulated device. It joins the other ranks and
 * connects to each of them. One of its threads executes the descriptors of the operations that kernels post. Ranks may
 * be threads, processes or machines.
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
     * Joins a group of ranks. Returns when all ranks are connected.
     *
     * @param rendezvous address of the rendezvous, as for {@link org.millrace.Millrace}
     * @param settings   settings that override the environment
     * @throws org.millrace.MillraceException if the group cannot be formed
     */
    public static GinRank join(String rendezvous, int rank, int size, Map<String, String> settings) {
        Configuration configuration = Configuration.load(settings);
        EngineResources resources = new EngineResources();
        ControlPlane control = null;
        EngineTrace.open(configuration, rank, size);
        try {
            control = resources.add(ControlPlane.join(rendezvous, rank, size,
                    JoinOptions.of(configuration, CommunicatorListener.STANDARD_ERROR)));
            ControlPlane joined = control;
            JoinTrace setUp = resources.add(control.traceSetUp());
            Agreement agreement = Agreement.reach(control, configuration);
            EngineOptions options = EngineOptions.decide(configuration, agreement);
            Recording.open(configuration, LogManager.getLogger(GinRank.class)::warn);
            long number = EngineTrace.number(control);
            resources.add(new EngineTrace(number, control));
            Network network = resources.add(Networks.open(configuration, agreement));
            FullMesh mesh;
            try (Listener here = network.listen()) {
                mesh = FullMesh.connect(network, here, control.allGather(here.address()), rank, KEY, number,
                        options.connectDeadline(),
                        () -> joined.failure() == null ? null : new GinException(joined.failure().message()));
                control.barrier(); // no rank may use or leave the group before its peers are connected
            }
            setUp.close();
            GinCommunicator communicator = new GinCommunicator(number, rank, mesh.senders(), mesh.receivers(),
                    GinOptions.defaults().withCheck(options.check()), failure -> joined.fail(failure));
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
     * Fails the communicator when a peer reports a failure. Without the report, this rank could miss the failure if it
     * has read the shutdown message of a connection, or if it has nothing in flight to the peer. Kernels that wait for
     * the peer's signals end soon after the report. Without the report, they would wait until their deadline.
     */
    private static void hear(ControlPlane control, GinCommunicator communicator) {
        RemoteFailure told = control.failure();
        if (told != null) {
            communicator.failSoon(new GinException(told.message()));
        }
    }

    /** Returns the number of this rank. */
    public int rank() {
        return communicator.rank();
    }

    public int size() {
        return communicator.ranks();
    }

    /** Returns the communicator that executes this rank's descriptors. */
    public GinCommunicator communicator() {
        return communicator;
    }

    /**
     * Registers new memory as a window. Collective: all ranks must register their windows in the same order.
     *
     * @param arena owner of the memory; must not be closed before this rank
     */
    public LocalWindow window(Arena arena, long bytes) {
        MemorySegment memory = LsaMemory.allocate(arena, bytes);
        return new LocalWindow(communicator.register(HostWindowMemory.register(network, memory)), memory);
    }

    /** Window, and the memory that this rank contributes to it. */
    public record LocalWindow(Window window, MemorySegment memory) {
    }

    /**
     * Creates a device communicator. The close of this rank also closes the device communicator. Collective.
     *
     * @param requirements requirements, the same on each rank
     */
    public GinDeviceCommunicator device(GinRequirements requirements) {
        return resources.add(new GinDeviceCommunicator(communicator, requirements));
    }

    /**
     * Waits until all ranks have called this method. Used during set-up and close; blocks of kernels must not use it.
     */
    public void barrier() {
        control.barrier();
    }

    /**
     * Leaves the group after all descriptors in flight have completed. Ranks that leave together must first call
     * {@link #barrier}.
     */
    @Override
    public void close() {
        agent.remove(communicator, stallDeadline);
        resources.close();
    }
}
