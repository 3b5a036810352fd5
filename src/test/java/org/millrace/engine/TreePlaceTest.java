package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.millrace.abi.KernelChannel;
import org.millrace.engine.Topology.TreePlace;

class TreePlaceTest {

    static IntStream sizes() {
        return IntStream.concat(IntStream.rangeClosed(2, 40), IntStream.of(64, 127, 128, 1000));
    }

    private static List<TreePlace> tree(int tree, int ranks, boolean oneHost) {
        return IntStream.range(0, ranks).mapToObj(rank -> TreePlace.of(tree, rank, ranks, oneHost)).toList();
    }

    @ParameterizedTest
    @MethodSource("sizes")
    void everyRankHangsOnOneRootByAShortWay(int ranks) {
        int levels = Integer.SIZE - Integer.numberOfLeadingZeros(ranks);
        check(ranks, false, 2, 2 * levels);
        check(ranks, true, KernelChannel.MAX_CHILDREN, levels);
    }

    private static void check(int ranks, boolean oneHost, int mostChildren, int deepest) {
        for (int number = 0; number < 2; number++) {
            List<TreePlace> tree = tree(number, ranks, oneHost);
            assertEquals(1, tree.stream().filter(place -> place.parent() < 0).count());
            for (int rank = 0; rank < ranks; rank++) {
                TreePlace place = tree.get(rank);
                assertTrue(place.children().size() <= mostChildren, place.toString());
                for (int child : place.children()) {
                    assertEquals(rank, tree.get(child).parent());
                }
                int depth = 0;
                for (int at = rank; tree.get(at).parent() >= 0; at = tree.get(at).parent()) {
                    assertTrue(tree.get(tree.get(at).parent()).children().contains(at), "rank " + at);
                    assertTrue(++depth < deepest, "rank " + rank + " of " + ranks + " is too deep");
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("sizes")
    void whoHasChildrenInOneTreeIsALeafInTheOther(int ranks) {
        for (boolean oneHost : new boolean[] {false, true}) {
            List<TreePlace> first = tree(0, ranks, oneHost);
            List<TreePlace> second = tree(1, ranks, oneHost);
            long both = IntStream.range(0, ranks)
                    .filter(rank -> !first.get(rank).children().isEmpty() && !second.get(rank).children().isEmpty())
                    .count();
            assertTrue(both <= (ranks == 2 ? 0 : 1), both + " ranks have children in both trees of " + ranks);
        }
    }

    @Test
    void onOneHostFourRanksWaitForOne() {
        assertEquals(List.of(-1, 0, 0, 0), tree(0, 4, true).stream().map(TreePlace::parent).toList());
        assertEquals(List.of(-1, 0, 0, 0, 1, 1, 1, 2), tree(0, 8, true).stream().map(TreePlace::parent).toList());
        assertEquals(List.of(6, 6, 6, 7, 7, 7, -1),
                tree(1, 8, true).subList(1, 8).stream().map(TreePlace::parent).toList());
    }

    /** The expected tree for 14 ranks is the tree in the comment of NCCL's trees.cc. */
    @Test
    void theTreeIsNccls() {
        List<TreePlace> tree = tree(0, 14, false);
        assertEquals(List.of(-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12),
                tree.stream().map(TreePlace::parent).toList());
        assertEquals(List.of(8), tree.get(0).children());
        assertEquals(List.of(4, 12), tree.get(8).children());
    }
}
