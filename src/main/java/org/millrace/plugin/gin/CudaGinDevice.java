package org.millrace.plugin.gin;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.agent.Agent;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleStrategy;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CurrentDevice;
import org.millrace.cuda.DeviceMemory;
import org.millrace.cuda.HostRegistration;
import org.millrace.cuda.PinnedMemory;
import org.millrace.cuda.driver.CopyKernel;
import org.millrace.cuda.driver.CopyQueue.Counts;
import org.millrace.cuda.driver.CudaDriver;
import org.millrace.cuda.driver.ForeignMemory;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.gin.GinAgent;
import org.millrace.gin.HostWindowMemory;
import org.millrace.gin.PassWatch;
import org.millrace.gin.WindowMemory;
import org.millrace.net.Network;
import org.millrace.plugin.gin.CudaMemory.PeerMappings;
import org.millrace.plugin.host.CopyContext;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.plugin.host.NcclLog;

/** A GPU as the device of GIN's kernels. */
final class CudaGinDevice implements GinDevice {

    /**
     * Maximum duration of a normal pass of the agent. A longer pass is logged. In a longer pass, a driver call has
     * waited for a kernel.
     */
    private static final Duration PASS = Duration.ofSeconds(3);

    private final CudaDriver driver;
    private final CudaDevice device;
    private final boolean direct;
    private final boolean shared;
    private final long chunkBytes;
    private final GinAgent agent;
    private final @Nullable CopyKernel copyKernel;
    private final AgentRunner runner;
    private final PassWatch watch;
    private final Arena arena = Arena.ofShared();
    private final Map<Long, DeviceMemory> allocated = new ConcurrentHashMap<>();
    private final Map<Way, CudaMover> moverOf = new ConcurrentHashMap<>();
    /**
     * Context in which copy engines make copies. Null if this context could not be created; copies then use the
     * program's context.
     */
    private final @Nullable CopyContext copyContext;

    /**
     * Key of a mover: the network that carries a window's staged bytes, and the context in which the mover's copies are
     * made.
     */
    private record Way(Network network, long context) {
    }

    /**
     * @param direct     whether to map peers' memory if possible
     * @param shared     whether staged bytes and signals of peers on this host lie in memory that this rank shares with
     *                   the peers
     * @param chunkBytes size of a staging buffer in bytes
     * @param stay       time that the kernel for small copies stays on the GPU after its last outgoing copy. If this
     *                   time is zero, no such kernel runs
     * @param idle       idle strategy of the agent's thread
     */
    CudaGinDevice(CudaDriver driver, CudaDevice device, boolean direct, boolean shared, long chunkBytes,
            CopyKernel.Stay stay, IdleStrategy idle) {
        this.driver = driver;
        this.device = device;
        this.direct = direct;
        this.shared = shared;
        this.chunkBytes = chunkBytes;
        this.copyKernel = stay.linger().isZero() ? null : copyKernel(stay);
        this.copyContext = openContext(driver, device);
        this.agent = new GinAgent("gin-" + device.index());
        this.runner = AgentRunner.start(new OnDevice(agent, driver, device), idle);
        this.watch = new PassWatch(agent, runner.thread(), PASS,
                where -> NcclLog.warn("GIN: " + where
                        + ". A call of the driver's that waits for a kernel which waits for this thread blocks in "
                        + "this state: a module that is loaded, or memory that is allocated or freed, while the "
                        + "kernel runs"));
    }

    private static @Nullable CopyContext openContext(CudaDriver driver, CudaDevice device) {
        try {
            return CopyContext.open(driver, device.index());
        } catch (MillraceException e) {
            NcclLog.warn("GIN: copies of " + device + " share the program's context, where they may wait for kernels ("
                    + e.getMessage() + ")");
            return null;
        }
    }

    private long programsContext() {
        try (CurrentDevice _ = device.makeCurrent(); Arena out = Arena.ofConfined()) {
            return driver.currentContext(out.allocate(ValueLayout.JAVA_LONG));
        }
    }

    private @Nullable CopyKernel copyKernel(CopyKernel.Stay stay) {
        try (CurrentDevice _ = device.makeCurrent()) {
            return CopyKernel.load(driver, device, stay);
        } catch (MillraceException e) {
            NcclLog.info("GIN: the copy engines of " + device + " make small copies too (" + e.getMessage() + ")");
            return null;
        }
    }

    /** Makes a device current on the agent's thread, and then does the work of a {@link GinAgent}. */
    private static final class OnDevice implements Agent {
        private final GinAgent agent;
        private final CudaDriver driver;
        private final CudaDevice device;
        private @Nullable CurrentDevice current;

        OnDevice(GinAgent agent, CudaDriver driver, CudaDevice device) {
            this.agent = agent;
            this.driver = driver;
            this.device = device;
        }

        @Override
        public int doWork() {
            if (current == null) {
                // The device stays current until the thread ends.
                current = device.makeCurrent();
            }
            return agent.doWork();
        }

        @Override
        public String name() {
            return agent.name();
        }

        @Override
        public void onFailure(Throwable failure) {
            agent.onFailure(failure);
        }

        @Override
        public void onClose() {
            // The current context may be the copy context, which is closed next.
            driver.leaveContext();
        }
    }

    @Override
    public String copies() {
        Counts engines = moverOf.values().stream().map(CudaMover::counts).reduce(Counts.NONE, Counts::plus);
        return copyKernel == null ? engines.toString() : engines + "; " + copyKernel;
    }

    @Override
    public GinAgent agent() {
        return agent;
    }

    @Override
    public long allocate(long bytes) {
        DeviceMemory memory = device.allocate(bytes);
        device.runtime().fill(memory.segment(), (byte) 0);
        allocated.put(memory.address(), memory);
        return memory.address();
    }

    @Override
    public void free(long address) {
        allocated.remove(address).close();
    }

    @Override
    public Shared share(long bytes) {
        PinnedMemory pinned =
                PinnedMemory.allocate(device, bytes, arena, PinnedMemory.Flag.PORTABLE, PinnedMemory.Flag.MAPPED);
        // The segment may have the global scope, because the memory is freed only after the agent has released it.
        return new Shared(NativeMemory.at(pinned.host().address(), bytes), pinned.device().address());
    }

    @Override
    public boolean sharesMemory() {
        return shared;
    }

    @Override
    public Pinned pin(MemorySegment memory) {
        HostRegistration registration = HostRegistration.register(device, memory);
        return new Pinned(registration.device().address(), registration::close);
    }

    @Override
    public boolean settle() {
        try {
            moverOf.values().forEach(CudaMover::settle);
            return true;
        } catch (MillraceException e) {
            NcclLog.warn("GIN: copies are not complete on " + device + ": " + e.getMessage());
            return false;
        }
    }

    @Override
    public void store(long address, MemorySegment bytes) {
        device.runtime().copy(allocated.get(address).segment().asSlice(0, bytes.byteSize()), bytes);
    }

    @Override
    public List<ForeignMemory.Ticket> invite(long address, long bytes, int type) {
        if (!direct) {
            return List.of();
        }
        try (CurrentDevice _ = device.makeCurrent()) {
            return ForeignMemory.export(driver, address, bytes);
        } catch (MillraceException e) {
            // Peers can rarely map host memory, so a failure is not logged for host memory.
            if (type != plugin_h.NCCL_PTR_HOST()) {
                NcclLog.info("GIN: peers cannot map the window at 0x" + Long.toHexString(address) + " ("
                        + e.getMessage() + "): its bytes are staged");
            }
            return List.of();
        }
    }

    @Override
    public WindowMemory window(Network network, long address, int type, int rank, GinExchange.Offer[] all) {
        long bytes = all[rank].bytes();
        PeerMappings peers = map(rank, all);
        // A GPU must copy memory that a processor cannot access, whatever the type of the memory.
        return type == plugin_h.NCCL_PTR_HOST() && HostAccess.isPossible(address, bytes)
                ? new CudaHostMemory(mover(network, address, type),
                        HostWindowMemory.register(network, NativeMemory.at(address, bytes)), address, peers)
                : new CudaWindowMemory(mover(network, address, type), address, bytes, peers);
    }

    /**
     * Maps each peer's part of the window, where that is possible. Bytes for a peer are staged if the peer's part is
     * not mapped.
     */
    private PeerMappings map(int rank, GinExchange.Offer[] all) {
        @Nullable
        ForeignMemory[] peers = new ForeignMemory[all.length];
        long[] bytes = new long[all.length];
        for (int peer = 0; peer < peers.length; peer++) {
            bytes[peer] = all[peer].bytes();
            if (peer != rank && direct && !all[peer].tickets().isEmpty()) {
                peers[peer] = map(peer, all[peer].tickets());
            }
        }
        return new PeerMappings(peers, bytes);
    }

    private @Nullable ForeignMemory map(int peer, List<ForeignMemory.Ticket> tickets) {
        try (CurrentDevice _ = device.makeCurrent()) {
            return ForeignMemory.open(driver, device.index(), tickets);
        } catch (MillraceException e) {
            NcclLog.info("GIN: a window of rank " + peer + " cannot be mapped here (" + e.getMessage()
                    + "): bytes for it are staged");
            return null;
        }
    }

    private CudaMover mover(Network network, long address, int type) {
        long context = copyContext != null && (type == plugin_h.NCCL_PTR_HOST() || driver.isOfAllContexts(address))
                ? copyContext.handle()
                : programsContext();
        return moverOf.computeIfAbsent(new Way(network, context),
                unused -> new CudaMover(driver, device, context, network, chunkBytes, copyKernel));
    }

    @Override
    public void close() {
        watch.close();
        runner.close();
        moverOf.values().forEach(CudaMover::close);
        if (copyContext != null) {
            copyContext.close();
        }
        if (copyKernel != null) {
            copyKernel.close();
        }
        allocated.values().forEach(DeviceMemory::close);
        arena.close();
    }

    /**
     * Checks whether this process's threads may access memory. Host memory of {@code cuMemCreate} admits only devices
     * and processors that were granted access. Any other access ends the process.
     */
    static final class HostAccess {

        private static final Path MAPPINGS = Path.of("/proc/self/maps");

        private HostAccess() {}

        /** {@return whether a range of addresses is mapped for reading and writing, without gaps} */
        public static boolean isPossible(long address, long bytes) {
            try {
                return isPossible(address, bytes, Files.readAllLines(MAPPINGS));
            } catch (IOException none) {
                return true; // Linux's list of mappings cannot be read, so host memory counts as accessible
            }
        }

        /**
         * Performs the check with the lines of {@code /proc/self/maps} ({@code proc(5)}), which are sorted by address.
         */
        static boolean isPossible(long address, long bytes, Iterable<String> mappings) {
            long reached = address;
            for (String mapping : mappings) {
                int dash = mapping.indexOf('-');
                int space = mapping.indexOf(' ');
                long first = Long.parseUnsignedLong(mapping, 0, dash, 16);
                long end = Long.parseUnsignedLong(mapping, dash + 1, space, 16);
                boolean open = mapping.startsWith("rw", space + 1);
                if (open && Long.compareUnsigned(first, reached) <= 0 && Long.compareUnsigned(end, reached) > 0) {
                    reached = end;
                }
                if (reached - address >= bytes) {
                    return true;
                }
            }
            return false;
        }
    }
}
