package org.millrace.plugin.takeover;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashMap;
import java.util.Map;
import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.config.Settings;
import org.millrace.cuda.DeviceSegments;
import org.millrace.cuda.driver.CopyOrder;
import org.millrace.cuda.driver.CopyQueue;
import org.millrace.cuda.driver.CudaDriver;
import org.millrace.cuda.driver.ForeignMemory;
import org.millrace.net.DeviceRegion;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.plugin.host.CopyContext;
import org.millrace.plugin.host.NcclLog;
import org.millrace.proxy.ProxyAgent;

/**
 * Slots in GPU memory, and the copies between them and host memory. Each proxy agent has one queue of copies for each
 * direction and CUDA context. The agent's connections share these queues.
 */
public final class DeviceSlots implements AutoCloseable {

    private final CudaDriver driver;
    private final Map<Owner, AgentCopies> copies = new HashMap<>();
    private final Map<Integer, CopyContext> contexts = new HashMap<>();
    private boolean refused;

    private record Owner(ProxyAgent agent, boolean receives, long context) {
    }

    public DeviceSlots(CudaDriver driver) {
        this.driver = driver;
    }

    /**
     * Returns the slots of one connection with their staging memory. Called by the thread on which NCCL registers the
     * slots, with the slots' CUDA context current.
     *
     * @param agent agent that will serve the connection
     */
    Slots slots(ProxyAgent agent, boolean receives, Network network, long address, long bytes) {
        long own = driver.isOfAllContexts(address) ? copyContext(driver.currentDevice()) : 0;
        AgentCopies shared = copies(agent, receives, own == 0 ? currentContext() : own);
        return new Slots(new Memory(driver, shared, address, bytes), network, driver);
    }

    private long currentContext() {
        try (Arena arena = Arena.ofConfined()) {
            return driver.currentContext(arena.allocate(ValueLayout.JAVA_LONG));
        }
    }

    /** Returns the number of the device that is current on this thread; null for none. */
    @Nullable
    Integer currentDevice() {
        try {
            return currentContext() == 0 ? null : driver.currentDevice();
        } catch (MillraceException e) {
            // The program has not initialized CUDA's driver yet.
            return null;
        }
    }

    /**
     * Returns a device's separate context for copies; 0 if it cannot be created. Copies then use the program's context.
     */
    private synchronized long copyContext(int device) {
        CopyContext context = contexts.get(device);
        if (context == null && !refused) {
            try {
                context = CopyContext.open(driver, device);
                contexts.put(device, context);
            } catch (MillraceException e) {
                refused = true;
                NcclLog.warn(
                        "copies share the program's context, where they may wait for kernels that wait for them, as"
                                + " there can be no other (" + e.getMessage() + "); " + Settings.DEVICE_SLOTS.name()
                                + "=0 does without copies");
            }
        }
        return context == null ? 0 : context.handle();
    }

    /**
     * Returns host memory that an agent treats as GPU memory during its warm-up. The memory is never freed.
     *
     * @param device device that copies the memory
     */
    Staging rehearsal(ProxyAgent agent, boolean receives, int device, Network network, long bytes) {
        long context = copyContext(device);
        if (context == 0) {
            throw new MillraceException("no CUDA context for copies could be created");
        }
        try (CudaDriver.EnteredContext _ = driver.enter(context)) {
            return new Staging(new Rehearsal(copies(agent, receives, context), driver.allocatePinned(bytes)),
                    network.register(driver.allocatePinned(bytes)));
        }
    }

    private synchronized AgentCopies copies(ProxyAgent agent, boolean receives, long context) {
        return copies.computeIfAbsent(new Owner(agent, receives, context), owner -> new AgentCopies(driver, context));
    }

    /** Leaves the current context. Called by the thread of an agent that has made copies, as its last action. */
    void leave() {
        driver.leaveContext();
    }

    /**
     * {@inheritDoc} Requires that the agents' threads have ended. A warm-up that still runs finds no context and fails.
     */
    @Override
    public synchronized void close() {
        refused = true;
        copies.values().forEach(AgentCopies::close);
        copies.clear();
        contexts.values().forEach(CopyContext::close);
        contexts.clear();
    }

    /** The slots of one connection, with host memory of the same size that stages their data. */
    static final class Slots implements AutoCloseable {
        private final Memory memory;
        private final MemorySegment pinned;
        private final MemoryRegion host;
        private final CudaDriver driver;

        private Slots(Memory memory, Network network, CudaDriver driver) {
            this.memory = memory;
            this.driver = driver;
            pinned = driver.allocatePinned(memory.bytes());
            host = network.register(pinned);
        }

        Staging staging() {
            return new Staging(memory, host);
        }

        @Override
        public void close() {
            memory.close();
            host.close();
            driver.freePinned(pinned);
        }
    }

    /** Queue of one agent's copies, in one direction and one context of a GPU. */
    private static final class AgentCopies implements DeviceRegion.Copies {
        /**
         * Minimum time between two queries for completed copies, in nanoseconds. Each query takes a lock of the driver
         * that all threads contend for.
         */
        private static final long LOOK_NANOS = 1000;

        private final CudaDriver driver;
        private final long context;
        private final CopyQueue queue;
        private long submitted;
        private long done;
        private long lastLook = System.nanoTime();

        AgentCopies(CudaDriver driver, long context) {
            this.driver = driver;
            this.context = context;
            queue = new CopyQueue(driver, context, null, false);
        }

        @Override
        public boolean hasRoom() {
            return queue.hasRoom();
        }

        /**
         * {@inheritDoc} Slots do not overlap, so the GPU may make the copies in any order. The copies of all
         * connections that are added in one pass of the agent begin together.
         */
        @Override
        public long copy(long to, long from, long bytes) {
            return queue.copy(to, from, bytes, CopyOrder.FREE);
        }

        @Override
        public long copyFromHost(long to, long from, long bytes) {
            return queue.copyFromHost(to, from, bytes, CopyOrder.FREE);
        }

        @Override
        public long copyAlone(long to, long from, long bytes) {
            return queue.copyFromHost(to, from, bytes, CopyOrder.IN_TURN);
        }

        /** {@inheritDoc} Submits all copies that were added so far, including copies of other connections. */
        @Override
        public void submit(long number) {
            if (number - submitted > 0) {
                queue.submit();
                submitted = queue.last();
            }
        }

        @Override
        public boolean isDone(long number) {
            if (done - number >= 0) {
                return true;
            }
            if (number - submitted > 0) {
                submit(number);
                return false;
            }
            long now = System.nanoTime();
            if (now - lastLook < LOOK_NANOS) {
                return false;
            }
            done = queue.lastDone();
            lastLook = System.nanoTime();
            return done - number >= 0;
        }

        /**
         * Makes the context of the copies current. The calling thread belongs to NCCL or the program; the returned
         * object restores the thread's own context.
         */
        @Override
        public DeviceRegion.Use enter() {
            return driver.enter(context)::close;
        }

        void close() {
            try {
                queue.close();
            } catch (MillraceException e) {
                // The queue cannot be closed, for instance because the program has reset the device.
                NcclLog.trace("copies did not end: " + e.getMessage());
            }
        }
    }

    /** Host memory that a warm-up treats as GPU memory. No other process maps it. */
    private record Rehearsal(AgentCopies copies, MemorySegment segment) implements DeviceRegion {

        @Override
        public long address() {
            return segment.address();
        }

        @Override
        public long bytes() {
            return segment.byteSize();
        }

        @Override
        public Ticket ticket() {
            return new Ticket(0, address() + bytes(), address());
        }

        @Override
        public long map(long process, Ticket ticket) {
            return ticket.offset();
        }

        @Override
        public void close() {
            // The memory of a warm-up is never freed.
        }
    }

    /**
     * A connection's slots in GPU memory, and the memory of other processes that was mapped for copies to or from the
     * slots.
     */
    private static final class Memory implements DeviceRegion {
        private final CudaDriver driver;
        private final AgentCopies copies;
        private final int device;
        private final long address;
        private final long bytes;
        private final ForeignMemory.@Nullable Ticket exported;
        private final DeviceRegion.@Nullable Ticket ticket;
        private final Map<Long, ForeignMemory> mapped = new HashMap<>();

        Memory(CudaDriver driver, AgentCopies copies, long address, long bytes) {
            this.driver = driver;
            this.copies = copies;
            this.address = address;
            this.bytes = bytes;
            device = driver.currentDevice();
            exported = export(driver, address, bytes);
            ticket = exported == null ? null
                    : new DeviceRegion.Ticket(exported.descriptor(), exported.allocated(), exported.offset());
        }

        private static ForeignMemory.@Nullable Ticket export(CudaDriver driver, long address, long bytes) {
            try {
                // Slots are a single allocation, so they have a single ticket.
                return ForeignMemory.export(driver, address, bytes).getFirst();
            } catch (MillraceException e) {
                NcclLog.info("other processes cannot map slots in the GPU's memory: " + e.getMessage());
                return null;
            }
        }

        @Override
        public MemorySegment segment() {
            return DeviceSegments.of(address, bytes);
        }

        @Override
        public long address() {
            return address;
        }

        @Override
        public long bytes() {
            return bytes;
        }

        @Override
        public DeviceRegion.@Nullable Ticket ticket() {
            return ticket;
        }

        @Override
        public long map(long process, DeviceRegion.Ticket ticket) {
            try (CudaDriver.EnteredContext _ = driver.enter(copies.context)) {
                return mapped
                        .computeIfAbsent((long) ticket.descriptor(),
                                unused -> ForeignMemory
                                        .open(driver, device,
                                                new ForeignMemory.Ticket(process, ticket.descriptor(),
                                                        ticket.allocated(), ticket.offset())))
                        .address();
            }
        }

        @Override
        public AgentCopies copies() {
            return copies;
        }

        @Override
        public int lendDmaBuf(IntUnaryOperator use) {
            try (CudaDriver.EnteredContext _ = driver.enter(copies.context)) {
                return ForeignMemory.lendDmaBuf(driver, address, bytes, use);
            }
        }

        @Override
        public void close() {
            mapped.values().forEach(ForeignMemory::close);
            mapped.clear();
            if (exported != null) {
                exported.close();
            }
        }
    }
}
