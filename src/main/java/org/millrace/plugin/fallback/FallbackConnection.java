package org.millrace.plugin.fallback;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.config.Settings;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.plugin.path.ConnectionHandle;
import org.millrace.plugin.path.DataPath;
import org.millrace.plugin.path.UnpackDevice;
import org.millrace.proxy.UnpackReceiveSource;

/**
 * A connection on which NCCL's proxy posts and tests messages. Each message is one frame, and the frames keep the order
 * of the messages.
 *
 * <p>
 * If memory is deregistered while messages are in flight, the connection is aborted. NCCL frees the memory after the
 * deregistration, so no thread may read or write it any longer.
 */
abstract class FallbackConnection implements DataPath.Connection {

    /** Index of the word in the frame header that holds the message's tag. */
    static final int TAG = 0;
    /** Result of {@link #test(int)} for a request that is not complete. */
    static final int PENDING = -1;

    final RegionTable regions;
    private final boolean ownsRegions;
    final RequestRing requests = new RequestRing();

    /**
     * Creates one end of a connection. If this object owns the regions, it also closes them. If this object is one of
     * several streams of a connection, the connection owns and closes the regions.
     */
    private FallbackConnection(RegionTable regions, boolean ownsRegions) {
        this.regions = regions;
        this.ownsRegions = ownsRegions;
    }

    /** Closes the regions that NCCL did not deregister, if this end owns them. */
    final void closeRegions() {
        if (ownsRegions) {
            regions.close();
        }
    }

    /** Returns the number of requests with complete frames. */
    abstract long completed();

    abstract void progress();

    /** Aborts the connection. After this call, no thread accesses the memory of the connection's messages. */
    abstract void abort();

    @Override
    public int register(long address, long bytes, boolean onDevice, long handle) {
        return regions.add(address, bytes);
    }

    @Override
    public final void deregister(int region) {
        if (!requests.isIdle()) {
            abort();
        }
        regions.remove(region);
    }

    @Override
    public final boolean test(int request, long sizes) {
        int bytes = test(request);
        if (bytes != PENDING && sizes != 0) {
            NativeMemory.putInt(sizes, bytes);
        }
        return bytes != PENDING;
    }

    /**
     * Returns the number of bytes that a completed request has sent or received; {@link #PENDING} if it is not
     * complete.
     */
    int test(int request) {
        long sequence = requests.sequence(request);
        if (completed() <= sequence) {
            try {
                progress();
            } catch (ConnectionException closed) {
                if (completed() <= sequence) {
                    // The connection has ended. The peer had not acknowledged this request before the end.
                    throw closed;
                }
            }
            if (completed() <= sequence) {
                return PENDING;
            }
        }
        requests.release(sequence);
        return requests.bytes(sequence);
    }

    static final class Sender extends FallbackConnection {
        private final FrameSender sender;
        private final FrameHeader header = new FrameHeader();

        Sender(FrameSender sender, Network network) {
            super(new RegionTable(network), true);
            this.sender = sender;
        }

        /** Creates one of several streams of a connection. The messages of the connection carry tags. */
        Sender(FrameSender sender, RegionTable regions) {
            super(regions, false);
            this.sender = sender;
        }

        @Override
        long completed() {
            return sender.framesCompleted();
        }

        @Override
        void progress() {
            sender.progress();
        }

        @Override
        void abort() {
            sender.abort();
        }

        @Override
        public int post(long address, long bytes, int region, int tag) {
            MemoryRegion memory = bytes == 0 ? null : regions.get(region);
            long offset = memory == null ? 0 : RegionTable.offset(memory, address, bytes);
            header.word(TAG, tag);
            header.payloadBytes(bytes);
            if (!requests.hasRoom() || !sender.offer(header, memory, offset)) {
                sender.progress();
                return NO_REQUEST;
            }
            int number = requests.add((int) bytes);
            // NCCL waits for each message, so the completion of this message is accelerated.
            sender.settle();
            sender.progress();
            return number;
        }

        @Override
        public void close() {
            sender.close();
            closeRegions();
        }

        @Override
        public String toString() {
            return sender.toString();
        }
    }

    static final class Receiver extends FallbackConnection {
        private final FrameReceiver receiver;
        /** Region that receives the message of each request, by the request's slot in the ring of requests. */
        private final @Nullable MemoryRegion[] memories = new MemoryRegion[RequestRing.CAPACITY];
        private final long[] offsets = new long[RequestRing.CAPACITY];
        /** Number of requests with an accepted frame. The frame's payload may still be arriving. */
        private long matched;
        private final @Nullable UnpackRequests unpack;

        /** @param unpack memory that the connection shares with kernels that unpack; null if kernels do not unpack */
        Receiver(FrameReceiver receiver, Network network, UnpackDevice.@Nullable Connection unpack) {
            super(new RegionTable(network), true);
            this.receiver = receiver;
            this.unpack = unpack == null ? null : new UnpackRequests(unpack);
        }

        /** Creates one of several streams of a connection. The messages of a stream have one tag. */
        Receiver(FrameReceiver receiver, RegionTable regions) {
            super(regions, false);
            this.receiver = receiver;
            this.unpack = null;
        }

        @Override
        long completed() {
            return receiver.framesCompleted();
        }

        @Override
        void abort() {
            receiver.close();
        }

        @Override
        public long deviceHandle() {
            return unpack == null ? 0 : unpack.deviceHandle();
        }

        @Override
        public int register(long address, long bytes, boolean onDevice, long handle) {
            int number = super.register(address, bytes, onDevice, handle);
            if (unpack != null) {
                unpack.registered(number, bytes);
            }
            return number;
        }

        @Override
        public int post(long address, long bytes, int region, int tag) {
            if (!requests.hasRoom()) {
                progress();
                return NO_REQUEST;
            }
            MemoryRegion memory = bytes == 0 ? null : regions.get(region);
            int slot = RequestRing.slot(requests.next());
            offsets[slot] = memory == null ? 0 : RegionTable.offset(memory, address, bytes);
            memories[slot] = memory;
            if (unpack != null) {
                unpack.posted(requests.next(), region, offsets[slot], bytes);
            }
            int number = requests.add((int) bytes);
            progress();
            return number;
        }

        /**
         * {@inheritDoc} Publishes the lists of pages before NCCL learns that a request is complete, because NCCL then
         * advances tail, and the kernel reads the lists.
         */
        @Override
        int test(int request) {
            int bytes = super.test(request);
            if (unpack != null && bytes != PENDING) {
                unpack.publish(receiver.framesCompleted(), requests);
            }
            return bytes;
        }

        @Override
        void progress() {
            while (matched < requests.next()) {
                FrameHeader header = receiver.poll();
                if (header == null) {
                    break;
                }
                int slot = RequestRing.slot(matched);
                long bytes = header.payloadBytes();
                if (bytes > requests.bytes(matched)) {
                    throw new ConnectionException(receiver + ": message " + matched + " has " + bytes
                            + " bytes, and there is room for " + requests.bytes(matched)
                            + "; do both ranks call the same collective with the same count and type?");
                }
                if (unpack == null || bytes == 0 || !unpack.receive(receiver, matched)) {
                    receiver.accept(memories[slot], offsets[slot]);
                }
                requests.setBytes(matched, (int) bytes);
                matched++;
            }
            receiver.progress();
            if (receiver.framesCompleted() == matched) {
                // Sends the acknowledgement now. The sender waits for it, and NCCL possibly never calls test again.
                receiver.progress();
            }
        }

        @Override
        public void close() {
            receiver.close();
            closeRegions();
            if (unpack != null) {
                unpack.close();
            }
        }

        @Override
        public String toString() {
            return receiver.toString();
        }
    }

    /** Regions of memory that NCCL has registered with one connection, by number. */
    static final class RegionTable {

        private static final int USUAL = 4;

        private final Network network;
        private @Nullable MemoryRegion[] regions = new MemoryRegion[USUAL];

        RegionTable(Network network) {
            this.network = network;
        }

        int add(long address, long bytes) {
            int number = 0;
            while (number < regions.length && regions[number] != null) {
                number++;
            }
            if (number == ConnectionHandle.REGIONS) {
                throw new IllegalStateException("a connection can have at most " + number + " registered memories");
            }
            if (number == regions.length) {
                regions = Arrays.copyOf(regions, Math.min(2 * number, ConnectionHandle.REGIONS));
            }
            regions[number] = network.register(NativeMemory.at(address, bytes));
            return number;
        }

        MemoryRegion get(int number) {
            MemoryRegion region = number < regions.length ? regions[number] : null;
            if (region == null) {
                throw new IllegalArgumentException(
                        "memory " + number + " of this connection was deregistered, or never registered");
            }
            return region;
        }

        /**
         * Returns a message's offset in its region. Throws {@link IllegalArgumentException} if the message does not lie
         * within the region.
         */
        static long offset(MemoryRegion region, long address, long bytes) {
            MemorySegment memory = region.segment();
            long offset = address - memory.address();
            if (offset < 0 || bytes < 0 || bytes > memory.byteSize() - offset) {
                throw new IllegalArgumentException("a message of " + bytes + " bytes at 0x" + Long.toHexString(address)
                        + " does not lie in its registered memory, " + memory.byteSize() + " bytes at 0x"
                        + Long.toHexString(memory.address()));
            }
            return offset;
        }

        void remove(int number) {
            get(number).close();
            regions[number] = null;
        }

        /** Closes the regions that NCCL did not deregister. */
        void close() {
            for (int number = 0; number < regions.length; number++) {
                if (regions[number] != null) {
                    remove(number);
                }
            }
        }
    }

    /**
     * Pages of the requests of NCCL's proxy, for kernels that unpack. Only requests for slices of the protocol Simple
     * have pages. A region's number shows the protocol of the slices in the region, because NCCL's proxy registers its
     * buffers in the order of the protocols. NCCL's proxy also posts empty slices, because the kernel counts each
     * slice.
     */
    static final class UnpackRequests {

        private static final int NONE = -1;

        private final UnpackDevice.Connection connection;
        private final int[] firstPages = new int[RequestRing.CAPACITY];
        private UnpackReceiveSource.@Nullable UnpackMemory memory;
        private long slotBytes;
        private long ordinal;
        private long published;

        UnpackRequests(UnpackDevice.Connection connection) {
            this.connection = connection;
        }

        void registered(int region, long bytes) {
            if (region == Protocol.SIMPLE.id()) {
                slotBytes = bytes / ConnectionLayout.SLOTS;
                memory = connection.prepare(slotBytes);
                ordinal = memory.firstOrdinal();
            }
        }

        /** Records the first page of a request. The request's destination slot determines this page. */
        void posted(long sequence, int region, long offset, long bytes) {
            int index = RequestRing.slot(sequence);
            firstPages[index] = NONE;
            if (region != Protocol.SIMPLE.id() || memory == null) {
                return;
            }
            int slot = (int) (offset / slotBytes);
            if (offset % slotBytes != 0 || bytes > memory.pages().room(slot, ConnectionLayout.SLOTS)) {
                throw new IllegalArgumentException("a slice of " + bytes + " bytes at byte " + offset + " of its buffer"
                        + " does not begin with one of its slots of " + slotBytes + " bytes;"
                        + " set NCCL_NET_SHARED_BUFFERS=0, or unset " + Settings.UNPACK.name());
            }
            firstPages[index] = memory.pages().first(slot);
        }

        /** Receives the payload of a request into the request's pages. Returns false if the request has no pages. */
        boolean receive(FrameReceiver receiver, long sequence) {
            int first = firstPages[RequestRing.slot(sequence)];
            if (first == NONE) {
                return false;
            }
            memory.pages().receive(receiver, first);
            return true;
        }

        /**
         * Publishes the lists of pages of the first {@code arrived} requests, in the order of the requests. Called
         * before NCCL learns that one of these requests is complete. NCCL then advances tail, and the kernel reads the
         * lists.
         */
        void publish(long arrived, RequestRing requests) {
            for (; published < arrived; published++) {
                int first = firstPages[RequestRing.slot(published)];
                if (first == NONE) {
                    continue;
                }
                long bytes = requests.bytes(published);
                if (bytes > 0) {
                    memory.pages().publish(memory.lists(), ordinal, first, bytes);
                }
                ordinal++;
            }
        }

        long deviceHandle() {
            return connection.deviceHandle();
        }

        void close() {
            connection.close();
        }
    }
}
