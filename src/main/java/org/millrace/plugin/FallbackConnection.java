package org.millrace.plugin;

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
import org.millrace.proxy.UnpackReceiveSource;

/**
 * A connection whose messages NCCL's proxy posts and tests: the n-th message is the n-th frame.
 *
 * <p>
 * If memory is deregistered while messages are under way the connection is given up: it is freed next, and nothing may
 * be read from it or written to it any more.
 */
abstract class FallbackConnection implements DataPath.Connection {

    /** The word of a frame that tells its message's tag. */
    static final int TAG = 0;
    /** What {@link #test(int)} returns for a request that is not done. */
    static final int PENDING = -1;

    final RegionTable regions;
    private final boolean ownsRegions;
    final RequestRing requests = new RequestRing();

    /** An end with regions of its own, or of a connection of several streams, which gives them back itself. */
    private FallbackConnection(RegionTable regions, boolean ownsRegions) {
        this.regions = regions;
        this.ownsRegions = ownsRegions;
    }

    /** Gives back the memory that NCCL did not. */
    final void closeRegions() {
        if (ownsRegions) {
            regions.close();
        }
    }

    /** Requests whose frames are complete. */
    abstract long completed();

    abstract void progress();

    /** Gives the connection up: from now on nothing touches its memory. */
    abstract void abort();

    @Override
    public int register(long address, long bytes, boolean onDevice) {
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

    /** The bytes sent or received, or {@link #PENDING}. */
    int test(int request) {
        long sequence = requests.sequence(request);
        if (completed() <= sequence) {
            try {
                progress();
            } catch (ConnectionException closed) {
                if (completed() <= sequence) {
                    throw closed; // a peer that has closed may have said before that it has this one
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

        /** One of several streams, whose messages tell their tags. */
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
            sender.settle(); // nobody looks for it but NCCL, which waits for it
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
        /** Where the message of a request goes, by its slot; not used once its frame has come. */
        private final @Nullable MemoryRegion[] memories = new MemoryRegion[RequestRing.CAPACITY];
        private final long[] offsets = new long[RequestRing.CAPACITY];
        /** Requests whose frames have come, at least their headers. */
        private long matched;
        private final @Nullable UnpackRequests unpack;

        /**
         * A receiver whose requests NCCL's proxy posts.
         *
         * @param unpack what kernels that unpack need; null for those that do not
         */
        Receiver(FrameReceiver receiver, Network network, UnpackDevice.@Nullable Connection unpack) {
            super(new RegionTable(network), true);
            this.receiver = receiver;
            this.unpack = unpack == null ? null : new UnpackRequests(unpack);
        }

        /** One of several streams, whose messages have one tag. */
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
        public int register(long address, long bytes, boolean onDevice) {
            int number = super.register(address, bytes, onDevice);
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

        /** The lists of what has arrived are published before NCCL is told, which is when it moves tail. */
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
                receiver.progress(); // nobody may look again, and the sender waits
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

    /** The memory that was registered with one connection. */
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
                throw new IllegalStateException(
                        "a connection can have " + number + " registered memories, and not one more");
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

        /** Where a message lies in its region; throws {@link IllegalArgumentException} if it does not lie within. */
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

        /** Gives back what NCCL did not. */
        void close() {
            for (int number = 0; number < regions.length; number++) {
                if (regions[number] != null) {
                    remove(number);
                }
            }
        }
    }

    /**
     * Which requests of NCCL's proxy are Simple slices, and where they arrive if kernels unpack. The proxy registers
     * its buffers in the order of the protocols and posts every slice, empty ones included: each is one that the kernel
     * counts.
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

        /** Takes in where a request would arrive without pages. */
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

        /** Gives the payload of a request its pages; false if it has none. */
        boolean receive(FrameReceiver receiver, long sequence) {
            int first = firstPages[RequestRing.slot(sequence)];
            if (first == NONE) {
                return false;
            }
            memory.pages().receive(receiver, first);
            return true;
        }

        /**
         * Publishes the lists of requests that have arrived, in order; to be called before NCCL is told that one is
         * done, which is when it moves tail.
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
