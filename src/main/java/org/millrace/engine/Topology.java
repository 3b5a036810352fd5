package org.millrace.engine;

import java.util.List;
import java.util.stream.IntStream;
import org.millrace.abi.KernelChannel;
import org.millrace.device.DeviceChannel;
import org.millrace.device.DeviceCommunicator;

/** Fills the channels of a communicator with this rank's neighbours, as kernels read them. */
final class Topology {

    private static final int TREES = 2;

    private Topology() {}

    /** Channels that a communicator has: rings use so many, and a pair of trees one each at least. */
    static int channels(int ranks, int rings) {
        return ranks == 1 ? rings : Math.max(TREES, rings);
    }

    /**
     * Rings pass the ranks in the order of their numbers, which they have from the beginning. Channels take the two
     * trees in turn.
     */
    static void fill(DeviceCommunicator device, boolean oneHost) {
        for (int channel = 0; channel < device.channels() && device.ranks() > 1; channel++) {
            TreePlace place = TreePlace.of(channel % TREES, device.rank(), device.ranks(), oneHost);
            int depth = Integer.SIZE - 1 - Integer.numberOfLeadingZeros(device.ranks());
            device.channel(channel)
                    .view()
                    .tree(depth, place.parent(), place.children().stream().mapToInt(Integer::intValue).toArray());
        }
    }

    /** Asks for the rings' connections; all others are made when an operation needs them. */
    static void connectRings(DeviceCommunicator device, Connectors connectors, int rings) {
        for (int number = 0; number < rings && device.ranks() > 1; number++) {
            DeviceChannel channel = device.channel(number);
            connectors.send(channel.view().next(), number, KernelChannel.COLLECTIVE);
            connectors.receive(channel.view().previous(), number, KernelChannel.COLLECTIVE);
        }
    }

    /**
     * A rank's place in one of two trees over the same ranks. A rank that has children in one is a leaf in the other,
     * but for one rank, so that a pair of trees loads every rank's connections alike (Sanders, Speck and Träff:
     * Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009). Between hosts they are binary, and
     * neighbours are near: NCCL builds its trees the same way. On one host all are near, and a rank has as many
     * children as it can: each level less is two times less that ranks wait for each other.
     *
     * <pre>
     *   8 ranks, tree 0    0───────────4                a number's parent: its lowest set bit cleared, the next one set,
     *                            2───────────6          or not set if there is no such rank
     *                         1     3     5     7       tree 1: counted from the other end (even), or one further on (odd)
     *
     *   on one host        0─────┬─────┐
     *                      1     2     3                tree 1: counted from the other end
     *                    4 5 6   7
     * </pre>
     *
     * @param parent   the rank above, or -1 at the root
     * @param children the ranks below, in ascending order of their numbers in the tree
     */
    record TreePlace(int parent, List<Integer> children) {

        static TreePlace of(int tree, int rank, int ranks, boolean oneHost) {
            int number = toNumber(tree, rank, ranks, oneHost);
            int parent = parentOf(number, ranks, oneHost);
            List<Integer> children = IntStream.range(1, ranks)
                    .filter(each -> parentOf(each, ranks, oneHost) == number)
                    .map(each -> toRank(tree, each, ranks, oneHost))
                    .boxed()
                    .toList();
            return new TreePlace(parent < 0 ? -1 : toRank(tree, parent, ranks, oneHost), children);
        }

        private static int parentOf(int number, int ranks, boolean oneHost) {
            if (number == 0) {
                return -1;
            }
            if (oneHost) {
                return (number - 1) / KernelChannel.MAX_CHILDREN;
            }
            int bit = Integer.lowestOneBit(number);
            int cleared = number ^ bit;
            int parent = cleared | bit << 1;
            return parent < ranks ? parent : cleared;
        }

        private static int toNumber(int tree, int rank, int ranks, boolean oneHost) {
            return tree == 0 ? rank : oneHost || ranks % 2 == 0 ? ranks - 1 - rank : (rank + ranks - 1) % ranks;
        }

        private static int toRank(int tree, int number, int ranks, boolean oneHost) {
            return tree == 0 ? number : oneHost || ranks % 2 == 0 ? ranks - 1 - number : (number + 1) % ranks;
        }
    }
}
