package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionKey;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;
import org.millrace.transport.TransportEnd;

/**
 * NET transport, which uses a network and a proxy on each side. Each rank listens, and the sender connects. NET can
 * connect any two ranks.
 */
final class NetTransport implements Transport {

    /** Maximum number of channels of one connection index (collectives, or sends and receives); NCCL's limit is 64. */
    private static final int CHANNELS = 1 << 10;

    private final Network network;
    private final Listener here;
    private final SlotPools pools;
    private final GroupedConnections groups;
    private final @Nullable Unpacking unpacking;

    /**
     * Settings for devices that gather received data from pages ({@code NCCL_NET_DEVICE_UNPACK_ENABLED}).
     *
     * @param threshold minimum size in bytes of a slice that devices gather
     */
    record Unpacking(long threshold) {
    }

    /** @param unpacking settings for devices that gather received data; null if data arrives in slots */
    NetTransport(Network network, Listener here, @Nullable Unpacking unpacking) {
        this.unpacking = unpacking;
        this.network = network;
        this.here = here;
        this.pools = new SlotPools(network);
        this.groups = new GroupedConnections(network, here);
    }

    @Override
    public String name() {
        return "NET";
    }

    @Override
    public Availability offer() {
        return Availability.yes(network.name());
    }

    @Override
    public Availability canConnect(PeerInfo self, PeerInfo there) {
        String mine = self.offer(name()).text();
        String theirs = there.offer(name()).text();
        return mine.equals(theirs) ? Availability.yes(mine)
                : Availability.no("rank " + self.rank() + " uses the network " + mine + ", rank " + there.rank() + " "
                        + theirs + ": MILLRACE_NET must be the same on all ranks");
    }

    @Override
    public TransportEnd send(EndRequest request) {
        return new NetworkEnd.Sender(request, network, pools, groups, unpacking,
                key(request.index(), request.channel(), request.here().rank()));
    }

    @Override
    public TransportEnd receive(EndRequest request) {
        return new NetworkEnd.Receiver(request, network, pools, groups, here, unpacking,
                key(request.index(), request.channel(), request.there().rank()));
    }

    @Override
    public MemoryRegion register(MemorySegment memory) {
        return network.register(memory);
    }

    @Override
    public MemoryRegion allMemory() {
        return network.allMemory();
    }

    static ConnectionKey key(int index, int channel, int sendingRank) {
        return new ConnectionKey(index * CHANNELS + channel, sendingRank);
    }
}
