package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.Operation;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.device.CollectiveFunction;

class AlgorithmChoiceTest {

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"Ring | [ring]", "tree | [tree]", "ring,tree | [ring, tree]",
                    "^tree | [ring, collnet_direct, collnet_chain]",
                    "^NVLS | [ring, tree, collnet_direct, collnet_chain]", "NVLS,Tree | [tree]",
                    "allreduce:tree | [tree]", "ring;allreduce:tree | [tree]",
                    "broadcast:ring | [ring, tree, collnet_direct, collnet_chain]",
                    "CollnetDirect,Ring | [ring, collnet_direct]", "CollnetChain | [collnet_chain]",
                    "tree;allgather:ring | [tree]", "allreduce:^ring , nvls | [tree, collnet_direct, collnet_chain]"})
    void namesAreThoseOfNccl(String text, String expected) {
        assertEquals(expected,
                AlgorithmChoice.parse(text).allowed().get("allreduce").toString().toLowerCase(Locale.ROOT));
    }

    @ParameterizedTest
    @ValueSource(strings = {"circle", "nvls", "^ring,tree,collnet", "gather:ring", "allreduce:", ""})
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

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"collnet | true | true | true", "ring | false | false | false",
                    "allgather:ring | true | false | true", "ring;reducescatter:collnet | false | false | true",
                    "collnetchain | false | false | false"})
    void collnetIsAllowedByFunction(String text, boolean allReduce, boolean allGather, boolean reduceScatter) {
        AlgorithmChoice choice = AlgorithmChoice.parse(text);
        assertEquals(allReduce, choice.allows(Operation.ALL_REDUCE, CollectiveFunction.Algorithm.COLLNET_DIRECT));
        assertEquals(allGather, choice.allows(Operation.ALL_GATHER, CollectiveFunction.Algorithm.COLLNET_DIRECT));
        assertEquals(reduceScatter,
                choice.allows(Operation.REDUCE_SCATTER, CollectiveFunction.Algorithm.COLLNET_DIRECT));
    }

    @Test
    void collnetAloneNeedsItEnabled() {
        String message = assertThrows(ConfigurationException.class,
                () -> AlgorithmChoice.of(Configuration.load(Map.of("NCCL_ALGO", "collnet")))).getMessage();
        assertTrue(message.contains("NCCL_ALGO allows only collnet") && message.contains("NCCL_COLLNET_ENABLE=1"),
                message);
        assertTrue(AlgorithmChoice.of(Configuration.load(Map.of("NCCL_ALGO", "collnet", "NCCL_COLLNET_ENABLE", "1")))
                .needsCollNet(Operation.ALL_REDUCE));
    }
}
