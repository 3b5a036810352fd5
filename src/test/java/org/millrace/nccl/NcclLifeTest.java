package org.millrace.nccl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.millrace.DataType;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;
import org.millrace.cuda.CudaEvent;
import org.millrace.cuda.CudaKernel;
import org.millrace.cuda.CudaModule;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.DeviceSegments;
import org.millrace.cuda.KernelParameters;
import org.millrace.cuda.LaunchShape;
import org.millrace.cuda.OwnClassLoader;

/** Non-blocking communicators, communicators that end while they are used, and the cost of a call. */
@ExtendWith(OwnClassLoader.class)
class NcclLifeTest {

    private static final Duration LONG = Duration.ofSeconds(20);
    private static final MemorySegment BUFFER = DeviceSegments.of(0x700000000000L, 1 << 20);

    private Stubs stubs;

    @BeforeEach
    void load() {
        stubs = Stubs.load();
    }

    private NcclCommunicator nonBlocking() {
        stubs.ncclStub.fail("ncclCommInitRankConfig", 7, 1);
        return stubs.nccl.join(stubs.device(), stubs.nccl.newUniqueId(), 2, 1, NcclConfig.DEFAULT.withBlocking(false));
    }

    /** Returns the names of the calls to the stubs since this method was last used. */
    private List<String> names() {
        return stubs.calls().stream().map(call -> call.split(" ")[0]).toList();
    }

    @Test
    void aNonBlockingCommunicatorIsWaitedFor() {
        NcclCommunicator c = nonBlocking();
        stubs.ncclStub.async(7, 3);
        stubs.calls();
        assertEquals(NcclResult.IN_PROGRESS, c.asyncError());
        c.awaitReady(LONG);
        assertEquals(List.of("ncclCommGetAsyncError", "ncclCommGetAsyncError", "ncclCommGetAsyncError",
                "ncclCommGetAsyncError"), names());
        stubs.ncclStub.fail("ncclAllReduce", 7, 1);
        c.allReduce(BUFFER, BUFFER, 1, DataType.INT8, ReduceOp.SUM, stubs.stream());
        stubs.ncclStub.async(7, 1);
        c.close();
        c.close();
        assertEquals(List.of("ncclAllReduce", "ncclCommGetAsyncError", "ncclCommGetAsyncError", "ncclCommFinalize",
                "ncclCommGetAsyncError", "ncclCommDestroy"), names());
        assertThrows(IllegalStateException.class, c::asyncError);
    }

    @Test
    void aDeadlineAndAnErrorNameTheRank() {
        NcclCommunicator c = nonBlocking();
        stubs.ncclStub.async(7, Integer.MAX_VALUE);
        String late = assertThrows(MillraceException.class, () -> c.awaitReady(Duration.ofMillis(2))).getMessage();
        assertTrue(late.contains("rank 1 of 2") && late.contains("2 ms") && late.contains("abort"), late);
        stubs.ncclStub.async(6, Integer.MAX_VALUE);
        NcclException failed = assertThrows(NcclException.class, () -> c.awaitReady(LONG));
        assertEquals(NcclResult.REMOTE_ERROR, failed.result());
        assertTrue(
                failed.getMessage()
                        .startsWith("ncclCommGetAsyncError failed on rank 1 of 2, CUDA device 1: ncclRemoteError (6)"),
                failed.getMessage());
        stubs.calls();
        // A communicator in error cannot be destroyed.
        c.close();
        assertEquals("ncclCommAbort", names().getLast());
    }

    @Test
    void aChildCanBeUsedWhenItsParentIsReady() {
        NcclCommunicator parent = nonBlocking();
        parent.awaitReady(LONG);
        stubs.ncclStub.fail("ncclCommSplit", 7, 1);
        stubs.ncclStub.async(7, 2);
        NcclCommunicator child = parent.split(0, 0, null).orElseThrow();
        String early = assertThrows(IllegalStateException.class, child::asyncError).getMessage();
        assertTrue(early.contains("not ready"), early);
        child.awaitReady(LONG);
        assertEquals(4, child.size());
        stubs.calls();
        child.close();
        assertEquals(List.of("ncclCommGetAsyncError", "ncclCommFinalize", "ncclCommGetAsyncError", "ncclCommDestroy"),
                names());
    }

    @Test
    void abortFreesAStuckCallAndAdmitsNoOther() throws InterruptedException {
        NcclCommunicator c = stubs.communicator();
        CudaStream stream = stubs.stream();
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        stubs.ncclStub.block("ncclAllReduce");
        stubs.ncclStub.fail("ncclAllReduce", 3, 1);
        Thread stuck = new Thread(() -> thrown.set(assertThrows(MillraceException.class,
                () -> c.allReduce(BUFFER, BUFFER, 1, DataType.INT8, ReduceOp.SUM, stream))));
        stuck.start();
        stubs.ncclStub.awaitBlocked();
        stubs.calls();
        // Unlike abort(), close() does not touch a communicator with a stuck call.
        c.close();
        assertEquals(List.of(), stubs.calls());
        c.abort();
        stuck.join();
        assertInstanceOf(NcclException.class, thrown.get());
        List<String> names = names();
        assertEquals(1, names.stream().filter("ncclCommAbort"::equals).count());
        assertFalse(names.contains("ncclCommDestroy"), "destroyed after it was aborted");
        assertFalse(names.contains("stub_never_freed"), "abort() waited for the call that it should free");
        assertThrows(IllegalStateException.class, c::asyncError);
    }

    @Test
    void closeLeavesTheCommunicatorToTheCallInProgress() throws InterruptedException {
        NcclCommunicator c = stubs.communicator();
        NcclCommunicator other = stubs.communicator();
        CudaStream stream = stubs.stream();
        stubs.ncclStub.block("ncclAllReduce");
        Thread busy = new Thread(() -> c.allReduce(BUFFER, BUFFER, 1, DataType.INT8, ReduceOp.SUM, stream));
        busy.start();
        stubs.ncclStub.awaitBlocked();
        c.close();
        c.close();
        stubs.calls();
        other.abort();
        busy.join();
        assertEquals(List.of("ncclCommAbort", "ncclCommDestroy"), names());
    }

    @Test
    void groupsBelongToTheirThread() throws InterruptedException {
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        NcclGroup group = stubs.nccl.group();
        Thread other = new Thread(() -> thrown.set(assertThrows(IllegalStateException.class, group::close)));
        other.start();
        other.join();
        assertTrue(thrown.get().getMessage().contains(Thread.currentThread().getName()), thrown.get().getMessage());
        group.close();
        assertEquals(List.of("ncclGroupStart", "ncclGroupEnd"), names());
        Thread.startVirtualThread(() -> thrown.set(assertThrows(IllegalStateException.class, stubs.nccl::group)))
                .join();
        assertTrue(thrown.get().getMessage().contains("platform thread"), thrown.get().getMessage());
    }

    @Test
    void theHotCallsAllocateNothing() {
        NcclCommunicator c = stubs.communicator();
        CudaStream stream = stubs.stream();
        CudaEvent event = CudaEvent.marker(stubs.device());
        CudaModule module = CudaModule.load(stubs.cuda, new byte[] {'x'});
        CudaKernel kernel = module.kernel("empty");
        LaunchShape shape = LaunchShape.of(2, 64);
        KernelParameters arguments = KernelParameters.allocate(Arena.global());
        stubs.record(false);
        assertFlat("allReduce", () -> c.allReduce(BUFFER, BUFFER, 1024, DataType.FLOAT32, ReduceOp.SUM, stream));
        assertFlat("send", () -> c.send(BUFFER, 1024, DataType.FLOAT32, 0, stream));
        assertFlat("record", () -> event.record(stream));
        assertFlat("query", () -> assertTrue(event.query()));
        assertFlat("launch", () -> kernel.launch(shape, arguments, stream));
    }

    /**
     * Checks that compiled code allocates nothing. The moment of the compilation is unknown, so the check uses the
     * round with the fewest allocated bytes.
     */
    private static void assertFlat(String what, Runnable call) {
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        int calls = 20_000;
        long least = Long.MAX_VALUE;
        for (int round = 0; round < 200 && least > calls / 100; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < calls; i++) {
                call.run();
            }
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
        }
        assertTrue(least <= calls / 100, what + " allocated " + (double) least / calls + " bytes a call at best");
    }

    @Test
    void aFailedJoinCreatesNothing() {
        stubs.ncclStub.fail("ncclCommInitRankConfig", 4, 1);
        AtomicReference<NcclCommunicator> made = new AtomicReference<>();
        assertThrows(NcclException.class, () -> made.set(stubs.nccl.join(stubs.device(), stubs.nccl.newUniqueId(), 2, 1,
                NcclConfig.DEFAULT.withBlocking(false))));
        assertNull(made.get());
    }
}
