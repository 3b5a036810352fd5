package org.millrace.engine;

import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.bootstrap.LaunchCounts;
import org.millrace.bootstrap.Recovery;
import org.millrace.config.Configuration;
import org.millrace.device.DeviceCommunicator;
import org.millrace.engine.EngineOptions.TransferOptions;
import org.millrace.engine.TransportConnections.PeerMessages;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.shm.SharedHeap;
import org.millrace.net.shm.ShmOptions;
import org.millrace.proxy.ProxyAgent.Acknowledgement;
import org.millrace.rehearsal.Recording;
import org.millrace.transport.EndSettings.Heap;
import org.millrace.transport.EndSettings.SharedSlotSizes;
import org.millrace.transport.EndSettings;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;

/**
 * Parts of a communicator: control plane, network, connections, and the communicator's share of the rank's threads. If
 * the set-up of a part fails, the parts that were opened earlier are closed again.
 */
final class CommunicatorParts {

    private static final Logger LOG = LogManager.getLogger(CommunicatorParts.class);

    private final EngineResources resources = new EngineResources();
    final Configuration configuration;
    final ControlPlane control;
    /** Recovery of the group; it outlives the other parts, and the owner of the parts closes it. */
    final Recovery recovery;
    /** Number of the communicator: the same on all ranks of the group, and different for each communicator. */
    private final long number;
    final EngineTrace trace;
    final EngineOptions options;
    final EngineThreads threads;
    /** This communicator, as its kernels see it. */
    final DeviceCommunicator device;
    final CommunicatorFailure failure;
    final Connectors connectors;
    final LaunchCounts launched;
    final Attendance attendance;
    final Registrations registrations;
    /** Heap of the device's allocations; null if no other process maps it. */
    private @Nullable SharedHeap heap;
    /** Number of this host's processes that run ranks of the group. */
    private int processes = 1;
    /**
     * Acknowledgement of the proxies: each proxy has completed a pass that began after the failure. Null until
     * {@link #proxiesStand} requests the acknowledgement. Device's thread only.
     */
    private @Nullable Acknowledgement passed;
    /** Collectives over networks that reduce data; null if the communicator uses no such network. */
    final @Nullable CollNet collNet;

    /**
     * Creates the parts. Collective: all ranks of the group must call this constructor.
     *
     * @param control control plane; begins to close when this object is closed, or if this constructor fails
     * @param shared  threads of the communicator whose split created this communicator; null if this communicator is
     *                not the result of a split
     * @param release executor that closes the resources if this constructor fails
     */
    CommunicatorParts(ControlPlane control, Configuration configuration, @Nullable EngineThreads shared,
            Executor release) {
        this.control = control;
        this.configuration = configuration;
        try {
            // The arena is closed after the threads have stopped, because kernels access the work in the arena by
            // address.
            Arena arena = resources.add(Arena.ofShared());
            Agreement agreement = Agreement.reach(control, configuration);
            Recording.open(configuration, LOG::warn);
            number = EngineTrace.number(control);
            options = EngineOptions.decide(configuration, agreement);
            device = new DeviceCommunicator(arena, control.rank(), agreement.nodes(), options.layout(),
                    Math.toIntExact(options.transfers().chunkBytes()),
                    Topology.channels(control.size(), options.channels()), options.workFifoBytes(),
                    options.firstWork());
            Topology.fill(device, agreement.onOneHost());
            trace = resources.add(new EngineTrace(number, control));
            failure = new CommunicatorFailure(control, device, this::failed);
            Network network = control.size() > 1 ? resources.add(Networks.open(configuration, agreement)) : null;
            Listener here = control.size() > 1 ? resources.add(network.listen()) : null;
            CollNetTransport collNetTransport =
                    control.size() > 1 ? CollNet.transport(configuration, network, here) : null;
            TransportConnections connections = control.size() > 1
                    ? resources.add(connections(agreement.host(), network, here, collNetTransport, shared))
                    : null;
            registrations = resources.add(new Registrations(control.rank(), connections, options.ptrThreshold(),
                    options.registeredThreshold()));
            collNet = control.size() > 1 ? CollNet.of(configuration, options.algorithms(), agreement.nodes(), device,
                    connections, collNetTransport) : null;
            threads = resources
                    .add(shared == null ? new EngineThreads(control.rank(), options, heap, processes) : shared.share());
            if (shared == null && heap != null) {
                threads.device.allocateFrom(heap);
            }
            this.connectors = new Connectors(device, connections, control.setUpTime(), failure, threads.proxies,
                    threads::count, threads.connectorService, () -> here == null ? 0 : here.dropped(),
                    resources.add(new DirectTraces(number)));
            launched = new LaunchCounts(control, failure);
            attendance = new Attendance(control, launched, options.stallDeadline(), options.lateDeadline());
            // The recovery outlives the resources and is not closed with them. It is opened last, because the catch
            // block would not close it.
            recovery = Recovery.open(control);
        } catch (RuntimeException | Error thrown) {
            control.fail(thrown);
            release.execute(() -> {
                resources.close();
                control.closeLater();
            });
            throw thrown;
        }
    }

    private TransportConnections connections(String host, Network network, Listener here,
            CollNetTransport collNetTransport, @Nullable EngineThreads shared) {
        List<Transport> transports = Transports.of(options.sharedMemory(), options.unpacking(),
                ShmOptions.defaults().directory(), network, here);
        List<Transport> offered = new ArrayList<>(transports);
        offered.add(collNetTransport);
        List<PeerInfo> peers = PeerInfo.exchange(control.rank(), host, offered, control::allGather);
        processes = processes(peers, control.rank());
        heap = shared == null ? Transports.heap(control.rank(), peers)
                : shared.device.heap() == null ? null : shared.device.heap().share();
        if (heap != null) {
            resources.add(heap);
        }
        return new TransportConnections(control.rank(), peers, transports, new ControlMessages(control),
                new EndSettings(options.layout(), options.firstStep(), failure, failure::failOf, sharedSlots(),
                        options.transfers().groups() ? options.channels() : 0,
                        heap == null ? null : new Heap(heap.segment(), heap.name(), heap.doorbell()),
                        device.abortFlag(), options.check(), number));
    }

    private static int processes(List<PeerInfo> peers, int rank) {
        String host = peers.get(rank).host();
        return (int) peers.stream()
                .filter(peer -> peer.host().equals(host))
                .mapToLong(PeerInfo::pid)
                .distinct()
                .count();
    }

    private void failed(Throwable why) {
        trace.failed(why);
        EngineThreads running = threads; // null until the constructor has created the threads
        if (running != null) {
            running.device.wake(); // Wakes the device, so that its kernels end.
        }
    }

    /** Returns the sizes of shared slots, or null if each connection has its own slots. */
    private @Nullable SharedSlotSizes sharedSlots() {
        TransferOptions transfers = options.transfers();
        return transfers.sharesSlots()
                ? new SharedSlotSizes(Math.toIntExact(transfers.chunkBytes()), control.size() - 1)
                : null;
    }

    /** Adds a resource, which is closed before all resources that were added earlier. */
    <T extends AutoCloseable> T add(T resource) {
        return resources.add(resource);
    }

    /**
     * Completes the set-up of the group of ranks. From now on, a rank starts an operation, or connects to a peer, only
     * when its program calls the operation. A program may call late, so the late deadline applies from now on.
     */
    void begin() {
        connectors.serve(attendance, options.lateDeadline(), options.connectDeadline());
    }

    /**
     * Returns whether the proxies have ended all passes that began before the abort flag was set. The flag is already
     * set. Later passes transfer nothing. The device's thread calls this method repeatedly.
     */
    boolean proxiesStand() {
        if (passed == null) {
            passed = threads.proxies.remove(List.of(), Duration.ZERO);
        }
        return passed.await(Duration.ZERO);
    }

    /**
     * Stops the proxies after a failure. Before the stop, peers may still read operands, and a network may still write
     * to operands even while no proxy runs. After the stop, nothing accesses an operand.
     */
    void stopProxiesAfterFailure() {
        if (failure.get() != null && !stopProxies(Duration.ZERO)) {
            throw new MillraceException(
                    "rank " + control.rank() + ": the proxies did not stop, and registered memory must not be freed",
                    failure.get());
        }
    }

    /** Stops making connections, and stops the proxies. Returns false if a thread does not acknowledge its stop. */
    private boolean stopProxies(Duration patience) {
        if (!connectors.stop(EngineThreads.ACKNOWLEDGE_DEADLINE)) {
            return false;
        }
        return threads.release(connectors.proxies(), patience);
    }

    /**
     * Releases everything. Called once, when no kernel is on the device. Does not wait until the control plane is
     * closed, because the close takes two seconds if a signal has stopped another rank's process.
     */
    void tearDown() {
        Duration most = options.stallDeadline().compareTo(options.closeDeadline()) < 0 ? options.stallDeadline()
                : options.closeDeadline();
        Duration patience = failure.get() == null ? most : Duration.ZERO;
        if (!stopProxies(patience)) {
            leaveOpen("the proxies did not stop");
            return;
        }
        try {
            connectors.close();
            resources.close();
        } finally {
            control.closeLater();
        }
    }

    /**
     * Leaves all resources open. Memory that a thread may still access is never freed, because a leak is better than a
     * crash.
     */
    void leaveOpen(String why) {
        LOG.error("rank {}: {}; memory, connections and threads are left open", control.rank(), why);
        control.closeLater();
    }

    /** Messages between the ends of connections. The control plane carries these messages. */
    private record ControlMessages(ControlPlane control) implements PeerMessages {

        @Override
        public void send(int peer, long tag, byte[] data) {
            control.send(peer, tag, data);
        }

        @Override
        public byte @Nullable [] receive(int peer, long tag) {
            return control.receive(peer, tag);
        }
    }
}
