package org.millrace.plugin.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.NetDeviceHandle;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinGpuContext;
import org.millrace.abi.gin.GinIndices;
import org.millrace.abi.gin.GinQueueMemory;
import org.millrace.cuda.driver.ForeignMemory;
import org.millrace.gin.GinCommunicator;
import org.millrace.gin.GinCommunicator.FailureListener;
import org.millrace.gin.GinContext;
import org.millrace.gin.GinException;
import org.millrace.gin.GinOptions;
import org.millrace.gin.GinServed;
import org.millrace.gin.Window;
import org.millrace.gin.WindowMemory;
import org.millrace.net.Network;
import org.millrace.net.connection.FullMesh;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.plugin.host.NcclLog;
import org.millrace.plugin.loss.CommunicatorLosses;
import org.millrace.plugin.loss.LostEnd;

/**
 * A GIN {@code collComm} in NCCL's terms: the connections of this rank to all ranks of a communicator, with this rank's
 * windows and contexts.
 */
public final class GinGroup implements AutoCloseable {

    private static final Duration CONTROL_DEADLINE = Duration.ofSeconds(60);
    /**
     * Maximum time that a closing group waits for its operations in flight. A warm-up's group also waits at most this
     * time for a message of its peer.
     */
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(2);
    private static final int RMA_QUEUE_SIZE = 256;

    private final int rank;
    private final Network network;
    private final GinDevice device;
    private final GinExchange exchange;
    private final GinSharedMemory shared;
    private final GinStaging staging;
    private final GinSignals signals;
    private final GinCommunicator communicator;
    private final List<Window> windows = new CopyOnWriteArrayList<>();
    private final Map<Integer, RmaQueue> rma = new ConcurrentHashMap<>();
    /**
     * Lost connections of NCCL's communicator; null for a warm-up's group. A warm-up's work is neither counted nor
     * logged.
     */
    private final @Nullable CommunicatorLosses losses;
    private final CommunicatorLosses.Leaver leaver = lostPeer -> {};
    private int contexts;

    GinGroup(int rank, Network network, GinDevice device, FullMesh data, FullMesh control, GinOptions options,
            @Nullable CommunicatorLosses losses) {
        this.rank = rank;
        this.losses = losses;
        this.network = network;
        this.device = device;
        this.exchange = new GinExchange(rank, control, losses != null ? CONTROL_DEADLINE : CLOSE_TIMEOUT);
        this.shared = new GinSharedMemory(device, exchange);
        this.staging = new GinStaging(shared, exchange);
        this.communicator = new GinCommunicator(losses == null ? 0 : losses.communicator(), rank, data.senders(),
                data.receivers(), options,
                losses != null ? new Reports() : failure -> NcclLog.trace("GIN: " + NcclLog.describe(failure)));
        this.signals = new GinSignals(this.exchange, shared, communicator);
        if (losses != null) {
            losses.opened(leaver);
        }
        communicator.upkeep(exchange::keepUp);
        device.agent().add(communicator);
    }

    /** Totals of all GIN contexts that NCCL has had in this process. */
    public static final class Totals {
        private static final Set<GinContext> OPEN = new HashSet<>();
        private static GinServed closed = GinServed.NONE;

        private Totals() {}

        private static synchronized void opened(GinContext context) {
            OPEN.add(context);
        }

        /** Adds the totals of a context after the agent has released it. */
        private static synchronized void closed(GinContext context) {
            if (OPEN.remove(context)) {
                closed = closed.plus(context.served());
            }
        }

        /** Returns the sum over all contexts, including destroyed contexts. */
        public static synchronized GinServed served() {
            return OPEN.stream().map(GinContext::served).reduce(closed, GinServed::plus);
        }
    }

    /** Reports failures to NCCL's log. Also records them as losses, for programs that do not ask for NCCL's error. */
    private final class Reports implements FailureListener {
        @Override
        public void failed(Throwable failure) {
            NcclLog.warn("GIN: " + NcclLog.describe(failure));
            losses.add(LostEnd.ofGin(NcclLog.describe(failure), () -> communicator.waits().isAwaited(),
                    () -> communicator.waits().release()));
        }

        @Override
        public boolean hasKernels() {
            return true;
        }

        @Override
        public void stalled(String what) {
            NcclLog.warn(
                    "GIN: " + what + ". A kernel that another kernel of its process must start first blocks in this "
                            + "state: set CUDA_MODULE_LOADING=EAGER. Copies that wait behind other streams'"
                            + " kernels do, too: CUDA_DEVICE_MAX_CONNECTIONS=32 helps");
        }
    }

    GinCommunicator communicator() {
        return communicator;
    }

    /** Registers a window that receivers read only after a signal. */
    Window register(long address, long bytes, int type) {
        return register(address, bytes, type, false);
    }

    /**
     * Registers this rank's part of a window. Returns when all ranks have registered their parts.
     *
     * @param strict whether receivers possibly read the data of a put before the signal of the put has arrived
     */
    synchronized Window register(long address, long bytes, int type, boolean strict) {
        List<ForeignMemory.Ticket> tickets = device.invite(address, bytes, type);
        try {
            GinExchange.Offer[] all = exchange.exchange(new GinExchange.Offer(bytes, tickets));
            Window window = register(device.window(network, address, type, rank, all));
            if (!strict) {
                window.relax();
            }
            windows.add(window);
            // This call exchanges messages with all ranks. Each rank sends its messages after the rank has mapped the
            // window, so no rank needs the tickets after this call.
            staging.connect(communicator, window);
            if (losses != null) {
                NcclLog.info("GIN: rank " + rank + ", " + window + " (" + window.memory() + "): " + reach(window));
            }
            return window;
        } finally {
            tickets.forEach(ForeignMemory.Ticket::close);
        }
    }

    /** Returns a readable description of the path of a window's bytes to each peer. */
    private String reach(Window window) {
        StringBuilder mapped = new StringBuilder();
        StringBuilder others = new StringBuilder();
        for (int peer = 0; peer < communicator.ranks(); peer++) {
            if (peer != rank) {
                (window.memory().reach(peer) > 0 ? mapped : others).append(' ').append(peer);
            }
        }
        return (mapped.isEmpty() ? "" : "mapped here of rank" + mapped)
                + (mapped.isEmpty() || others.isEmpty() ? "" : ", ")
                + (others.isEmpty() ? "" : "bytes travel to rank" + others);
    }

    private Window register(WindowMemory memory) {
        try {
            return communicator.register(memory);
        } catch (GinException failed) {
            memory.close();
            throw failed;
        }
    }

    void deregister(Window window) {
        if (windows.remove(window)) {
            communicator.deregister(window);
        }
    }

    /**
     * Contexts that kernels reach through one device handle.
     *
     * @param contexts  contexts that the agent serves
     * @param allocated addresses of device memory that is freed with the contexts
     */
    record Served(GinGroup group, List<GinContext> contexts, MemorySegment deviceHandle,
            List<Long> allocated) implements AutoCloseable {

        @Override
        public void close() {
            contexts.forEach(group::remove);
            allocated.forEach(group.device::free);
        }
    }

    /** Contexts with operations that the host starts. */
    record Rma(GinGroup group, List<RmaQueue> queues) implements AutoCloseable {
        @Override
        public void close() {
            queues.forEach(queue -> {
                group.remove(queue.context());
                group.rma.remove(queue.context().number());
            });
        }
    }

    private void add(GinContext context) {
        communicator.add(context);
        if (losses != null) {
            Totals.opened(context);
        }
    }

    private void remove(GinContext context) {
        communicator.remove(context);
        if (losses != null) {
            Totals.closed(context);
            NcclLog.info("GIN: rank " + rank + ", context " + context.number() + ": " + context.served());
        }
    }

    synchronized Rma createRma(int count) {
        List<RmaQueue> made = new ArrayList<>();
        int ranks = communicator.ranks();
        for (int i = 0; i < count; i++) {
            GinQueueMemory queues =
                    GinQueueMemory.of(device.share(GinQueueMemory.bytes(RmaQueue.FORMAT, ranks, RMA_QUEUE_SIZE)).host(),
                            RmaQueue.FORMAT, ranks, RMA_QUEUE_SIZE);
            MemorySegment cis = device.share((long) ranks * Integer.BYTES).host();
            GinContext context = new GinContext(contexts++, queues, cis, device.share(Long.BYTES).host(),
                    device.share(Long.BYTES).host(), ranks);
            RmaQueue queue = new RmaQueue(context, queues, GinIndices.of(cis, ranks), ranks);
            add(context);
            rma.put(context.number(), queue);
            made.add(queue);
        }
        return new Rma(this, made);
    }

    /** Returns whether an operation that the host started is complete. Throws if the communicator has failed. */
    boolean isDone(long request) {
        communicator.throwIfFailed();
        RmaQueue queue = rma.get(RmaQueue.Request.context(request));
        if (queue == null) {
            throw new IllegalArgumentException(
                    "the context of request 0x" + Long.toHexString(request) + " was destroyed");
        }
        return queue.isDone(RmaQueue.Request.peer(request), RmaQueue.Request.index(request));
    }

    /**
     * Creates contexts with memory that kernels and the agent share. Returns when all ranks have created their
     * contexts.
     *
     * @param queueSize number of descriptors for each peer, a power of two
     */
    synchronized Served createContexts(GinDescriptorFormat format, int count, int signals, int counters,
            int queueSize) {
        int ranks = communicator.ranks();
        long stride = format.contextBytes();
        List<GinContext> made = new ArrayList<>();
        List<Long> allocated = new ArrayList<>();
        GinSignals.Contexts signalled = this.signals.create(count, Math.max(signals, 1));
        long forKernels = device.allocate(count * stride);
        allocated.add(forKernels);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment all = arena.allocate(count * stride, GinGpuContext.ALIGNMENT);
            for (int i = 0; i < count; i++) {
                made.add(context(format, GinGpuContext.of(all.asSlice(i * stride, stride)), ranks, signals, counters,
                        queueSize, allocated,
                        signalled.mine() == null ? device.share((long) Math.max(signals, 1) * Long.BYTES)
                                : signalled.signals(i)));
                reach(made.get(i), i, signalled);
            }
            device.store(forKernels, all);
        }
        made.forEach(this::add);
        MemorySegment handle =
                NativeMemory.at(Arena.global().allocate(NetDeviceHandle.BYTES, NetDeviceHandle.ALIGNMENT).address(),
                        NetDeviceHandle.BYTES);
        NetDeviceHandle.of(handle).set(NetDeviceHandle.GIN_PROXY, 0, forKernels, count * stride, false);
        return new Served(this, made, handle, allocated);
    }

    private GinContext context(GinDescriptorFormat format, GinGpuContext seen, int ranks, int signals, int counters,
            int queueSize, List<Long> allocated, GinDevice.Shared signalled) {
        GinDevice.Shared queues = device.share(GinQueueMemory.bytes(format, ranks, queueSize));
        GinDevice.Shared cis = device.share((long) ranks * Integer.BYTES);
        GinDevice.Shared counted = device.share((long) Math.max(counters, 1) * Long.BYTES);
        long pis = take((long) ranks * Integer.BYTES, allocated);
        seen.set(ranks, queueSize, queues.device(), pis, cis.device(), counted.device(), signalled.device());
        if (seen.hasSignalOffsets()) {
            seen.setGets(take((long) Math.max(signals, 1) * Long.BYTES, allocated),
                    take((long) ranks * Integer.BYTES, allocated), take((long) ranks * Integer.BYTES, allocated));
        }
        return new GinContext(contexts++, GinQueueMemory.of(queues.host(), format, ranks, queueSize), cis.host(),
                counted.host(), signalled.host(), ranks);
    }

    private void reach(GinContext context, int index, GinSignals.Contexts signalled) {
        for (int peer = 0; peer < communicator.ranks(); peer++) {
            context.reach(peer, signalled.of(peer, index, rank));
        }
    }

    private long take(long bytes, List<Long> allocated) {
        long address = device.allocate(bytes);
        allocated.add(address);
        return address;
    }

    @Override
    public void close() {
        exchange.close();
        String copies = device.copies();
        if (losses != null) {
            losses.ending(leaver);
            if (copies != null) {
                NcclLog.info("GIN: rank " + rank + ", " + copies);
            }
        }
        device.agent().remove(communicator, CLOSE_TIMEOUT);
        if (!device.settle()) {
            throw new GinException(
                    "rank " + rank + ": copies of a closed group are not complete; its memory is not freed");
        }
        // NCCL 2.28 does not deregister windows that the user left registered
        windows.forEach(window -> window.memory().close());
        windows.clear();
        shared.close();
    }
}
