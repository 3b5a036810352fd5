package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.DeviceStream;
import org.millrace.LiveHeap;
import org.millrace.MillraceException;
import org.millrace.Operation;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.kernel.CollectiveWork;
import org.millrace.abi.kernel.KernelArguments;
import org.millrace.abi.kernel.WorkBatch;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleProfile;

/** Work passes through the FIFO to a device, which runs on a separate thread. */
@Timeout(120)
@Tag("slow")
@Tag("optimized")
class WorkLauncherTest {

    private static final int ADD = 3;
    private static final int HANG = 4;
    private static final Duration DEADLINE = Duration.ofSeconds(60);
    private static final int SMALL = KernelArguments.BYTES + WorkBatch.BYTES;

    private final Arena arena = Arena.ofShared();
    private final EmulatedDevice device = new EmulatedDevice(0);
    private final AgentRunner runner = AgentRunner.start(device, new IdleProfile.Backoff(100, 100, 10_000, 100_000));
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private final AtomicInteger released = new AtomicInteger();
    private final AtomicInteger refused = new AtomicInteger();
    private final AtomicLong order = new AtomicLong();

    @AfterEach
    void stop() {
        runner.close();
        arena.close();
    }

    private DeviceCommunicator communicator(int fifoBytes, int first) {
        return new DeviceCommunicator(arena, 0, new int[1], ConnectionLayout.DEFAULT, 1 << 17, 1, fifoBytes, first);
    }

    private WorkLauncher launcher(DeviceCommunicator communicator) {
        FunctionTable functions = new FunctionTable();
        functions.put(Operation.ofCode(ADD), CollectiveFunction.Algorithm.RING, new TestFunction());
        functions.put(Operation.ofCode(HANG), CollectiveFunction.Algorithm.RING, new TestFunction());
        return new WorkLauncher(device, communicator, functions, failure::get,
                thrown -> failure.compareAndSet(null, thrown), () -> true,
                new StallLimit(Duration.ofSeconds(20).toNanos()), Duration.ofSeconds(20));
    }

    private final class TestFunction implements FunctionTable.DeviceFunction {

        @Override
        public List<ChannelTask> tasks(int number, MemorySegment item, DeviceCommunicator communicator,
                DeviceChannel channel) {
            return List.of();
        }

        @Override
        public Block block(int number, MemorySegment item, DeviceCommunicator communicator, DeviceChannel channel,
                KernelMemory lookup) {
            return WorkLauncherTest.this.block(number, CollectiveWork.of(item), channel.number());
        }
    }

    /** Launches a plan as the engine does. Returns the kernel, or null if the FIFO has no room. */
    private static EmulatedKernel launchIfRoom(WorkLauncher launcher, KernelPlan plan, DeviceStream stream,
            Runnable announce) {
        synchronized (launcher) {
            if (!launcher.hasRoom(plan, stream)) {
                return null;
            }
            KernelArguments arguments = launcher.upload(plan);
            announce.run();
            return launcher.start(plan, plan, arguments, stream);
        }
    }

    /** Launches a plan as soon as the FIFO has room. Counts the launches that the full FIFO refused. */
    private EmulatedKernel launch(WorkLauncher launcher, KernelPlan plan, DeviceStream stream, Runnable announce) {
        IdleProfile.Backoff idle = new IdleProfile.Backoff(100, 100, 10_000, 1_000_000);
        EmulatedKernel kernel = launchIfRoom(launcher, plan, stream, announce);
        while (kernel == null) {
            refused.incrementAndGet();
            idle.idle(0);
            kernel = launchIfRoom(launcher, plan, stream, announce);
        }
        return kernel;
    }

    /**
     * Returns a block. Function ADD adds the work's argument to a word if the word equals the work's count. Function
     * HANG waits until the test releases the block.
     */
    @SuppressWarnings("restricted") // a work item contains the addresses of its operands
    private Block block(int function, CollectiveWork work, int channel) {
        long before = work.countLow();
        long amount = work.reductionArgument();
        MemorySegment word = MemorySegment.ofAddress(work.receiveBuffer()).reinterpret(8);
        return new Block() {
            private boolean begun;
            private boolean done;

            @Override
            public int progress() {
                if (!begun) {
                    begun = true;
                    order.incrementAndGet();
                }
                if (function == HANG && released.get() == 0) {
                    return 0;
                }
                if (function == ADD) {
                    assertEquals(before, word.get(ValueLayout.JAVA_LONG, 0), "work is lost, repeated or out of order");
                    word.set(ValueLayout.JAVA_LONG, 0, before + amount);
                }
                done = true;
                return 1;
            }

            @Override
            public boolean done() {
                return done;
            }

            @Override
            public String waitingFor() {
                return "its release on channel " + channel;
            }
        };
    }

    private KernelPlan plan(PlanBuilder builder, DeviceCommunicator communicator, int function, MemorySegment word,
            long before, boolean replayed) {
        CollectiveWork work = CollectiveWork.of(MemorySegment.ofArray(new long[CollectiveWork.BYTES / 8]));
        work.spread(0, 0, before, 0, 0);
        work.set(0, word.address(), 0, 1, CollectiveWork.PROFILED);
        builder.collective(work, function, "add " + before);
        return builder.finish(communicator.address(), replayed);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, -40_000, Integer.MAX_VALUE - 15 - 40_000})
    void aMillionOperationsThroughASmallFifo(int first) {
        int operations = first == 0 ? 1_000_000 : 20_000;
        DeviceCommunicator communicator = communicator(4096, first & -16);
        WorkLauncher launcher = launcher(communicator);
        PlanBuilder builder = new PlanBuilder("", SMALL, 2048);
        MemorySegment word = arena.allocate(8, 8);
        long used = 0;
        AtomicLong announced = new AtomicLong();
        EmulatedStream[] streams = {device.newStream(), device.newStream()};
        for (int i = 0; i < operations; i++) {
            if (i == operations / 10) {
                synchronize(streams);
                used = LiveHeap.bytes();
            }
            long number = i;
            KernelPlan plan = plan(builder, communicator, ADD, word, i, false);
            assertEquals(KernelArguments.WorkStorage.FIFO, plan.storage());
            launch(launcher, plan, streams[i / 64 % 2], () -> assertEquals(number, announced.getAndIncrement()));
        }
        synchronize(streams);
        LiveHeap.assertGrowsByLessThan(4 << 20, used);
        launcher.drain();
        assertNull(failure.get());
        assertEquals(operations, word.get(ValueLayout.JAVA_LONG, 0));
        assertEquals(operations, announced.get());
        assertEquals(0, communicator.fifo().used(), "left in the FIFO");
        assertTrue(communicator.completed(0, operations) >= communicator.started(0, operations),
                "the last work has no time");
        assertEquals(-1, communicator.completed(0, operations + 1L));
        assertEquals(-1, communicator.completed(0, 1), "a slot that was taken again still shows the work before");
    }

    private static void synchronize(EmulatedStream[] streams) {
        for (EmulatedStream stream : streams) {
            stream.synchronize(DEADLINE);
        }
    }

    /** The memory of a closed plan is freed as soon as the plan's last kernel ends, even without another launch. */
    @Test
    void aPlanIsFreedAfterItsLastKernel() {
        DeviceCommunicator communicator = communicator(1024, 0);
        WorkLauncher launcher = launcher(communicator);
        PlanBuilder builder = new PlanBuilder("", SMALL, 1 << 16);
        MemorySegment word = arena.allocate(8, 8);
        EmulatedStream stream = device.newStream();
        KernelPlan running = plan(builder, communicator, HANG, word, 0, true);
        KernelPlan unused = plan(builder, communicator, HANG, word, 0, true);
        KernelPlan kept = plan(builder, communicator, HANG, word, 0, true);
        assertEquals(KernelArguments.WorkStorage.PERSISTENT, running.storage());
        launcher.keep(unused);
        launcher.release(unused);
        assertTrue(unused.isFree(), "nothing ran");
        launcher.keep(running);
        launcher.keep(kept);
        EmulatedKernel kernel = launch(launcher, running, stream, () -> {});
        launcher.release(running);
        launcher.release(running);
        assertFalse(launcher.poll() || running.isFree(), "its kernel is on the device");
        assertThrows(IllegalStateException.class, () -> launch(launcher, running, stream, () -> {}));
        released.set(1);
        stream.synchronize(DEADLINE);
        assertTrue(kernel.done());
        assertTrue(launcher.poll());
        assertTrue(running.isFree());
        assertFalse(launcher.poll() || kept.isFree());
        launcher.drain();
        assertTrue(kept.isFree(), "with the communicator at the latest");
        KernelPlan late = plan(builder, communicator, HANG, word, 0, true);
        launcher.keep(late);
        assertTrue(late.isFree());
        assertNull(failure.get());
    }

    @Test
    void aWaitForRoomEndsWhenTheCommunicatorAborts() throws InterruptedException {
        DeviceCommunicator communicator = communicator(1024, -512);
        WorkLauncher launcher = launcher(communicator);
        PlanBuilder builder = new PlanBuilder("", SMALL, 512);
        MemorySegment word = arena.allocate(8, 8);
        EmulatedStream stream = device.newStream();
        List<EmulatedKernel> kernels = new ArrayList<>();
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        Thread caller = Thread.ofPlatform().start(() -> {
            try {
                for (int i = 0; i < 100; i++) {
                    kernels.add(launch(launcher, plan(builder, communicator, HANG, word, i, false), stream, () -> {}));
                }
            } catch (MillraceException e) {
                thrown.set(e);
            }
        });
        // The FIFO is full before the caller waits, because the last work item is stored before its kernel starts.
        while (communicator.started(0, 1) < 0 || refused.get() == 0) {
            Thread.onSpinWait();
        }
        assertEquals(1024, communicator.fifo().used());
        assertEquals(-1, communicator.completed(0, 1), "the host sees work completed that is still going on");
        failure.set(new MillraceException("the test aborted"));
        communicator.abort();
        caller.join(20_000);
        assertTrue(thrown.get() != null && thrown.get().getMessage().contains("the test aborted"),
                "the caller got " + thrown.get());
        assertEquals(1024 / CollectiveWork.BYTES, kernels.size());
        MillraceException told = assertThrows(MillraceException.class, () -> stream.synchronize(DEADLINE));
        assertTrue(told.getMessage().contains("the test aborted"), told.getMessage());
        assertTrue(kernels.stream().allMatch(EmulatedKernel::done), "a kernel is still on the device");
        launcher.drain();
        assertEquals(0, communicator.fifo().used(), "left in the FIFO");
        assertEquals(1, order.get(), "kernels began after the abort");
    }

    /**
     * If no thread runs the device, a drain cannot end. The thread that closes the communicator then receives an error.
     */
    @Test
    void aDrainEndsWithoutAThreadThatRunsTheDevice() {
        DeviceCommunicator communicator = communicator(1024, 0);
        EmulatedDevice still = new EmulatedDevice(1);
        WorkLauncher launcher = new WorkLauncher(still, communicator, new FunctionTable(), failure::get,
                thrown -> failure.compareAndSet(null, thrown), () -> true, new StallLimit(20_000_000),
                Duration.ofMillis(20));
        PlanBuilder builder = new PlanBuilder("", SMALL, 512);
        assertNotNull(launchIfRoom(launcher, plan(builder, communicator, HANG, arena.allocate(8, 8), 0, false),
                still.newStream(), () -> {}));
        assertFalse(launcher.drain(), "a kernel that is on the device still");
        assertTrue(failure.get().getMessage().contains("neither moves nor leaves"), failure.get().getMessage());
    }

    /** An abort drains the launcher. A caller that waits for room may notice the abort only after the drain. */
    @Test
    void aWaitForRoomReportsTheAbortEvenAfterTheDrain() {
        DeviceCommunicator communicator = communicator(1024, 0);
        WorkLauncher launcher = launcher(communicator);
        PlanBuilder builder = new PlanBuilder("", SMALL, 512);
        MemorySegment word = arena.allocate(8, 8);
        EmulatedStream stream = device.newStream();
        KernelPlan waiting = plan(builder, communicator, HANG, word, 0, false);
        for (int i = 1; launchIfRoom(launcher, waiting, stream, () -> {}) != null; i++) {
            waiting = plan(builder, communicator, HANG, word, i, false);
        }
        failure.set(new MillraceException("the test aborted"));
        communicator.abort();
        launcher.drain();
        KernelPlan behind = waiting;
        String told = assertThrows(MillraceException.class, () -> launchIfRoom(launcher, behind, stream, () -> {}))
                .getMessage();
        assertTrue(told.contains("while it waited for room") && told.contains("the test aborted"), told);
        assertTrue(assertThrows(MillraceException.class, () -> launchIfRoom(launcher, behind, stream, () -> {}))
                .getMessage()
                .contains("the communicator is closed"));
    }

    @Test
    void aPersistentPlanIsReplayed() {
        DeviceCommunicator communicator = communicator(1024, 0);
        WorkLauncher launcher = launcher(communicator);
        MemorySegment word = arena.allocate(8, 8);
        AtomicInteger announced = new AtomicInteger();
        EmulatedStream stream = device.newStream();
        try (KernelPlan plan = plan(new PlanBuilder("", SMALL, 1 << 20), communicator, ADD, word, 5, true)) {
            assertEquals(KernelArguments.WorkStorage.PERSISTENT, plan.storage());
            for (int replay = 1; replay <= 1000; replay++) {
                stream.call(() -> word.set(ValueLayout.JAVA_LONG, 0, 5));
                launch(launcher, plan, stream, announced::incrementAndGet);
            }
            stream.synchronize(DEADLINE);
        }
        assertEquals(6, word.get(ValueLayout.JAVA_LONG, 0));
        assertEquals(1000, announced.get(), "the proxies hear of every replay");
        assertEquals(1000, order.get());
        assertEquals(0, communicator.fifo().used(), "a replay took room of the FIFO");
        assertNull(failure.get());
    }
}
