package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Plan;
import org.millrace.ReduceOp;

/** Operations that are prepared once and launched many times. */
@Tag("slow")
class EnginePlanTest extends EngineFixture {

    private static final int RANKS = 3;
    private static final int LAUNCHES = 120;

    /** Work items are in the kernel's arguments. If the arguments have no room, the items are in separate memory. */
    @ParameterizedTest
    @ValueSource(strings = {"4096", "0"})
    void everyLaunchRunsAllOperations(String argumentBytes) throws Exception {
        Map<String, String> settings =
                EngineGroup.settings("NCCL_WORK_ARGS_BYTES", argumentBytes, "NCCL_WORK_FIFO_BYTES", "1K");
        EngineGroup.ranks(directory, RANKS, settings, communicator -> {
            try (Arena arena = Arena.ofShared();
                    DeviceStream stream = communicator.device().newStream();
                    DeviceStream other = communicator.device().newStream()) {
                int rank = communicator.rank();
                MemorySegment sum = communicator.device().allocate(8, arena);
                MemorySegment sent = communicator.device().allocate(8, arena);
                MemorySegment received = communicator.device().allocate(8, arena);
                MemorySegment own = communicator.device().allocate(8, arena);
                Plan plan = communicator.plan(stream, () -> {
                    communicator.allReduce(sum, sum, 1, DataType.INT64, ReduceOp.SUM, stream);
                    communicator.send(sent, 1, DataType.INT64, (rank + 1) % RANKS, stream);
                    communicator.receive(received, 1, DataType.INT64, (rank + RANKS - 1) % RANKS, stream);
                });
                for (int i = 0; i < LAUNCHES; i++) {
                    long number = i;
                    DeviceStream on = i % 7 == 3 ? other : stream;
                    on.call(() -> {
                        sum.set(ValueLayout.JAVA_LONG, 0, rank + number);
                        sent.set(ValueLayout.JAVA_LONG, 0, 1000 * rank + number);
                        own.set(ValueLayout.JAVA_LONG, 0, rank);
                    });
                    plan.launch(on);
                    communicator.allReduce(own, own, 1, DataType.INT64, ReduceOp.MAX, on);
                    on.synchronize(TIMEOUT);
                    assertEquals(3 + 3 * number, sum.get(ValueLayout.JAVA_LONG, 0));
                    assertEquals(1000 * ((rank + RANKS - 1) % RANKS) + number, received.get(ValueLayout.JAVA_LONG, 0));
                    assertEquals(RANKS - 1, own.get(ValueLayout.JAVA_LONG, 0));
                }
                plan.launch(stream);
                plan.close(); // the last launch may still be in flight
                plan.close();
                System.gc();
                stream.synchronize(TIMEOUT);
                IllegalStateException late = assertThrows(IllegalStateException.class, () -> plan.launch(stream));
                assertTrue(late.getMessage().contains("the plan is closed"), late.getMessage());
                communicator.allReduce(own, own, 1, DataType.INT64, ReduceOp.MAX, stream);
                stream.synchronize(TIMEOUT);
            }
        });
    }

    /** Each launch runs after the work that its streams already have, and before the work that they receive later. */
    @Test
    void aPlanOverSeveralStreams() throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), communicator -> {
            try (Arena arena = Arena.ofShared();
                    DeviceStream stream = communicator.device().newStream();
                    DeviceStream second = communicator.device().newStream();
                    DeviceStream third = communicator.device().newStream()) {
                MemorySegment one = communicator.device().allocate(8, arena);
                MemorySegment two = communicator.device().allocate(8, arena);
                try (Plan plan = communicator.plan(stream, () -> {
                    communicator.allReduce(one, one, 1, DataType.INT64, ReduceOp.SUM, stream);
                    communicator.allReduce(two, two, 1, DataType.INT64, ReduceOp.SUM, second);
                })) {
                    for (long i = 0; i < 50; i++) {
                        long number = i;
                        long[] seen = new long[2];
                        CountDownLatch set = new CountDownLatch(1);
                        second.call(() -> {
                            awaitQuietly(set);
                            two.set(ValueLayout.JAVA_LONG, 0, 1000 + number);
                        });
                        DeviceStream on = i % 3 == 0 ? third : stream;
                        on.call(() -> one.set(ValueLayout.JAVA_LONG, 0, number));
                        plan.launch(on);
                        second.call(() -> seen[1] = two.get(ValueLayout.JAVA_LONG, 0));
                        on.call(() -> seen[0] = one.get(ValueLayout.JAVA_LONG, 0));
                        set.countDown();
                        on.synchronize(TIMEOUT);
                        second.synchronize(TIMEOUT);
                        assertEquals(2 * number, seen[0]);
                        assertEquals(2000 + 2 * number, seen[1]);
                    }
                }
            }
        });
    }

    private static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    @Test
    void whatAPlanCannotBe() throws Exception {
        List<Throwable> thrown =
                EngineGroup.thrown(directory, 1, EngineGroup.settings(), (communicator, stream, arena) -> {
                    MemorySegment word = communicator.device().allocate(8, arena);
                    word.set(ValueLayout.JAVA_LONG, 0, 21);
                    ReduceOp twice = new ReduceOp.PreMulSum(2);
                    Runnable operation = () -> communicator.allReduce(word, word, 1, DataType.INT64, twice, stream);
                    assertThrows(IllegalStateException.class,
                            () -> communicator.group(() -> communicator.plan(stream, operation)));
                    IllegalCallerException own =
                            assertThrows(IllegalCallerException.class, () -> communicator.plan(stream, () -> {
                                operation.run();
                                throw new IllegalCallerException("the test's");
                            }));
                    assertEquals("the test's", own.getMessage());
                    try (Plan plan = communicator.plan(stream, operation)) {
                        stream.synchronize(TIMEOUT);
                        assertEquals(21, word.get(ValueLayout.JAVA_LONG, 0), "something ran without a launch");
                        IllegalStateException inGroup = assertThrows(IllegalStateException.class,
                                () -> communicator.group(() -> plan.launch(stream)));
                        assertTrue(inGroup.getMessage().contains("outside of groups"), inGroup.getMessage());
                        plan.launch(stream);
                        stream.synchronize(TIMEOUT);
                        assertEquals(42, word.get(ValueLayout.JAVA_LONG, 0));
                    }
                    assertTrue(communicator.asyncError().isEmpty());
                });
        assertNull(thrown.getFirst());
    }
}
