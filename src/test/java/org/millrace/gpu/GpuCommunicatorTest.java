package org.millrace.gpu;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.millrace.AbortedException;
import org.millrace.Communicator;
import org.millrace.CommunicatorListener;
import org.millrace.DataType;
import org.millrace.DeadlineException;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.MismatchException;
import org.millrace.Operand;
import org.millrace.PeerLostException;
import org.millrace.Plan;
import org.millrace.ReduceOp;
import org.millrace.config.Configuration;
import org.millrace.cuda.NativeBuild;
import org.millrace.cuda.OwnClassLoader;
import org.millrace.cuda.StubLibrary;
import org.millrace.plugin.loss.LostConnection;
import org.millrace.trace.Hang;
import org.millrace.trace.OwnTrace;
import org.millrace.trace.TraceReader;
import org.millrace.trace.Verdict;

/**
 * Communicators over the stubs of libnccl and libcudart. The stubs have two GPUs, on which every operation completes at
 * once unless a test sets otherwise.
 */
@ExtendWith(OwnClassLoader.class)
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class GpuCommunicatorTest {

    private static final Duration TIMEOUT = Duration.ofSeconds(60);
    private static final int NOT_READY = 600;
    private static final Set<String> IN_ORDER =
            Set.of("cudaHostAlloc", "cudaLaunchHostFunc", "cudaMemcpyAsync", "cudaEventRecord");
    private static StubLibrary nccl;
    private static StubLibrary cuda;
    private static GpuRank.Libraries libraries;

    private final Path directory = NativeBuild.directory();

    private interface Body {
        void run(Communicator communicator) throws Exception;
    }

    @BeforeEach
    void load() {
        if (libraries == null) {
            nccl = StubLibrary.nccl();
            cuda = StubLibrary.cudart();
            libraries = GpuRank.Libraries.load(configuration("MILLRACE_NCCL_LIBRARY", nccl.path().toString(),
                    "MILLRACE_CUDART_LIBRARY", cuda.path().toString()));
        }
        nccl.async(0, 0);
        nccl.fail("", 0, 0);
        cuda.fail("", 0, 0);
        cuda.recordCalls(false); // the queries of a stream would fill the record of calls
        calls();
    }

    private static Configuration configuration(String... pairs) {
        Map<String, String> settings =
                new HashMap<>(Map.of("MILLRACE_CONNECT_DEADLINE", "20s", "MILLRACE_STALL_DEADLINE", "20s"));
        for (int i = 0; i < pairs.length; i += 2) {
            settings.put(pairs[i], pairs[i + 1]);
        }
        return Configuration.load(Map.of(), new java.util.Properties(), settings);
    }

    /** Returns the calls to NCCL since the last call of this method, without the queries of the watching thread. */
    private static List<String> calls() {
        cuda.allCalls();
        return nccl.allCalls().stream().filter(call -> !call.startsWith("ncclCommGetAsyncError")).toList();
    }

    private static List<String> names() {
        return calls().stream().map(call -> call.split(" ")[0]).toList();
    }

    private List<Throwable> run(int ranks, Configuration configuration, Body body) throws Exception {
        List<FutureTask<Void>> tasks = IntStream.range(0, ranks).mapToObj(rank -> new FutureTask<Void>(() -> {
            try (Communicator communicator = GpuCommunicator.join(libraries, "file:" + directory.resolve("group"), rank,
                    ranks, configuration, CommunicatorListener.STANDARD_ERROR)) {
                body.run(communicator);
            }
            return null;
        })).toList();
        tasks.forEach(task -> Thread.ofPlatform().daemon().start(task));
        List<Throwable> thrown = new ArrayList<>();
        for (FutureTask<Void> task : tasks) {
            try {
                task.get(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
                thrown.add(null);
            } catch (ExecutionException failed) {
                thrown.add(failed.getCause());
            }
        }
        return thrown;
    }

    private void alone(Body body) throws Exception {
        Throwable thrown = run(1, configuration(), body).getFirst();
        if (thrown != null) {
            throw new AssertionError(thrown);
        }
    }

    @Test
    void ranksOfOneMachineHaveAGpuEachAndOneUniqueId() throws Exception {
        String[] devices = new String[2];
        List<Throwable> thrown =
                run(2, configuration(), communicator -> devices[communicator.rank()] = communicator.device().name());
        assertEquals(java.util.Arrays.asList(null, null), thrown);
        assertEquals(
                List.of("Stub GPU 0 (CUDA device 0 at 0000:41:00.0)", "Stub GPU 1 (CUDA device 1 at 0000:42:00.0)"),
                List.of(devices));
        List<String> inits = calls().stream().filter(call -> call.startsWith("ncclCommInitRank ")).sorted().toList();
        assertEquals(2, inits.size());
        assertEquals(inits.get(0).replaceAll(" 0$", ""), inits.get(1).replaceAll(" 1$", ""));
    }

    /** The stub does not copy to its GPUs, so the result is the content of the pinned memory. */
    @Test
    void arraysGoThroughPinnedMemoryInTheOrderOfTheStream() throws Exception {
        alone(communicator -> {
            try (DeviceStream stream = communicator.device().newStream()) {
                calls();
                cuda.recordCalls(true);
                float[] values = {1, 2};
                communicator.allReduce(Operand.of(values), ReduceOp.SUM, stream)
                        .toCompletableFuture()
                        .get(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
                assertArrayEquals(new float[] {1, 2}, values);
                List<String> order = cuda.calls().stream().map(call -> call.split(" ")[0]).toList();
                assertEquals(List.of("cudaHostAlloc", "cudaHostAlloc", "cudaLaunchHostFunc", "cudaMemcpyAsync",
                        "cudaLaunchHostFunc", "cudaMemcpyAsync", "cudaLaunchHostFunc", "cudaLaunchHostFunc",
                        "cudaEventRecord"), order.stream().filter(IN_ORDER::contains).toList());
                double[] large = new double[1 << 20]; // an array of this size is copied in two pieces
                large[large.length - 1] = 7;
                communicator.allReduce(Operand.of(large), ReduceOp.SUM, stream)
                        .toCompletableFuture()
                        .get(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
                List<String> calls = cuda.calls();
                assertEquals(4, calls.stream().filter(call -> call.startsWith("cudaMemcpyAsync")).count());
                assertFalse(calls.stream().anyMatch(call -> call.startsWith("cudaHostAlloc")), calls.toString());
                cuda.recordCalls(false);
                assertEquals(List.of("ncclAllReduce", "ncclAllReduce"),
                        names().stream().filter(name -> name.equals("ncclAllReduce")).toList());
            }
        });
        assertTrue(cuda.everCalled().contains("cudaEventDestroy"));
    }

    /** No Java thread may access the memory of a GPU, and operations do not need such an access. */
    @Test
    void operandsCanBeMemoryOfTheGpu() throws Exception {
        alone(communicator -> {
            try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                Operand values = Operand.of(communicator.device().allocate(64, arena), DataType.FLOAT32);
                communicator.allReduce(values, ReduceOp.SUM, stream)
                        .toCompletableFuture()
                        .get(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
                communicator.broadcast(values, 0);
            }
        });
    }

    @Test
    void thePlansOfAGpuTakeNoArrays() throws Exception {
        alone(communicator -> {
            try (DeviceStream stream = communicator.device().newStream()) {
                String message = assertThrows(IllegalStateException.class,
                        () -> communicator.plan(stream,
                                () -> communicator.allReduce(Operand.of(new int[4]), ReduceOp.SUM, stream)))
                        .getMessage();
                assertTrue(message.contains("take memory from Device.allocate"), message);
            }
        });
    }

    @Test
    void aPlanIsAGraphThatIsCapturedOnce() throws Exception {
        alone(communicator -> {
            try (Arena arena = Arena.ofShared();
                    DeviceStream stream = communicator.device().newStream();
                    DeviceStream other = communicator.device().newStream()) {
                MemorySegment a = communicator.device().allocate(64, arena);
                calls();
                cuda.recordCalls(true);
                Plan plan = communicator.plan(stream, () -> {
                    communicator.allReduce(a, a, 8, DataType.INT64, ReduceOp.SUM, stream);
                    communicator.broadcast(a, a, 8, DataType.INT64, 0, stream);
                });
                assertEquals(List.of("cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphInstantiateWithFlags",
                        "cudaGraphDestroy"), graphCalls());
                assertEquals(List.of("ncclGroupStart", "ncclAllReduce", "ncclBroadcast", "ncclGroupEnd"), names());
                plan.launch(stream);
                plan.launch(other);
                assertEquals(List.of("cudaGraphLaunch", "cudaGraphLaunch"), graphCalls());
                assertEquals(List.of(), names());
                assertThrows(IllegalStateException.class, () -> communicator.group(() -> plan.launch(stream)));
                calls();
                cuda.recordCalls(true);
                plan.close();
                plan.close();
                assertEquals(List.of("cudaGraphExecDestroy"), graphCalls());
                assertThrows(IllegalStateException.class, () -> plan.launch(stream));
                Runnable fails = () -> {
                    throw new IllegalCallerException("the test's");
                };
                assertThrows(IllegalCallerException.class, () -> communicator.plan(stream, fails));
                assertEquals(List.of("cudaStreamBeginCapture", "cudaStreamEndCapture", "cudaGraphDestroy"),
                        graphCalls());
                // when the communicator is closed, it must close this plan
                communicator.plan(stream, () -> communicator.allReduce(a, a, 8, DataType.INT64, ReduceOp.SUM, stream));
                graphCalls();
            }
        });
        assertTrue(graphCalls().contains("cudaGraphExecDestroy"), "a plan outlives its communicator");
        cuda.recordCalls(false);
    }

    private static List<String> graphCalls() {
        return cuda.allCalls()
                .stream()
                .map(call -> call.split(" ")[0])
                .filter(call -> call.contains("Graph") || call.contains("Capture"))
                .toList();
    }

    @Test
    void everyCollectiveReachesNccl() throws Exception {
        alone(communicator -> {
            try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                MemorySegment a = communicator.device().allocate(64, arena);
                MemorySegment b = communicator.device().allocate(64, arena);
                calls();
                communicator.allReduce(a, b, 16, DataType.FLOAT32, ReduceOp.SUM, stream);
                communicator.allGather(a, b, 8, DataType.INT64, stream);
                communicator.reduceScatter(a, b, 8, DataType.INT64, ReduceOp.MAX, stream);
                communicator.broadcast(a, b, 8, DataType.INT64, 0, stream);
                communicator.reduce(a, b, 8, DataType.INT64, ReduceOp.SUM, 0, stream);
                assertEquals(
                        List.of("ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclBroadcast", "ncclReduce"),
                        names());
                communicator.allToAll(a, b, 8, DataType.INT64, stream);
                assertEquals(List.of("ncclGroupStart", "ncclSend", "ncclRecv", "ncclGroupEnd"), names());
                communicator.group(() -> {
                    communicator.send(a, 8, DataType.INT64, 0, stream);
                    communicator.receive(b, 8, DataType.INT64, 0, stream);
                });
                assertEquals(List.of("ncclGroupStart", "ncclSend", "ncclRecv", "ncclGroupEnd"), names());
                communicator.gather(a, b, 8, DataType.INT64, 0, stream);
                assertEquals(List.of("ncclGroupStart", "ncclRecv", "ncclSend", "ncclGroupEnd"), names());
                communicator.scatter(a, b, 8, DataType.INT64, 0, stream);
                assertEquals(List.of("ncclGroupStart", "ncclSend", "ncclRecv", "ncclGroupEnd"), names());
                communicator.allReduce(a, a, 0, DataType.FLOAT32, ReduceOp.SUM, stream);
                stream.synchronize(TIMEOUT);
                assertEquals(List.of("ncclAllReduce"), names());
            }
        });
        assertEquals(List.of("ncclCommDestroy"), names());
    }

    @Test
    void communicatorsOfOneThreadAreOneGroupOfNccl() throws Exception {
        alone(communicator -> {
            try (Arena arena = Arena.ofShared();
                    DeviceStream stream = communicator.device().newStream();
                    Communicator other = communicator.split(0, 0).orElseThrow()) {
                MemorySegment a = communicator.device().allocate(64, arena);
                MemorySegment b = communicator.device().allocate(64, arena);
                calls();
                Millrace.group(() -> {
                    communicator.send(a, 8, DataType.INT64, 0, stream);
                    communicator.group(() -> other.receive(b, 8, DataType.INT64, 0, stream));
                    other.allToAll(a, b, 8, DataType.INT64, stream);
                    assertFalse(names().contains("ncclGroupEnd"));
                });
                assertEquals(List.of("ncclGroupEnd"), names());
                Millrace.group(() -> {});
                assertEquals(List.of(), names());
                assertThrows(IllegalCallerException.class, () -> Millrace.group(() -> {
                    communicator.send(a, 8, DataType.INT64, 0, stream);
                    throw new IllegalCallerException("the test's");
                }));
                assertEquals(List.of("ncclGroupStart", "ncclSend", "ncclGroupEnd"), names());
            }
        });
    }

    @Test
    void aGroupThatNcclRefusesPoisonsAllItsCommunicators() throws Exception {
        alone(communicator -> {
            try (Arena arena = Arena.ofShared();
                    DeviceStream stream = communicator.device().newStream();
                    Communicator other = communicator.split(0, 0).orElseThrow();
                    Communicator third = communicator.split(0, 0).orElseThrow()) {
                MemorySegment a = communicator.device().allocate(64, arena);
                nccl.fail("ncclGroupEnd", 3, 1);
                MillraceException refused = assertThrows(MillraceException.class, () -> Millrace.group(() -> {
                    communicator.allReduce(a, a, 8, DataType.INT64, ReduceOp.SUM, stream);
                    other.allReduce(a, a, 8, DataType.INT64, ReduceOp.SUM, stream);
                }));
                assertTrue(refused.getMessage().contains("ncclGroupEnd"), refused.getMessage());
                // the third communicator was not in the group
                third.allReduce(a, a, 8, DataType.INT64, ReduceOp.SUM, stream);
                for (Communicator failed : List.of(communicator, other)) {
                    assertThrows(MillraceException.class,
                            () -> failed.allReduce(a, a, 8, DataType.INT64, ReduceOp.SUM, stream));
                }
            }
        });
    }

    @Test
    void aSplitCommunicatorRunsOnTheStreamsOfTheOldOne() throws Exception {
        List<Throwable> thrown = run(2, configuration(), whole -> {
            try (DeviceStream stream = whole.device().newStream();
                    Arena arena = Arena.ofShared();
                    Communicator part = whole.split(whole.rank(), 0).orElseThrow()) {
                MemorySegment memory = whole.device().allocate(64, arena);
                assertEquals(List.of(1, 0), List.of(part.size(), part.rank()));
                part.allReduce(memory, memory, 8, DataType.INT64, ReduceOp.SUM, stream);
                stream.synchronize(TIMEOUT);
                assertEquals(java.util.Optional.empty(), whole.split(-1, 0));
            }
        });
        assertEquals(java.util.Arrays.asList(null, null), thrown);
        List<String> names = names();
        assertEquals(4, names.stream().filter("ncclCommSplit"::equals).count(), names.toString());
    }

    @Test
    void memoryIsTheArenasAndNotJavas() throws Exception {
        alone(communicator -> {
            cuda.recordCalls(true);
            Arena arena = Arena.ofShared();
            MemorySegment memory = communicator.device().allocate(64, arena);
            assertEquals(64, memory.byteSize());
            assertThrows(WrongThreadException.class, () -> memory.get(ValueLayout.JAVA_BYTE, 0));
            assertEquals(0, communicator.device().allocate(0, arena).byteSize());
            cuda.allCalls();
            arena.close();
            assertEquals(2, cuda.calls().stream().filter(call -> call.startsWith("cudaFree ")).count());
            assertThrows(IllegalStateException.class, () -> communicator.device().allocate(64, arena));
            assertEquals(1, cuda.calls().stream().filter(call -> call.startsWith("cudaFree ")).count());
        });
    }

    @Test
    void badOperandsAreRefusedBeforeNcclIsAsked() throws Exception {
        alone(communicator -> {
            try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                MemorySegment good = communicator.device().allocate(64, arena);
                calls();
                refused("take 68 bytes, the segment has 64",
                        () -> communicator.allReduce(good, good, 17, DataType.FLOAT32, ReduceOp.SUM, stream));
                refused("not aligned",
                        () -> communicator.allReduce(good.asSlice(2), good, 4, DataType.FLOAT32, ReduceOp.SUM, stream));
                refused("host memory", () -> communicator.allReduce(arena.allocate(64, 64), good, 4, DataType.FLOAT32,
                        ReduceOp.SUM, stream));
                refused("heap segment", () -> communicator.allReduce(MemorySegment.ofArray(new byte[64]), good, 4,
                        DataType.INT8, ReduceOp.SUM, stream));
                refused("overlap by 4 of 8",
                        () -> communicator.allReduce(good, good.asSlice(4), 2, DataType.FLOAT32, ReduceOp.SUM, stream));
                refused("they must be apart", () -> communicator.allToAll(good, good, 2, DataType.FLOAT32, stream));
                refused("there is no root 1", () -> communicator.broadcast(good, good, 2, DataType.FLOAT32, 1, stream));
                refused("there is no peer -1", () -> communicator.send(good, 2, DataType.FLOAT32, -1, stream));
                refused("not an open stream",
                        () -> communicator.allReduce(good, good, 2, DataType.FLOAT32, ReduceOp.SUM, null));
                assertEquals(List.of(), names());
                communicator.allReduce(good, good, 16, DataType.FLOAT32, ReduceOp.SUM, stream);
            }
        });
    }

    private static void refused(String because, Runnable call) {
        IllegalArgumentException thrown = assertThrows(IllegalArgumentException.class, call::run);
        assertTrue(thrown.getMessage().contains(because), thrown.getMessage());
    }

    /** Imitates a kernel that never ends, for example because it waits for a lost rank. */
    private static MillraceException waitForGood(Communicator communicator, Runnable meanwhile) {
        try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
            MemorySegment data = communicator.device().allocate(64, arena);
            communicator.allReduce(data, data, 16, DataType.FLOAT32, ReduceOp.SUM, stream);
            cuda.fail("cudaStreamQuery", NOT_READY, Integer.MAX_VALUE);
            meanwhile.run();
            MillraceException failure = assertThrows(MillraceException.class, () -> stream.synchronize(TIMEOUT));
            cuda.fail("", 0, 0); // the abort has ended the kernel
            assertThrows(MillraceException.class,
                    () -> communicator.allReduce(data, data, 16, DataType.FLOAT32, ReduceOp.SUM, stream));
            return failure;
        }
    }

    @Test
    void aLostConnectionReachesTheProgramAndAborts() throws Exception {
        alone(communicator -> {
            MillraceException failure =
                    waitForGood(communicator, () -> LostConnection.report("rank 0 -> rank 1: reset by peer"));
            assertTrue(failure.getMessage().contains("rank 0 -> rank 1: reset by peer"), failure.getMessage());
            assertEquals(0, assertInstanceOf(PeerLostException.class, failure).rank());
        });
        List<String> names = names();
        assertEquals(1, names.stream().filter("ncclCommAbort"::equals).count(), names.toString());
        assertFalse(names.contains("ncclCommDestroy"), names.toString());
    }

    @Test
    void aConnectionWhoseEndsDisagreeIsAMismatch() throws Exception {
        alone(communicator -> {
            MillraceException failure = waitForGood(communicator,
                    () -> LostConnection.reportDisagreement("rank 0 -> rank 1: 4 bytes here, 8 there"));
            assertTrue(failure.getMessage().contains("4 bytes here, 8 there"), failure.getMessage());
            assertEquals(0, assertInstanceOf(MismatchException.class, failure).rank());
        });
    }

    @Test
    void ncclsOwnErrorReachesTheProgram() throws Exception {
        alone(communicator -> {
            MillraceException failure = waitForGood(communicator, () -> nccl.async(6, Integer.MAX_VALUE));
            assertTrue(failure.getMessage().contains("ncclRemoteError"), failure.getMessage());
            assertEquals(0, assertInstanceOf(PeerLostException.class, failure).rank());
        });
        alone(communicator -> {
            MillraceException failure = waitForGood(communicator, () -> nccl.async(8, Integer.MAX_VALUE));
            assertTrue(failure.getMessage().contains("ncclTimeout"), failure.getMessage());
            assertInstanceOf(DeadlineException.class, failure);
        });
    }

    /** The stage of an operation fails although the GPU's work never ends. */
    @Test
    void theStageOfAnOperationFailsWithItsCommunicator() throws Exception {
        alone(communicator -> {
            try (DeviceStream stream = communicator.device().newStream()) {
                cuda.fail("cudaEventQuery", NOT_READY, Integer.MAX_VALUE);
                CompletableFuture<Void> stage =
                        communicator.allReduce(Operand.of(new int[1]), ReduceOp.SUM, stream).toCompletableFuture();
                LostConnection.report("rank 0 -> rank 1: reset by peer");
                ExecutionException failed =
                        assertThrows(ExecutionException.class, () -> stage.get(TIMEOUT.toSeconds(), TimeUnit.SECONDS));
                assertInstanceOf(PeerLostException.class, failed.getCause());
                cuda.fail("", 0, 0);
            }
        });
    }

    @Test
    void oneRanksAbortReachesTheOther() throws Exception {
        List<Throwable> thrown = run(2, configuration(), communicator -> {
            if (communicator.rank() == 1) {
                communicator.abort();
                communicator.abort();
                assertThrows(MillraceException.class, () -> communicator.allReduce(MemorySegment.NULL,
                        MemorySegment.NULL, 0, DataType.INT8, ReduceOp.SUM, null));
                return;
            }
            try (DeviceStream stream = communicator.device().newStream()) {
                MillraceException failure = assertThrows(MillraceException.class, () -> {
                    while (true) {
                        stream.query();
                    }
                });
                assertTrue(failure.getMessage().contains("rank 1 aborted the communicator"), failure.getMessage());
                AbortedException aborted = assertInstanceOf(AbortedException.class, failure);
                assertEquals(List.of(0, 1), List.of(aborted.rank(), aborted.peer().orElseThrow()));
            }
        });
        thrown.forEach(failure -> assertNull(failure));
        assertEquals(2, names().stream().filter("ncclCommAbort"::equals).count());
    }

    @Test
    void aRankThatClosesTooEarlyIsNamedAndAReasonIsToldToTheOthers() throws Exception {
        for (boolean aborts : List.of(false, true)) {
            List<Throwable> thrown = run(2, configuration(), communicator -> {
                if (communicator.rank() == 1) {
                    if (aborts) {
                        communicator.abort(new IllegalStateException("disk full"));
                    }
                    return;
                }
                try (DeviceStream stream = communicator.device().newStream()) {
                    AbortedException failure = assertThrows(AbortedException.class, () -> {
                        communicator.allReduce(Operand.of(new int[1]), ReduceOp.SUM, stream);
                        while (true) {
                            stream.query();
                        }
                    });
                    String told = aborts ? "rank 1 aborted the communicator: java.lang.IllegalStateException: disk full"
                            : "rank 1 has closed the communicator without an operation that this rank has begun:"
                                    + " collective operation 0";
                    assertTrue(failure.getMessage().contains(told), failure.getMessage());
                }
            });
            thrown.forEach(failure -> assertNull(failure));
        }
    }

    @Test
    void aCallThatDoesNotReturnIsAborted() throws Exception {
        Throwable thrown = run(1, configuration("MILLRACE_LATE_DEADLINE", "300ms"), communicator -> {
            try (Arena arena = Arena.ofShared(); DeviceStream stream = communicator.device().newStream()) {
                MemorySegment data = communicator.device().allocate(64, arena);
                nccl.block("ncclAllReduce");
                nccl.fail("ncclAllReduce", 6, 1);
                MillraceException failure = assertThrows(MillraceException.class,
                        () -> communicator.allReduce(data, data, 16, DataType.FLOAT32, ReduceOp.SUM, stream));
                assertTrue(failure.getMessage().contains("has not returned for 300 ms (MILLRACE_LATE_DEADLINE)"),
                        failure.getMessage());
                assertEquals(0, assertInstanceOf(DeadlineException.class, failure).rank());
            }
        }).getFirst();
        assertNull(thrown);
        assertFalse(names().contains("stub_never_freed"));
    }

    @Test
    void aRankThatHangsInNcclsInitIsExplained() throws Exception {
        nccl.block("ncclCommInitRank");
        try (OwnTrace _ = new OwnTrace(directory)) {
            Thread joining = Thread.ofPlatform().daemon().start(() -> {
                try {
                    run(1, configuration(), communicator -> {});
                } catch (Exception e) {
                    throw new AssertionError(e);
                }
            });
            nccl.awaitBlocked();
            List<String> sentences = List.of();
            while (sentences.isEmpty()) {
                assertTrue(joining.isAlive());
                sentences = Hang.verdicts(() -> TraceReader.readAll(directory, (file, problem) -> {}), Duration.ZERO)
                        .stream()
                        .map(Verdict::sentence)
                        .toList();
            }
            String sentence =
                    "Rank 0 \\(pid \\d+ on [^ ]+, running\\) has not connected: ncclCommInitRank waits for the "
                            + "other ranks of file:\\S+group\\. Nothing has moved for \\d+\\.\\d s";
            assertTrue(sentences.size() == 1 && sentences.getFirst().matches(sentence), sentences.toString());
            nccl.unblock();
            assertTrue(joining.join(TIMEOUT));
            assertEquals(List.of(),
                    Hang.verdicts(() -> TraceReader.readAll(directory, (file, problem) -> {}), Duration.ZERO));
        }
        assertFalse(names().contains("stub_never_freed"));
    }

    @Test
    void whatNcclRefusesToJoinIsToldToAll() throws Exception {
        nccl.fail("ncclCommInitRank", 2, 1);
        List<Throwable> thrown = run(2, configuration(), communicator -> {});
        assertTrue(
                thrown.stream()
                        .anyMatch(failure -> failure != null && failure.getMessage().contains("ncclSystemError")),
                thrown.toString());
    }

    @Test
    void settingsBecomeVariablesThatNcclUnderstands() {
        Map<String, String> variables = GpuRank.variables(configuration("NCCL_BUFFSIZE", "8M", "NCCL_MAX_NCHANNELS",
                "4", "MILLRACE_TAKEOVER", "no", "MILLRACE_SECRET", "swordfish"));
        assertEquals("8388608", variables.get("NCCL_BUFFSIZE"));
        assertEquals("4", variables.get("NCCL_MAX_NCHANNELS"));
        assertEquals("0", variables.get("MILLRACE_TAKEOVER"));
        assertFalse(variables.containsKey("MILLRACE_SECRET") || variables.containsKey("NCCL_DEBUG"),
                variables.toString());
    }
}
