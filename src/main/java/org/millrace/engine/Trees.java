package org.millrace.engine;

import java.util.List;
import org.millrace.abi.CollectiveWork;
import org.millrace.abi.ConnectionLayout;
import org.millrace.device.host.Chain;
import org.millrace.device.host.ChunkShape;
import org.millrace.device.host.ReceivePort;
import org.millrace.device.host.SendPort;
import org.millrace.device.host.Share;
import org.millrace.transport.Connections;

/**
 * All-reduce over a pair of binary trees: sums go up, and what the root has comes down, a chunk as soon as it is there. The depth, not the number of ranks,
 * says how long a small operation takes. Channels take the two trees in turn. Connections are made when they are first needed.
 */
final class Trees {

    private static final int TREES = 2;

    private final Links links;
    private final int channels;
    private final ConnectionLayout layout;
    private final TreePlace[] places = new TreePlace[TREES];

    Trees(int rank, int ranks, Links links, EngineOptions options) {
        this.links = links;
        this.channels = Math.max(TREES, options.channels());
        this.layout = options.layout();
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
        Share share = Share.of(work.firstElement(channel), work.elements(channel), FunctionNumber.type(function).bytes(), shape.chunkBytes(layout));
        TreePlace place = places[channel % TREES];
        boolean hasChildren = !place.children().isEmpty();
        List<Link<ReceivePort>> fromChildren = place.children().stream().map(child -> links.receive(child, channel, Connections.COLLECTIVE)).toList();
        List<Link<SendPort>> toChildren = place.children().stream().map(child -> links.send(child, channel, Connections.COLLECTIVE)).toList();
        if (place.isRoot()) {
            return List.of(new Passage(Chain.combine(share, true, true, true), shape, fromChildren, toChildren));
        }
        Link<SendPort> up = links.send(place.parent(), channel, Connections.COLLECTIVE);
        Link<ReceivePort> down = links.receive(place.parent(), channel, Connections.COLLECTIVE);
        return List.of(new Passage(Chain.combine(share, hasChildren, false, true), shape, fromChildren, List.of(up)),
                new Passage(Chain.spread(share, false, true, hasChildren), shape, List.of(down), toChildren));
    }
}
