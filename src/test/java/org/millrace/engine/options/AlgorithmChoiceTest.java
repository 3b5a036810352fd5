package org.millrace.engine.options;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.config.ConfigurationException;

class AlgorithmChoiceTest {

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"Ring | [ring]", "tree | [tree]", "ring,tree | [ring, tree]", "^tree | [ring]",
                    "^NVLS | [ring, tree]", "NVLS,Tree | [tree]", "allreduce:tree | [tree]",
                    "ring;allreduce:tree | [tree]", "broadcast:ring | [ring, tree]", "tree;allgather:ring | [tree]",
                    "allreduce:^ring , nvls | [tree]"})
    void namesAreThoseOfNccl(String text, String expected) {
        assertEquals(expected, AlgorithmChoice.parse(text).text());
    }

    @ParameterizedTest
    @ValueSource(strings = {"circle", "nvls", "^ring,tree", "gather:ring", "allreduce:", ""})
    void whatLeavesNothingIsRefused(String text) {
        String message = assertThrows(ConfigurationException.class, () -> AlgorithmChoice.parse(text)).getMessage();
        assertTrue(message.contains("NCCL_ALGO=" + text) && message.contains("ring and tree"), message);
    }

    @ParameterizedTest
    @CsvSource({"ring, 8, 8, false", "tree, 2, 1000000000, true", "^nvls, 8, 8, true", "^nvls, 2, 8, false",
            "^nvls, 8, 1000000000, false"})
    void whatIsForcedIsUsedAndElseTheSizeDecides(String text, int ranks, long bytes, boolean tree) {
        assertEquals(tree, AlgorithmChoice.parse(text).prefersTree(ranks, bytes));
    }
}
