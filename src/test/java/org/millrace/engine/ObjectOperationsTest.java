package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.AbortedException;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.Operand;
import org.millrace.Serializer;

/** Operations on objects, and stream operations that give the ranks parts of different sizes. */
class ObjectOperationsTest {

    private record Word(String text, int times) {
    }

    private static void await(CompletionStage<Void> stage) throws Exception {
        stage.toCompletableFuture().get(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    private static String text(int rank) {
        return Character.toString('a' + rank).repeat(rank);
    }

    private static String texts(int end) {
        return IntStream.range(0, end).mapToObj(ObjectOperationsTest::text).reduce("", String::concat);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 4})
    void objectsAreCombinedInTheOrderOfTheRanks(int ranks) {
        Millrace.local(ranks, communicator -> {
            int rank = communicator.rank();
            assertEquals(rank == ranks - 1 ? Optional.of(texts(ranks)) : Optional.empty(),
                    communicator.reduce(text(rank), String::concat, ranks - 1, Serializer.STRING));
            assertEquals(texts(rank + 1), communicator.scan(text(rank), String::concat, Serializer.STRING));
            assertEquals(rank == 0 ? Optional.empty() : Optional.of(texts(rank)),
                    communicator.exscan(text(rank), String::concat, Serializer.STRING));
        });
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void eachRankGetsTheObjectsForIt(int ranks) {
        Millrace.local(ranks, communicator -> {
            int rank = communicator.rank();
            List<Word> received =
                    communicator.allToAll(IntStream.range(0, ranks).mapToObj(to -> new Word(text(to), rank)).toList(),
                            Serializer.of(Word.class));
            assertEquals(IntStream.range(0, ranks).mapToObj(from -> new Word(text(rank), from)).toList(), received);
            String message = assertThrows(IllegalArgumentException.class,
                    () -> communicator.allToAll(List.<Word>of(), Serializer.of(Word.class))).getMessage();
            assertTrue(message.contains("allToAll: 0 objects for " + ranks + " ranks"), message);
        });
    }

    @Test
    void partsOfDifferentSizesOnAStream() throws Exception {
        Millrace.local(3, communicator -> {
            int rank = communicator.rank();
            int[] all = new int[3];
            int[] gathered = new int[3];
            int[] part = new int[rank];
            int[] exchanged = new int[3 * rank];
            try (DeviceStream stream = communicator.device().newStream()) {
                Operand mine = Operand.of(IntStream.generate(() -> rank).limit(rank).toArray());
                CompletionStage<Void> first = communicator.allGatherv(mine, Operand.of(all), stream, 0, 1, 2);
                communicator.gatherv(mine, Operand.of(gathered), 1, stream, 0, 1, 2);
                communicator.scatterv(rank == 2 ? Operand.of(new int[] {1, 2, 2}) : null, Operand.of(part), 2, stream,
                        0, 1, 2);
                long[] fromEach = {rank, rank, rank};
                CompletionStage<Void> last = communicator.allToAllv(Operand.of(new int[] {1, 2, 2}),
                        new long[] {0, 1, 2}, Operand.of(exchanged), fromEach, stream);
                await(first);
                await(last);
                await(communicator.barrier(stream));
            }
            int[] expected = {1, 2, 2};
            assertArrayEquals(expected, all);
            assertArrayEquals(rank == 1 ? expected : new int[3], gathered);
            assertArrayEquals(IntStream.generate(() -> rank).limit(rank).toArray(), part);
            assertArrayEquals(IntStream.generate(() -> rank).limit(3L * rank).toArray(), exchanged);
        });
    }

    /** The operation is launched at the end of the group, so its completion stage cannot complete earlier. */
    @Test
    void partsOfDifferentSizesInAGroup() throws Exception {
        Millrace.local(2, communicator -> {
            int[] all = new int[3];
            try (DeviceStream stream = communicator.device().newStream()) {
                CompletionStage<?>[] stage = new CompletionStage<?>[1];
                communicator.group(() -> {
                    stage[0] = communicator.allGatherv(Operand.of(new int[1 + communicator.rank()]), Operand.of(all),
                            stream, 1, 2);
                    assertFalse(stage[0].toCompletableFuture().isDone());
                });
                stage[0].toCompletableFuture().get(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
            }
        });
    }

    @Test
    void aFailureCompletesTheStageWithoutAWrapper() {
        Throwable[] seen = new Throwable[1];
        assertThrows(AbortedException.class, () -> Millrace.local(2, communicator -> {
            if (communicator.rank() == 1) {
                communicator.barrier(Duration.ofSeconds(EngineGroup.TIMEOUT_SECONDS));
                communicator.abort(new IllegalStateException("planted"));
                return;
            }
            try (DeviceStream stream = communicator.device().newStream()) {
                CompletionStage<Void> stage =
                        communicator.allGatherv(Operand.of(new int[1]), Operand.of(new int[3]), stream, 1, 2);
                communicator.barrier(Duration.ofSeconds(EngineGroup.TIMEOUT_SECONDS));
                seen[0] = stage.handle((_, thrown) -> thrown)
                        .toCompletableFuture()
                        .get(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
            }
            communicator.barrier();
        }));
        assertInstanceOf(AbortedException.class, seen[0]);
    }
}
