package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.millrace.engine.Topology.TreePlace;

class TreePlaceTest {

    static IntStream sizes() {
        return IntStream.concat(IntStream.rangeClosed(2, 40), IntStream.of(64, 127, 128, 1000));
    }

    private static List<TreePlace> tree(int tree, int ranks) {
        return IntStream.range(0, ranks).mapToObj(rank -> TreePlace.of(tree, rank, ranks)).toList();
    }

    @ParameterizedTest
    @MethodSource("sizes")
    void everyRankHangsOnOneRootByAShortWay(int ranks) {
        int deepest = 2 * (Integer.SIZE - Integer.numberOfLeadingZeros(ranks));
        for (int number = 0; number < 2; number++) {
            List<TreePlace> tree = tree(number, ranks);
            assertEquals(1, tree.stream().filter(TreePlace::isRoot).count());
            for (int rank = 0; rank < ranks; rank++) {
                TreePlace place = tree.get(rank);
                assertTrue(place.children().size() <= 2, place.toString());
                for (int child : place.children()) {
                    assertEquals(rank, tree.get(child).parent());
                }
                int depth = 0;
                for (int at = rank; !tree.get(at).isRoot(); at = tree.get(at).parent()) {
                    assertTrue(tree.get(tree.get(at).parent()).children().contains(at), "rank " + at);
                    assertTrue(++depth < deepest, "rank " + rank + " of " + ranks + " is too deep");
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("sizes")
    void whoHasChildrenInOneTreeIsALeafInTheOther(int ranks) {
        List<TreePlace> first = tree(0, ranks);
        List<TreePlace> second = tree(1, ranks);
        long both = IntStream.range(0, ranks)
                .filter(rank -> !first.get(rank).children().isEmpty() && !second.get(rank).children().isEmpty())
                .count();
        assertTrue(both <= (ranks == 2 ? 0 : 1), both + " ranks have children in both trees of " + ranks);
    }

    /** NCCL's trees.cc draws this one for 14 ranks. */
    @Test
    void theTreeIsNccls() {
        List<TreePlace> tree = tree(0, 14);
        assertEquals(List.of(-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12),
                tree.stream().map(TreePlace::parent).toList());
        assertEquals(List.of(8), tree.get(0).children());
        assertEquals(List.of(4, 12), tree.get(8).children());
    }
}
