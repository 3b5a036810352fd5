package org.millrace.plugin.fallback;

import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.plugin.net.NetConnection;
import org.millrace.plugin.unpack.UnpackConnection;

/**
 * A connection whose messages NCCL's proxy posts and tests: the n-th message is the n-th frame.
 *
 * <p>
 * If memory is deregistered while messages are under way the connection is given up: it is freed next, and nothing may
 * be read from it or written to it any more.
 */
abstract class FallbackConnection implements NetConnection {

    final RegionTable regions;
    final RequestRing requests = new RequestRing();

    private FallbackConnection(Network network) {
        regions = new RegionTable(network);
    }

    /** Requests whose frames are complete. */
    abstract long completed();

    /** Moves what can be moved now. */
    abstract void progress();

    /** Gives the connection up: from now on nothing touches its memory. */
    abstract void abort();

    @Override
    public long deviceHandle() {
        return 0;
    }

    @Override
    public int register(long address, long bytes) {
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
    public int test(int request) {
        long sequence = requests.sequence(request);
        if (completed() <= sequence) {
            progress();
            if (completed() <= sequence) {
                return PENDING;
            }
        }
        requests.release(sequence);
        return requests.bytes(sequence);
    }

    /** The sending end. */
    static final class Sender extends FallbackConnection {
        private final FrameSender sender;
        private final FrameHeader header = new FrameHeader();

        Sender(FrameSender sender, Network network) {
            super(network);
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
        public int post(long address, long bytes, int region) {
            MemoryRegion memory = bytes == 0 ? null : regions.get(region);
            long offset = memory == null ? 0 : RegionTable.offset(memory, address, bytes);
            header.payloadBytes(bytes);
            if (!requests.hasRoom() || !sender.offer(header, memory, offset)) {
                sender.progress();
                return NO_REQUEST;
            }
            int number = requests.add((int) bytes);
            sender.progress();
            return number;
        }

        @Override
        public void close() {
            sender.close();
            regions.close();
        }

        @Override
        public String toString() {
            return sender.toString();
        }
    }

    /** The receiving end. */
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
        Receiver(FrameReceiver receiver, Network network, @Nullable UnpackConnection unpack) {
            super(network);
            this.receiver = receiver;
            this.unpack = unpack == null ? null : new UnpackRequests(unpack, receiver.scatters());
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
        public int register(long address, long bytes) {
            int number = super.register(address, bytes);
            if (unpack != null) {
                unpack.registered(number, bytes);
            }
            return number;
        }

        @Override
        public int post(long address, long bytes, int region) {
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
        public int test(int request) {
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
        }

        @Override
        public void close() {
            receiver.close();
            regions.close();
            if (unpack != null) {
                unpack.close();
            }
        }

        @Override
        public String toString() {
            return receiver.toString();
        }
    }
}
