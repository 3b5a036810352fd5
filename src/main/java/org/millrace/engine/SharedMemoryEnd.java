package org.millrace.engine;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.DirectMemory;
import org.millrace.net.ConnectionException;
import org.millrace.net.shm.SharedHeap;
import org.millrace.net.shm.SharedMemory;
import org.millrace.proxy.CopyProxy;
import org.millrace.proxy.OperationQueue;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.transport.EndRequest;
import org.millrace.transport.EndSettings.Heap;
import org.millrace.transport.TransportEnd;

/**
 * One end of a connection with slots and counters in common memory, which both ends can access.
 *
 * <pre>
 *   direct               sending device ▶ common memory ▶ receiving device
 *   the sender copies    sending device ▶ sender's memory ▶ proxy ▶ common memory ▶ …
 *   the receiver copies  … ▶ common memory ▶ proxy ▶ receiver's memory ▶ receiving device
 * </pre>
 *
 * If no proxy copies, the sending device may also refer the receiving device to data in the user's memory
 * ({@link DirectMemory}). The receiving device must be able to access this memory. The memory is therefore in the
 * receiver's process, or in the sender's heap. This heap is a range of shared memory that the receiver maps.
 *
 * <pre>
 *   message to the peer:  flags, 1 byte | length of the handle, 2 bytes | handle | name of the heap of this rank
 *   flags:                1: this end copies
 * </pre>
 *
 * In direct mode, {@code head} and {@code tail} are shared by the devices, and no proxy observes the steps. An
 * operation's announcement checks that both ranks run the same operation ({@link OperationCheck}).
 */
final class SharedMemoryEnd implements TransportEnd {

    private static final int COPIES = 1;

    private final EndRequest request;
    private final CommonMemory.Source source;
    private final boolean owns;
    private final boolean copies;
    private final OperationQueue operations = new OperationQueue();
    private @Nullable CommonMemory common;
    private @Nullable ConnectionInfo shared;
    private @Nullable OperationCheck check;
    /** Arena of the memory that this end's proxy copies from or into; null if this end does not copy. */
    private @Nullable Arena arena;
    private @Nullable ConnectionInfo own;
    private @Nullable CopyProxy proxy;
    /** This receiver's mapping of the sender's heap; null if the sender has no heap, or belongs to this process. */
    private @Nullable PeerHeap heap;
    private boolean woken;

    /**
     * @param owns   whether this end creates the memory; if not, the peer creates it
     * @param copies whether a proxy of this end copies between the common memory and memory of this end
     */
    SharedMemoryEnd(EndRequest request, CommonMemory.Source source, boolean owns, boolean copies) {
        this.request = request;
        this.source = source;
        this.owns = owns;
        this.copies = copies;
    }

    @Override
    public void proxySetup() {
        if (copies) {
            arena = Arena.ofShared();
            own = ConnectionInfo.allocate(arena, layout(), firstStep());
        }
    }

    @Override
    public byte[] setup() {
        byte[] handle = {};
        if (owns) {
            common = source.create().apply(bytes());
            shared = ConnectionInfo.at(common.segment(), layout(), firstStep());
            handle = common.handle();
        }
        Heap mine = mappedHeap();
        byte[] name = mine == null ? new byte[0] : mine.name().getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(1 + Short.BYTES + handle.length + name.length)
                .put((byte) (copies ? COPIES : 0))
                .putShort((short) handle.length)
                .put(handle)
                .put(name)
                .array();
    }

    @Override
    public boolean proxyConnect(byte[] peer) {
        ByteBuffer said = ByteBuffer.wrap(peer);
        if (peer.length < 1 + Short.BYTES || said.getShort(1) < 0 || said.getShort(1) > peer.length - 1 - Short.BYTES) {
            throw new ConnectionException("the other end's " + peer.length + " bytes of set-up cannot be read");
        }
        int flags = said.get();
        byte[] handle = new byte[said.getShort()];
        said.get(handle);
        if (!owns) {
            common = source.open().open(handle, bytes());
            shared = ConnectionInfo.over(common.segment(), layout(), firstStep());
        }
        if (!copies && (flags & COPIES) == 0) {
            String name = StandardCharsets.UTF_8.decode(said).toString();
            shared = direct(name);
            Heap mine = mappedHeap();
            woken = mine != null && !name.isEmpty();
            if (woken) {
                mine.doorbell().reach(name);
            }
        }
        check = new OperationCheck(request.name(),
                common.segment().asSlice(layout().totalBytes(), OperationCheck.BYTES), request.sends());
        if (copies) {
            boolean sends = request.sends();
            proxy = new CopyProxy(request.name(), sends ? own : shared, sends ? shared : own, operations,
                    request.settings().listener());
            proxy.abortedBy(request.settings().abort());
            proxy.tracedBy(request.trace(Direction.COPY, "shared memory"));
        }
        return true;
    }

    /**
     * @param name name of the peer's heap; empty if the peer has no heap
     */
    private ConnectionInfo direct(String name) {
        MemorySegment line = common.segment().asSlice(bytes() - DirectMemory.BYTES);
        if (common.pointed() != null) {
            return shared.withDirect(DirectMemory.inProcess(line, common.pointed()));
        }
        if (request.sends()) {
            Heap mine = mappedHeap();
            return mine == null ? shared : shared.withDirect(DirectMemory.ofHeap(line, mine.segment()));
        }
        if (name.isEmpty()) {
            return shared;
        }
        heap = PeerHeap.open(name);
        return shared.withDirect(DirectMemory.ofHeap(line, heap.segment()));
    }

    /** Returns the heap of this end's rank; null if the rank has no heap, or if the peer cannot open it. */
    private @Nullable Heap mappedHeap() {
        return source.opensHeaps() ? request.settings().heap() : null;
    }

    private long bytes() {
        return layout().totalBytes() + OperationCheck.BYTES + DirectMemory.BYTES;
    }

    @Override
    public boolean connect(byte[] peer) {
        return true;
    }

    private ConnectionLayout layout() {
        return request.settings().layout();
    }

    private long firstStep() {
        return request.settings().firstStep();
    }

    @Override
    public String way() {
        return copies ? "by copy" : "";
    }

    @Override
    public ConnectionInfo info() {
        return copies ? own : shared;
    }

    @Override
    public boolean wakesThisRank() {
        return woken;
    }

    @Override
    public void announce(ProxyOp op) {
        RuntimeException disagreement = check.announce(op);
        if (disagreement != null) {
            request.settings().failure().accept(disagreement);
        } else if (copies && op.steps() > 0) {
            operations.add(op);
        }
    }

    @Override
    public List<ProxyConnection> proxyProgress() {
        return copies ? List.of(proxy) : List.of();
    }

    @Override
    public void proxyFree() {
        if (arena != null) {
            arena.close();
            arena = null;
        }
    }

    @Override
    public void free() {
        if (heap != null) {
            heap.close();
            heap = null;
        }
        if (common != null) {
            common.close();
        }
    }

    /** Memory that both ends of a connection can access. One end creates it, and the other end opens it. */
    interface CommonMemory {

        /**
         * Functions that create or open common memory.
         *
         * @param create     creates memory; the argument is the size in bytes
         * @param open       opens memory that the peer created; the argument is its {@link CommonMemory#handle}
         * @param opensHeaps whether an end that can open the memory can also open the peer's heap
         */
        record Source(LongFunction<CommonMemory> create, Opener open, boolean opensHeaps) {
        }

        interface Opener {
            CommonMemory open(byte[] handle, long bytes);
        }

        /** Returns the whole memory as a segment of the global scope. It must not be accessed after {@link #close}. */
        MemorySegment segment();

        /** Returns the bytes that the peer needs to open the memory. */
        byte[] handle();

        /**
         * Returns an array with one element for each slot. In the element, the sender stores the segment of user memory
         * that the receiver reads for the slot. Returns null if the ends belong to two processes.
         */
        default @Nullable MemorySegment @Nullable [] pointed() {
            return null;
        }

        /** Releases this end's use of the memory. May be called twice. */
        void close();
    }

    /** Heap of another rank. All connections from that rank to this process share one mapping. */
    static final class PeerHeap implements AutoCloseable {

        private static final Map<String, PeerHeap> ALL = new HashMap<>();

        private final String name;
        private final SharedMemory.Mapping opened;
        /** Number of connections that use this mapping. Guarded by {@link #ALL}. */
        private int users;

        private PeerHeap(String name) {
            this.name = name;
            this.opened = SharedHeap.open(name);
        }

        /** @param name name of the heap, as the peer sent it */
        static PeerHeap open(String name) {
            synchronized (ALL) {
                PeerHeap heap = ALL.computeIfAbsent(name, PeerHeap::new);
                heap.users++;
                return heap;
            }
        }

        MemorySegment segment() {
            return opened.segment();
        }

        /** Releases the mapping for one connection. Each connection must call this method once. */
        @Override
        public void close() {
            synchronized (ALL) {
                if (--users == 0) {
                    ALL.remove(name);
                    opened.close();
                }
            }
        }
    }
}
