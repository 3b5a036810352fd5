package org.millrace.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.DirectMemory;
import org.millrace.engine.EngineOptions.SharedMemoryOptions;
import org.millrace.engine.SharedMemoryEnd.CommonMemory;
import org.millrace.foreign.PageMemory;
import org.millrace.net.ConnectionException;
import org.millrace.net.shm.SharedMemory;
import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.EndSettings;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;
import org.millrace.transport.TransportEnd;

/**
 * P2P transport, for ranks with devices that can access each other's memory. Within a process, a device accesses the
 * other device's memory by its address. Between processes of a host, one process maps memory that the other process has
 * created. P2P requires a kind of memory that no process can truncate. The sending device writes into the receiver's
 * slots and advances the receiver's {@code tail}. With {@code NCCL_P2P_USE_CUDA_MEMCPY}, the sending device writes into
 * its own slots, and its proxy copies the data.
 */
final class P2pTransport implements Transport {

    static final String NAME = "P2P";

    /**
     * Separator in the text of {@link #offer}, which the ranks exchange. The text after the separator identifies the
     * processes that can map each other's memory.
     */
    private static final String MAPPED = "; mapped in ";

    private static final CommonMemory.Source ONE_PROCESS =
            new CommonMemory.Source(ProcessMemory::create, ProcessMemory::open, true);

    private final SharedMemoryOptions options;

    public P2pTransport(SharedMemoryOptions options) {
        this.options = options;
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public Availability offer() {
        if (options.p2pDisabled()) {
            return Availability.no("NCCL_P2P_DISABLE=1");
        }
        return options.refusal().map(Availability::no).orElseGet(() -> {
            long domain = SharedMemory.sealedDomain();
            return Availability.yes(ProcessMemory.PROCESS + (domain == 0 ? ""
                    : MAPPED + Long.toHexString(SharedMemory.thisHost()) + ' ' + Long.toHexString(domain)));
        });
    }

    @Override
    public Availability canConnect(PeerInfo here, PeerInfo there) {
        if (inOneProcess(here, there)) {
            return Availability.yes("one process");
        }
        String mine = mapped(here);
        if (!mine.isEmpty() && mine.equals(mapped(there))) {
            return Availability.yes("one host");
        }
        return Availability
                .no(here.host().equals(there.host()) ? "memory of process " + there.pid() + " cannot be mapped"
                        : "other host");
    }

    private static String process(PeerInfo info) {
        return info.offer(NAME).text().split(MAPPED, 2)[0];
    }

    /** Returns the part of an offer's text that is about mapped memory; empty if no memory can be mapped. */
    private static String mapped(PeerInfo info) {
        String offer = info.offer(NAME).text();
        return offer.contains(MAPPED) ? offer.split(MAPPED, 2)[1] : "";
    }

    static boolean inOneProcess(PeerInfo here, PeerInfo there) {
        return process(here).equals(process(there));
    }

    private static CommonMemory.Source memory(EndRequest request) {
        return inOneProcess(request.here(), request.there()) ? ONE_PROCESS : MappedMemory.SEALED;
    }

    @Override
    public boolean isRead(MemorySegment memory, PeerInfo here, PeerInfo there, EndSettings settings) {
        return !options.p2pCopies() && (inOneProcess(here, there)
                || settings.heap() != null && DirectMemory.contains(settings.heap().segment(), memory));
    }

    @Override
    public TransportEnd send(EndRequest request) {
        return new SharedMemoryEnd(request, memory(request), false, options.p2pCopies());
    }

    @Override
    public TransportEnd receive(EndRequest request) {
        return new SharedMemoryEnd(request, memory(request), true, false);
    }

    /**
     * Memory that two ranks of this process share. It is freed when both ranks have released it. A rank that aborts
     * must not free the memory while the other rank's device still uses it.
     */
    static final class ProcessMemory implements CommonMemory {

        /**
         * Identity of this process and of the class loader of this class. The class loader matters, because copies of
         * this class from two class loaders do not find each other's memory.
         */
        static final String PROCESS = UUID.randomUUID().toString();

        /** Created memory that the peer has not yet opened. The key is the memory's handle. */
        private static final ConcurrentMap<Long, Block> OFFERED = new ConcurrentHashMap<>();
        private static final AtomicLong NUMBERS = new AtomicLong();
        private static final AtomicInteger BLOCKS = new AtomicInteger();

        private record Block(long number, Arena arena, MemorySegment segment, AtomicInteger users,
                @Nullable MemorySegment[] pointed) {

            void release() {
                if (users.decrementAndGet() == 0) {
                    arena.close();
                    BLOCKS.decrementAndGet();
                }
            }
        }

        private final Block block;
        private final AtomicBoolean closed = new AtomicBoolean();

        private ProcessMemory(Block block) {
            this.block = block;
        }

        static CommonMemory create(long bytes) {
            Arena arena = Arena.ofShared();
            try {
                Block block = new Block(NUMBERS.incrementAndGet(), arena,
                        ConnectionInfo.unscoped(PageMemory.allocate(bytes, arena)), new AtomicInteger(2),
                        new MemorySegment[ConnectionLayout.SLOTS]);
                OFFERED.put(block.number(), block);
                BLOCKS.incrementAndGet();
                return new ProcessMemory(block);
            } catch (OutOfMemoryError e) {
                arena.close();
                throw new MillraceException("no memory for a connection of " + bytes + " bytes: " + e.getMessage()
                        + "; choose a smaller NCCL_BUFFSIZE", e);
            }
        }

        static CommonMemory open(byte[] handle, long bytes) {
            Block block = handle.length == Long.BYTES ? OFFERED.remove(ByteBuffer.wrap(handle).getLong()) : null;
            if (block == null || block.segment().byteSize() != bytes) {
                throw new ConnectionException(
                        "the other rank's memory is not there, or has another size: was its connection closed?");
            }
            return new ProcessMemory(block);
        }

        static int blocks() {
            return BLOCKS.get();
        }

        @Override
        public MemorySegment segment() {
            return block.segment();
        }

        @Override
        public @Nullable MemorySegment[] pointed() {
            return block.pointed();
        }

        @Override
        public byte[] handle() {
            return ByteBuffer.allocate(Long.BYTES).putLong(block.number()).array();
        }

        @Override
        public void close() {
            if (closed.compareAndSet(false, true)) {
                if (OFFERED.remove(block.number(), block)) {
                    // The peer has not opened the block and will not release it, so this rank releases the block for
                    // the peer, too.
                    block.release();
                }
                block.release();
            }
        }
    }
}
