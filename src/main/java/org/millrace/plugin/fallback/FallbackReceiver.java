package org.millrace.plugin.fallback;

import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.plugin.net.NetConnection;
import org.millrace.plugin.unpack.UnpackConnection;

/** irecv and test over frames: the n-th message is the n-th frame. */
final class FallbackReceiver implements NetConnection {

    private final FrameReceiver receiver;
    private final RegionTable regions;
    private final RequestRing requests = new RequestRing();
    /** Where the message of a request goes, by its slot; not used once its frame has come. */
    private final MemoryRegion[] memories = new MemoryRegion[RequestRing.CAPACITY];
    private final long[] offsets = new long[RequestRing.CAPACITY];
    /** Requests whose frames have come, at least their headers. */
    private long matched;
    /** Null if the kernels do not unpack. */
    private final UnpackRequests unpack;

    /**
     * A receiver whose requests NCCL's proxy posts.
     *
     * @param unpack what kernels that unpack need; null for those that do not
     */
    FallbackReceiver(FrameReceiver receiver, Network network, UnpackConnection unpack) {
        this.receiver = receiver;
        this.unpack = unpack == null ? null : new UnpackRequests(unpack, receiver.scatters());
        regions = new RegionTable(network);
    }

    @Override
    public long deviceHandle() {
        return unpack == null ? 0 : unpack.deviceHandle();
    }

    @Override
    public int register(long address, long bytes) {
        int number = regions.add(address, bytes);
        if (unpack != null) {
            unpack.registered(number, bytes);
        }
        return number;
    }

    /** Messages that are under way would be written to memory that is freed next: then the connection is given up. */
    @Override
    public void deregister(int region) {
        if (!requests.isIdle()) {
            receiver.close();
        }
        regions.remove(region);
    }

    @Override
    public int post(long address, long bytes, int region) {
        if (!requests.hasRoom()) {
            progress();
            return NO_REQUEST;
        }
        MemoryRegion memory = bytes == 0 ? null : regions.get(region);
        int slot = RequestRing.slot(requests.next());
        offsets[slot] = bytes == 0 ? 0 : RegionTable.offset(memory, address, bytes);
        memories[slot] = memory;
        if (unpack != null) {
            unpack.posted(requests.next(), region, offsets[slot], bytes);
        }
        int number = requests.add((int) bytes);
        progress();
        return number;
    }

    @Override
    public int test(int request) {
        long sequence = requests.sequence(request);
        if (receiver.framesCompleted() <= sequence) {
            progress();
            if (receiver.framesCompleted() <= sequence) {
                return PENDING;
            }
        }
        if (unpack != null) {
            unpack.publish(receiver.framesCompleted(), requests);
        }
        requests.release(sequence);
        return requests.bytes(sequence);
    }

    private void progress() {
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
