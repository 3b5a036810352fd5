package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.AbortedException;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;
import org.millrace.Registration;

/**
 * An abort of a communicator ends its kernel on any transport, even if the kernel waits for an empty slot or for data.
 * The kernel of the other rank ends too, although that rank did not abort.
 */
@Timeout(120)
class AbortTest {

    private static final int SECONDS = 15;
    private static final Duration TIMEOUT = Duration.ofSeconds(SECONDS);
    /** Number of elements. All slots together cannot hold the elements. */
    private static final int COUNT = 8 << 20;

    @TempDir
    Path directory;

    @AfterEach
    void nothingIsLeftBehind() {
        assertEquals(List.of(), EngineGroup.threadsAlive(), "threads");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"P2P |", "P2P by copy | NCCL_P2P_USE_CUDA_MEMCPY=1", "SHM | NCCL_P2P_DISABLE=1",
                    "SHM by copy | NCCL_P2P_DISABLE=1 NCCL_SHM_USE_CUDA_MEMCPY=1 NCCL_SHM_MEMCPY_MODE=3",
                    "NET shm | MILLRACE_NET=shm", "NET shm | MILLRACE_NET=shm NCCL_NET_SHARED_BUFFERS=1",
                    "NET socket | MILLRACE_NET=socket",
                    "CollNet | MILLRACE_NET=shm NCCL_COLLNET_ENABLE=1 NCCL_ALGO=collnetdirect"})
    void aKernelThatWaitsLeaves(String transport, String more) throws Exception {
        Map<String, String> settings = EngineGroup.settings("NCCL_BUFFSIZE", "64K");
        if (more != null) {
            Arrays.stream(more.split(" ")).map(each -> each.split("=")).forEach(each -> settings.put(each[0], each[1]));
        }
        boolean reduces = transport.equals("CollNet");
        for (boolean sends : new boolean[] {true, false}) {
            CountDownLatch otherWaits = new CountDownLatch(reduces ? 0 : 1);
            CountDownLatch aborted = new CountDownLatch(1);
            List<Throwable> thrown = EngineGroup.call(2, SECONDS, rank -> () -> {
                try (Communicator communicator = EngineGroup.join(directory, rank, 2, settings);
                        Arena arena = Arena.ofShared();
                        DeviceStream stream = communicator.device().newStream()) {
                    MemorySegment data = communicator.device().allocate(COUNT, arena);
                    boolean first = communicator.rank() == 0;
                    // connections are created when both ranks request them
                    call(communicator, reduces, first, 1, data, stream);
                    call(communicator, reduces, !first, 1, data, stream);
                    stream.synchronize(TIMEOUT);
                    if (first) {
                        otherWaits.await();
                    } else if (reduces) {
                        // this rank waits for the abort, because the operations would complete if both ranks reduced at
                        // once
                        aborted.await();
                    }
                    MillraceException refused = assertThrows(MillraceException.class, () -> {
                        // both ranks send, or both receive, so neither operation can complete
                        call(communicator, reduces, sends, COUNT, data, stream);
                        if (first || !reduces) {
                            if (sends && !reduces) {
                                assertEquals(List.of(transport), communicator.route().orElseThrow().transports());
                            } else if (reduces) {
                                assertEquals("collnetdirect", communicator.route().orElseThrow().algorithm());
                            }
                            while (communicator.recentWork().getLast().completed() != -1) {
                                assertFalse(Thread.interrupted(), "no kernel has begun");
                            }
                        }
                        if (first) {
                            communicator.abort(new IllegalStateException("the test's reason"));
                            aborted.countDown();
                        } else {
                            otherWaits.countDown();
                        }
                        stream.synchronize(TIMEOUT);
                    });
                    throw refused;
                }
            });
            for (Throwable each : thrown) {
                assertInstanceOf(AbortedException.class, each, String.valueOf(each));
                assertTrue(each.getMessage().contains("rank 0 aborted the communicator")
                        && each.getMessage().contains("the test's reason"), each.getMessage());
            }
        }
    }

    /**
     * The program frees its memory when the abort returns. The abort must therefore wait for a proxy that is about to
     * write to that memory.
     */
    @Test
    void aProgramIsToldWhenNoPassWritesToItsMemoryAnyMore() throws Exception {
        WatchedTransport.on(directory, false);
        CountDownLatch aboutToWrite = new CountDownLatch(1);
        CountDownLatch goesOn = new CountDownLatch(1);
        WatchedNetwork.beforeUserMemory = () -> {
            aboutToWrite.countDown();
            awaitUninterrupted(goesOn);
        };
        Map<String, String> settings = EngineGroup.settings("MILLRACE_THREADS", "2");
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            try (Communicator communicator = EngineGroup.join(directory, rank, 2, settings);
                    Arena arena = Arena.ofShared();
                    DeviceStream stream = communicator.device().newStream();
                    DeviceStream other = communicator.device().newStream()) {
                MemorySegment data = communicator.device().allocate(64, arena);
                if (communicator.rank() == 1) {
                    data.fill((byte) 7);
                    communicator.send(data, 64, DataType.INT8, 0, stream);
                    aboutToWrite.await();
                    communicator.abort();
                    return null;
                }
                Registration registration = communicator.register(data);
                communicator.receive(data, 64, DataType.INT8, 1, stream);
                while (communicator.asyncError().isEmpty()) {
                    assertFalse(Thread.interrupted(), "nobody told of the abort");
                }
                try {
                    for (int pass = 0; pass < 3; pass++) {
                        other.call(() -> {});
                        other.synchronize(TIMEOUT); // by now the device's thread has visited all streams
                    }
                    assertFalse(stream.query(), "told, and a proxy is about to write");
                    assertEquals(0, data.get(ValueLayout.JAVA_BYTE, 0), "written before it was let");
                } finally {
                    goesOn.countDown();
                }
                assertThrows(AbortedException.class, () -> stream.synchronize(TIMEOUT));
                assertEquals(7, data.get(ValueLayout.JAVA_BYTE, 0), "what the pass had begun");
                registration.close();
                return null;
            }
        });
        WatchedTransport.off();
        assertEquals(Arrays.asList(null, null), thrown);
    }

    private static void awaitUninterrupted(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void call(Communicator communicator, boolean reduces, boolean sends, int count, MemorySegment data,
            DeviceStream stream) {
        int peer = 1 - communicator.rank();
        if (reduces) {
            communicator.allReduce(data, data, count, DataType.INT8, ReduceOp.SUM, stream);
        } else if (sends) {
            communicator.send(data, count, DataType.INT8, peer, stream);
        } else {
            communicator.receive(data, count, DataType.INT8, peer, stream);
        }
    }
}
