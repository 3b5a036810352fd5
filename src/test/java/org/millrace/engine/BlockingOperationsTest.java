package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.AbortedException;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeadlineException;
import org.millrace.Operand;
import org.millrace.ReduceFunction;
import org.millrace.ReduceOp;
import org.millrace.Serializer;
import org.millrace.operation.StagingDevice;

/**
 * Operations without a stream: NCCL's operations, the operations of MPI that are built from NCCL's operations, and the
 * permitted operands.
 */
class BlockingOperationsTest {

    @TempDir
    Path directory;

    private void ranks(int ranks, String network, EngineGroup.RankBody body) throws Exception {
        EngineGroup.ranks(directory, ranks, EngineGroup.settings("MILLRACE_NET", network), body);
    }

    @ParameterizedTest
    @CsvSource({"1, shm", "2, shm", "3, socket", "4, shm"})
    void thoseOfNcclAndScalars(int size, String network) throws Exception {
        ranks(size, network, communicator -> {
            int rank = communicator.rank();
            assertEquals(size * (size + 1) / 2, communicator.allReduce(rank + 1L, ReduceOp.SUM));
            assertEquals((size + 1) / 2.0, communicator.allReduce(rank + 1.0, ReduceOp.AVG), 1e-12);
            int[] all = new int[2 * size];
            communicator.allGather(Operand.of(new int[] {rank, -rank}), Operand.of(all));
            int[] sum = new int[2];
            communicator.reduceScatter(Operand.of(all), Operand.of(sum), ReduceOp.SUM);
            assertArrayEquals(new int[] {rank * size, -rank * size}, sum);
            communicator.broadcast(Operand.of(sum), size - 1);
            assertEquals((size - 1) * size, sum[0]);
            int[] at0 = rank == 0 ? new int[size] : null;
            communicator.gather(Operand.of(new int[] {rank}), at0 == null ? null : Operand.of(at0), 0);
            int[] back = new int[1];
            communicator.scatter(at0 == null ? null : Operand.of(at0), Operand.of(back), 0);
            assertEquals(rank, back[0]);
            communicator.reduce(Operand.of(back), rank == 0 ? Operand.of(back) : null, ReduceOp.MAX, 0);
            assertEquals(rank == 0 ? size - 1 : rank, back[0]);
            int[] turned = new int[size];
            communicator.allToAll(Operand.of(all, 0, size), Operand.of(turned));
            int[] next = new int[1];
            communicator.sendReceive(Operand.of(new int[] {rank}), (rank + 1) % size, Operand.of(next),
                    (rank + size - 1) % size);
            assertEquals((rank + size - 1) % size, next[0]);
            communicator.barrier();
            communicator.barrier(Duration.ofSeconds(EngineGroup.TIMEOUT_SECONDS));
        });
    }

    /**
     * The calling thread releases the operation's staging memory itself. A release by another thread would take a core
     * from waiting threads.
     */
    @Test
    void whatAnOperationTookIsGivenBackWhenItReturns() throws Exception {
        ranks(2, "shm", communicator -> {
            Set<Long> taken = new HashSet<>();
            for (int i = 0; i < 100; i++) {
                communicator.allReduce(Operand.of(new int[100]), ReduceOp.SUM);
                try (var lease = ((StagingDevice) communicator.device()).staging().take(400)) {
                    taken.add(lease.memory().address());
                }
            }
            assertEquals(1, taken.size());
        });
    }

    @ParameterizedTest
    @CsvSource({"2, shm", "3, socket", "4, shm"})
    void partsOfAnySize(int size, String network) throws Exception {
        ranks(size, network, communicator -> {
            int rank = communicator.rank();
            // rank r contributes r elements, all with the value r; rank 0 contributes no elements
            long[] counts = new long[size];
            for (int i = 0; i < size; i++) {
                counts[i] = i;
            }
            short[] mine = new short[rank];
            Arrays.fill(mine, (short) rank);
            short[] all = new short[size * (size - 1) / 2];
            communicator.allGatherv(Operand.of(mine), Operand.of(all), counts);
            int at = 0;
            for (int r = 0; r < size; r++) {
                for (int i = 0; i < r; i++) {
                    assertEquals(r, all[at++]);
                }
            }
            short[] gathered = new short[rank == 1 ? all.length : 0];
            communicator.gatherv(Operand.of(mine), rank == 1 ? Operand.of(gathered) : null, 1, counts);
            short[] scattered = new short[rank];
            communicator.scatterv(rank == 1 ? Operand.of(gathered) : null, Operand.of(scattered), 1, counts);
            assertArrayEquals(mine, scattered);

            long[] receiveCounts = new long[size]; // rank r sends r elements to each rank
            long[] sendCounts = new long[size];
            for (int i = 0; i < size; i++) {
                receiveCounts[i] = i;
                sendCounts[i] = rank;
            }
            double[] sent = new double[size * rank];
            for (int i = 0; i < sent.length; i++) {
                sent[i] = 100 * rank + i / Math.max(1, rank);
            }
            double[] received = new double[all.length];
            communicator.allToAllv(Operand.of(sent), sendCounts, Operand.of(received), receiveCounts);
            at = 0;
            for (int r = 0; r < size; r++) {
                for (int i = 0; i < r; i++) {
                    assertEquals(100 * r + rank, received[at++]);
                }
            }
            assertThrows(IllegalArgumentException.class,
                    () -> communicator.allGatherv(Operand.of(mine), Operand.of(all), all.length + 1));
        });
    }

    @ParameterizedTest
    @CsvSource({"2, socket", "4, shm"})
    void objects(int size, String network) throws Exception {
        ranks(size, network, communicator -> {
            int rank = communicator.rank();
            String mine = "é".repeat(rank);
            List<String> all = communicator.allGather(mine, Serializer.STRING);
            for (int r = 0; r < size; r++) {
                assertEquals("é".repeat(r), all.get(r));
            }
            assertEquals("plan", communicator.broadcast(rank == 1 ? "plan" : null, 1, Serializer.STRING));
            List<String> at1 = communicator.gather(mine, 1, Serializer.STRING);
            assertEquals(rank == 1 ? all : List.of(), at1);
            assertEquals(mine, communicator.scatter(rank == 1 ? at1 : null, 1, Serializer.STRING));
            StringBuilder ordered = new StringBuilder();
            for (int r = 0; r < size; r++) {
                ordered.append(r).append(' ');
            }
            assertEquals(ordered.toString(), communicator.allReduce(rank + " ", String::concat, Serializer.STRING));
            if (rank == 0) {
                communicator.send("letter", 1, Serializer.STRING);
            } else if (rank == 1) {
                assertEquals("letter", communicator.receive(0, Serializer.STRING));
            }
        });
    }

    @ParameterizedTest
    @CsvSource({"1, shm", "2, shm", "3, socket", "4, shm"})
    void reductionsOfOnesOwnAndScans(int size, String network) throws Exception {
        ranks(size, network, communicator -> {
            int rank = communicator.rank();
            int[] bits = {1 << rank, -1, 7};
            communicator.allReduce(Operand.of(bits), ReduceFunction.BITWISE_XOR);
            assertArrayEquals(new int[] {(1 << size) - 1, size % 2 == 0 ? 0 : -1, size % 2 == 0 ? 0 : 7}, bits);
            // the function returns its left operand and is not commutative, so the result shows the order in which
            // ranks are combined
            double[] first = {rank, 10 + rank, 20 + rank, 30 + rank, 40 + rank};
            communicator.allReduce(Operand.of(first), ReduceFunction.ofDoubles((a, _) -> a));
            assertArrayEquals(new double[] {0, 10, 20, 30, 40}, first);
            float[] sums = {1, rank};
            communicator.scan(Operand.of(sums), ReduceFunction.SUM);
            assertArrayEquals(new float[] {rank + 1, rank * (rank + 1) / 2}, sums);
            long[] before = {rank + 1};
            communicator.exscan(Operand.of(before), ReduceFunction.SUM);
            assertEquals(rank == 0 ? 1 : rank * (rank + 1) / 2, before[0]);
            byte[] any = {0, (byte) (rank == size - 1 ? 1 : 0)};
            communicator.allReduce(Operand.of(any), ReduceFunction.LOGICAL_OR);
            assertArrayEquals(new byte[] {0, 1}, any);
            double[] best = {rank % 2, -rank, 3};
            assertArrayEquals(new int[] {size > 1 ? 1 : 0, 0, 0},
                    communicator.allReduceWithRank(Operand.of(best), ReduceOp.MAX));
            assertArrayEquals(new double[] {size > 1 ? 1 : 0, 0, 3}, best);
            assertThrows(IllegalArgumentException.class,
                    () -> communicator.allReduce(Operand.of(first), ReduceFunction.BITWISE_OR));
        });
    }

    @ParameterizedTest
    @CsvSource({"2, shm", "3, socket"})
    void operandsOfAllKinds(int size, String network) throws Exception {
        ranks(size, network, communicator -> {
            int rank = communicator.rank();
            boolean[] flags = {true, rank == 0, false, true};
            communicator.allReduce(Operand.of(flags, 0, 3), ReduceOp.MIN);
            assertArrayEquals(new boolean[] {true, false, false, true}, flags);
            char[] text = rank == 0 ? "räce".toCharArray() : new char[4];
            communicator.broadcast(Operand.of(text), 0);
            assertEquals("räce", new String(text));
            assertThrows(IllegalArgumentException.class, () -> communicator.allReduce(Operand.of(text), ReduceOp.SUM));
            float[] weights = {1, 2, 3, 4};
            float[] bias = {10};
            try (Arena arena = Arena.ofShared()) {
                var scale = arena.allocate(ValueLayout.JAVA_FLOAT);
                scale.set(ValueLayout.JAVA_FLOAT, 0, 5);
                Operand bucket = Operand.bucket(Operand.of(weights, 1, 4), Operand.of(bias),
                        Operand.ofHost(scale, DataType.FLOAT32));
                assertEquals(5, bucket.count());
                communicator.allReduce(bucket, ReduceOp.SUM);
                communicator.allReduce(bucket.slice(2, 2), ReduceOp.MAX);
                assertArrayEquals(new float[] {1, 2 * size, 3 * size, 4 * size}, weights);
                assertEquals(10 * size, bias[0]);
                assertEquals(5 * size, scale.get(ValueLayout.JAVA_FLOAT, 0));
            }
            assertThrows(IndexOutOfBoundsException.class, () -> Operand.of(weights, 2, 5));
        });
    }

    @Test
    void inAGroupItIsRefusedByName() throws Exception {
        ranks(2, "shm", communicator -> {
            IllegalStateException refused =
                    assertThrows(IllegalStateException.class, () -> communicator.group(() -> communicator.barrier()));
            assertTrue(refused.getMessage().contains("give it a stream"), refused.getMessage());
        });
    }

    @ParameterizedTest
    @CsvSource({"2", "4"})
    void aMonitoredBarrierNamesWhoIsMissing(int size) throws Exception {
        CountDownLatch over = new CountDownLatch(size - 1);
        List<Throwable> thrown = EngineGroup.thrown(directory, size, EngineGroup.settings(), communicator -> {
            if (communicator.rank() == size - 1) {
                assertTrue(over.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS));
                return;
            }
            try {
                communicator.barrier(Duration.ofMillis(200));
            } finally {
                over.countDown();
            }
        });
        for (int rank = 0; rank < size - 1; rank++) {
            DeadlineException late = assertInstanceOf(DeadlineException.class, thrown.get(rank));
            assertTrue(late.getMessage().contains("rank " + (size - 1)), late.getMessage());
            assertNull(late.getCause());
        }
        assertTrue(thrown.getLast() == null || thrown.getLast() instanceof AbortedException);
    }

    @Test
    void aCommunicatorOfSomeRanksHasThemToo() throws Exception {
        ranks(4, "shm", communicator -> {
            try (Communicator half = communicator.split(communicator.rank() % 2, 0).orElseThrow()) {
                assertEquals(communicator.rank() % 2 == 0 ? 2 : 4,
                        half.allReduce((long) communicator.rank(), ReduceOp.SUM));
            }
        });
    }
}
