package org.millrace.plugin.fallback;

import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.plugin.net.NetConnection;

/** isend and test over frames: the n-th message is the n-th frame. */
final class FallbackSender implements NetConnection {

    private final FrameSender sender;
    private final RegionTable regions;
    private final RequestRing requests = new RequestRing();
    private final FrameHeader header = new FrameHeader();

    FallbackSender(FrameSender sender, Network network) {
        this.sender = sender;
        regions = new RegionTable(network);
    }

    @Override
    public long deviceHandle() {
        return 0;
    }

    @Override
    public int register(long address, long bytes) {
        return regions.add(address, bytes);
    }

    /** Messages that are under way would be read from memory that is freed next: then the connection is given up. */
    @Override
    public void deregister(int region) {
        if (!requests.isIdle()) {
            sender.abort();
        }
        regions.remove(region);
    }

    @Override
    public int post(long address, long bytes, int region) {
        MemoryRegion memory = bytes == 0 ? null : regions.get(region);
        long offset = bytes == 0 ? 0 : RegionTable.offset(memory, address, bytes);
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
    public int test(int request) {
        long sequence = requests.sequence(request);
        if (sender.framesCompleted() <= sequence) {
            sender.progress();
            if (sender.framesCompleted() <= sequence) {
                return PENDING;
            }
        }
        requests.release(sequence);
        return requests.bytes(sequence);
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
