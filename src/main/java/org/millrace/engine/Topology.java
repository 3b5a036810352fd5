package org.millrace.engine;

import java.util.List;
import java.util.stream.IntStream;
import org.millrace.abi.KernelChannel;
import org.millrace.device.DeviceChannel;
import org.millrace.device.DeviceCommunicator;

/** Writes this rank's neighbors in rings and trees into a communicator's channels, where kernels read them. */
final class Topology {

    private static final int TREES = 2;

    private Topology() {}

    /**
     * Returns the number of channels of a communicator: one for each ring, and at least one for each of the two trees.
     */
    static int channels(int ranks, int rings) {
        return ranks == 1 ? rings : Math.max(TREES, rings);
    }

    /**
     * Writes the two trees into the channels: the first tree into even channels, and the second tree into odd channels.
     * The channels already contain the rings, which connect the ranks in the order of their numbers.
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

    /** Requests the connections of the rings. All other connections are made when an operation needs them. */
    static void connectRings(DeviceCommunicator device, Connectors connectors, int rings) {
        for (int number = 0; number < rings && device.ranks() > 1; number++) {
            DeviceChannel channel = device.channel(number);
            connectors.send(channel.view().next(), number, KernelChannel.COLLECTIVE);
            connectors.receive(channel.view().previous(), number, KernelChannel.COLLECTIVE);
        }
    }

    /**
     * Place of a rank in one of two trees over the same ranks. Except for one rank, a rank with children in one tree is
     * a leaf in the other tree. A pair of trees therefore loads the connections of all ranks equally (Sanders, Speck
     * and Träff: Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009). Between hosts, the trees
     * are binary and connect ranks with close numbers, which are often on one host, as in NCCL's trees. On one host, a
     * rank has as many children as possible. A tree with one level less saves two waits: one up and one down the tree.
     * Tree 1 numbers the ranks from the last rank down. If the trees connect hosts and the number of ranks is odd, tree
     * 1 instead shifts the numbers by one rank.
     *
     * <pre>
     *   8 ranks, tree 0    0───────────4                The parent of number n: clear the lowest set bit of n, and set
     *                            2───────────6          the next higher bit if a rank has the resulting number.
     *                         1     3     5     7       Tree 1: rank r has number ranks - 1 - r if ranks is even,
     *                                                   otherwise number r - 1, and rank 0 has number ranks - 1.
     *
     *   on one host        0─────┬─────┐
     *                      1     2     3                Tree 1: rank r has number ranks - 1 - r.
     *                    4 5 6   7
     * </pre>
     *
     * @param parent   parent rank, or -1 at the root
     * @param children child ranks, in ascending order of their numbers in the tree
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
