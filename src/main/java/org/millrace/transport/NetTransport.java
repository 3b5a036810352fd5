package org.millrace.transport;

import java.lang.foreign.MemorySegment;
import org.millrace.net.ConnectionKey;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;

/**
 * NET: over a network, with a proxy on each side. Every rank listens, and whoever sends connects. It connects any two
 * ranks.
 */
public final class NetTransport implements Transport {

    /** Channels of one index; NCCL's limit is 64. */
    private static final int CHANNELS = 1 << 10;

    private final Network network;
    private final Listener here;
    private final SharedPools pools;
    private final NetGroups groups;

    /**
     * The transport of a rank.
     *
     * @param network what carries the frames
     * @param here    where the others reach this rank; whoever opened it closes it
     */
    public NetTransport(Network network, Listener here) {
        this.network = network;
        this.here = here;
        this.pools = new SharedPools(network);
        this.groups = new NetGroups(network, here);
    }

    @Override
    public String name() {
        return "NET";
    }

    @Override
    public Verdict offer() {
        return Verdict.yes(network.name());
    }

    @Override
    public Verdict canConnect(PeerInfo self, PeerInfo there) {
        String mine = self.offer(name()).text();
        String theirs = there.offer(name()).text();
        return mine.equals(theirs) ? Verdict.yes(mine)
                : Verdict.no("rank " + self.rank() + " uses the network " + mine + ", rank " + there.rank() + " "
                        + theirs + ": MILLRACE_NET must be the same on all ranks");
    }

    @Override
    public TransportEnd send(EndRequest request) {
        return new NetSendEnd(request, network, pools, groups,
                key(request.index(), request.channel(), request.here().rank()));
    }

    @Override
    public TransportEnd receive(EndRequest request) {
        return new NetReceiveEnd(request, network, pools, groups, here,
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
