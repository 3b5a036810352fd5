package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.millrace.CommunicatorListener;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;
import org.millrace.config.ConfigurationException;

/**
 * Errors of a program and their effect on other ranks. The exception names the kind of error and the call. No rank
 * hangs, and no thread or file remains.
 */
class EngineErrorsTest extends EngineFixture {

    private static String message(Throwable thrown) {
        assertNotNull(thrown, "this rank should have failed");
        return thrown.getMessage();
    }

    @Test
    void slicesThatKernelsCannotGatherAreRefusedByName() {
        String refused = assertThrows(ConfigurationException.class,
                () -> new EngineProvider().join("file:" + directory.resolve("group"), 0, 1,
                        Map.of("NCCL_NET_DEVICE_UNPACK_ENABLED", "1", "NCCL_BUFFSIZE", "32M"),
                        CommunicatorListener.STANDARD_ERROR))
                .getMessage();
        assertTrue(refused.startsWith("NCCL_BUFFSIZE of more than 16 MiB has slices that kernels cannot gather"),
                refused);
    }

    @Test
    void badOperandsAreRefusedBeforeAnythingHappens() throws Exception {
        List<Throwable> thrown = EngineGroup.thrown(directory, 1, EngineGroup.settings(), communicator -> {
            Arena closed = Arena.ofShared();
            MemorySegment dead = closed.allocate(64);
            closed.close();
            try (Arena arena = Arena.ofShared();
                    Arena confined = Arena.ofConfined();
                    DeviceStream stream = communicator.device().newStream()) {
                MemorySegment good = communicator.device().allocate(64, arena);
                refused("arena is closed",
                        () -> communicator.allReduce(dead, good, 1, DataType.INT32, ReduceOp.SUM, stream));
                refused("take 68 bytes, the segment has 64",
                        () -> communicator.allReduce(good, good, 17, DataType.FLOAT32, ReduceOp.SUM, stream));
                refused("not aligned to the 4 bytes of a float",
                        () -> communicator.allReduce(good.asSlice(2), good, 4, DataType.FLOAT32, ReduceOp.SUM, stream));
                refused("count -1 is negative",
                        () -> communicator.allReduce(good, good, -1, DataType.INT8, ReduceOp.SUM, stream));
                refused("heap segment", () -> communicator.allReduce(MemorySegment.ofArray(new byte[64]), good, 4,
                        DataType.INT8, ReduceOp.SUM, stream));
                refused("confined arena", () -> communicator.allReduce(confined.allocate(64, 8), good, 4, DataType.INT8,
                        ReduceOp.SUM, stream));
                refused("read-only",
                        () -> communicator.allReduce(good, good.asReadOnly(), 4, DataType.INT8, ReduceOp.SUM, stream));
                refused("overlap by 4 of 8 bytes",
                        () -> communicator.allReduce(good, good.asSlice(4), 2, DataType.FLOAT32, ReduceOp.SUM, stream));
                communicator.allReduce(good, good, 16, DataType.FLOAT32, ReduceOp.SUM, stream);
                stream.synchronize(TIMEOUT);
            }
        });
        assertNull(thrown.getFirst());
    }

    private static void refused(String because, Runnable call) {
        IllegalArgumentException thrown = assertThrows(IllegalArgumentException.class, call::run);
        assertTrue(thrown.getMessage().contains(because), thrown.getMessage());
    }

    @Test
    void ranksThatDisagreeOnTheSizeAreBothTold() throws Exception {
        List<Throwable> thrown =
                EngineGroup.thrown(directory, 3, EngineGroup.settings(), (communicator, stream, arena) -> {
                    long count = communicator.rank() == 1 ? 500 : 1000;
                    MemorySegment data = communicator.device().allocate(8 * count, arena);
                    communicator.allReduce(data, data, count, DataType.INT64, ReduceOp.SUM, stream);
                    stream.synchronize(TIMEOUT);
                });
        for (Throwable failure : thrown) {
            assertTrue(message(failure).contains("the ranks disagree"), message(failure));
            assertTrue(message(failure).contains("all_reduce of 500 int64, sum"), message(failure));
        }
    }

    @Test
    void aRankThatNeverCallsIsNamed() throws Exception {
        CountDownLatch failed = new CountDownLatch(1);
        Map<String, String> settings =
                EngineGroup.settings("MILLRACE_STALL_DEADLINE", "300ms", "MILLRACE_LATE_DEADLINE", "500ms");
        List<Throwable> thrown = EngineGroup.thrown(directory, 2, settings, communicator -> {
            if (communicator.rank() == 1) {
                assertTrue(failed.await(EngineGroup.TIMEOUT_SECONDS, TimeUnit.SECONDS));
                return;
            }
            try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                MemorySegment data = communicator.device().allocate(800, arena);
                communicator.allReduce(data, data, 100, DataType.INT64, ReduceOp.SUM, stream);
                MillraceException stalled = assertThrows(MillraceException.class, () -> stream.synchronize(TIMEOUT));
                assertTrue(stalled.getMessage()
                        .contains("rank 0, operation 0: all_reduce of 100 int64, sum: rank 1 has not reached it within"
                                + " 500 ms (MILLRACE_LATE_DEADLINE): rank 0 <- rank 1, channel 0 waits for data, at"
                                + " step 0"),
                        stalled.getMessage());
                MillraceException later = assertThrows(MillraceException.class,
                        () -> communicator.allReduce(data, data, 100, DataType.INT64, ReduceOp.SUM, stream));
                assertTrue(later.getMessage()
                        .contains(
                                "the communicator has failed; close it, or continue with the living ranks by shrink: "),
                        later.getMessage());
            } finally {
                failed.countDown();
            }
        });
        assertNull(thrown.get(0));
        assertNull(thrown.get(1));
    }

    @Test
    void anAbortInMidTransferEndsEveryRank() throws Exception {
        EngineGroup.ranks(directory, 3, EngineGroup.settings("NCCL_BUFFSIZE", "32K"), (communicator, stream, arena) -> {
            MemorySegment data = communicator.device().allocate(8 << 20, arena);
            MillraceException failure = assertThrows(MillraceException.class, () -> {
                for (int i = 0; i < 100; i++) {
                    communicator.allReduce(data, data, 1 << 20, DataType.INT64, ReduceOp.SUM, stream);
                    if (communicator.rank() == 1 && i == 50) {
                        communicator.abort();
                        communicator.abort();
                        stream.synchronize(TIMEOUT);
                    }
                }
                stream.synchronize(TIMEOUT);
            });
            assertTrue(failure.getMessage().contains("rank 1 aborted the communicator"), failure.getMessage());
        });
    }

    @Test
    void aRankThatNeverComesIsNamed() throws Exception {
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            if (rank == 0) {
                EngineGroup.join(directory, 0, 3, EngineGroup.settings("MILLRACE_CONNECT_DEADLINE", "1s")).close();
            }
            return null;
        });
        assertInstanceOf(MillraceException.class, thrown.get(0));
        assertTrue(message(thrown.get(0)).contains("1, 2") || message(thrown.get(0)).contains("rank 1"),
                message(thrown.get(0)));
    }

    @Test
    void settingsThatMustAgreeAreCompared() throws Exception {
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            EngineGroup.join(directory, rank, 2, EngineGroup.settings("NCCL_BUFFSIZE", rank == 0 ? "1M" : "2M"))
                    .close();
            return null;
        });
        assertTrue(
                thrown.stream()
                        .anyMatch(failure -> failure != null && failure.getMessage().contains("NCCL_BUFFSIZE is")),
                thrown.toString());
        assertTrue(thrown.stream().allMatch(failure -> failure instanceof MillraceException), thrown.toString());
    }

    @Test
    void aClosedCommunicatorSaysSo() throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), communicator -> {
            communicator.close();
            communicator.close();
            communicator.abort();
            MillraceException closed = assertThrows(MillraceException.class, () -> communicator
                    .allReduce(MemorySegment.NULL, MemorySegment.NULL, 0, DataType.INT8, ReduceOp.SUM, null));
            assertTrue(closed.getMessage().contains("closed"), closed.getMessage());
        });
    }
}
