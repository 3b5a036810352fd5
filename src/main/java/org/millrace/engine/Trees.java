package org.millrace.engine;

import java.util.List;
import org.millrace.abi.CollectiveWork;
import org.millrace.abi.ConnectionLayout;
import org.millrace.device.channel.ReceivePort;
import org.millrace.device.channel.SendPort;
import org.millrace.device.function.Chain;
import org.millrace.device.function.ChannelPart;
import org.millrace.device.function.FunctionNumber;
import org.millrace.device.primitives.ChunkShape;
import org.millrace.engine.connect.Connectors;
import org.millrace.engine.connect.Hops;
import org.millrace.transport.Connections;

/**
 * All-reduce over a pair of binary trees: sums go up, and what the root has comes down, a chunk as soon as it is there.
 * The depth, not the number of ranks, says how long a small operation takes. Channels take the two trees in turn.
 * Connections are made when they are first needed.
 */
final class Trees {

    private static final int TREES = 2;

    /** A channel's hops; none up or down at the root. */
    private record Branches(Hops<ReceivePort> fromChildren, Hops<SendPort> toChildren, Hops<SendPort> up,
            Hops<ReceivePort> down) {
    }

    private final Connectors connectors;
    private final int channels;
    private final ConnectionLayout layout;
    private final TreePlace[] places = new TreePlace[TREES];
    /**
     * By channel. Written by who issues; the device's thread reads what was written before it got the kernel, by a
     * queue.
     */
    private final Branches[] branches;

    Trees(int rank, int ranks, Connectors connectors, EngineOptions options) {
        this.connectors = connectors;
        this.channels = Math.max(TREES, options.channels());
        this.layout = options.layout();
        this.branches = new Branches[channels];
        for (int tree = 0; tree < TREES; tree++) {
            places[tree] = TreePlace.of(tree, rank, ranks);
        }
    }

    int channels() {
        return channels;
    }

    /** The root's only passage, or the way up and the way down of any other rank. */
    List<Passage> passages(int function, CollectiveWork work, int channel) {
        ChunkShape shape = ChunkShape.ONE_STEP.in(FunctionNumber.protocol(function));
        ChannelPart share = ChannelPart.of(work.firstElement(channel), work.elements(channel),
                FunctionNumber.type(function).bytes(), shape.chunkBytes(layout));
        TreePlace place = places[channel % TREES];
        if (branches[channel] == null) {
            branches[channel] = branches(place, channel);
        }
        Branches ways = branches[channel];
        if (place.isRoot()) {
            return List
                    .of(new Passage(Chain.combine(share, true, true, true), shape, ways.fromChildren, ways.toChildren));
        }
        boolean hasChildren = !place.children().isEmpty();
        return List.of(new Passage(Chain.combine(share, hasChildren, false, true), shape, ways.fromChildren, ways.up),
                new Passage(Chain.spread(share, false, true, hasChildren), shape, ways.down, ways.toChildren));
    }

    private Branches branches(TreePlace place, int channel) {
        return new Branches(
                Hops.of(place.children()
                        .stream()
                        .map(child -> connectors.receive(child, channel, Connections.COLLECTIVE))
                        .toList()),
                Hops.of(place.children()
                        .stream()
                        .map(child -> connectors.send(child, channel, Connections.COLLECTIVE))
                        .toList()),
                place.isRoot() ? Hops.none() : connectors.send(place.parent(), channel, Connections.COLLECTIVE).alone(),
                place.isRoot() ? Hops.none()
                        : connectors.receive(place.parent(), channel, Connections.COLLECTIVE).alone());
    }
}
