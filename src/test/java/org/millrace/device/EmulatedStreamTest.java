package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.MillraceException;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.HelpedAgent;
import org.millrace.agent.IdleProfile.Backoff;
import org.millrace.agent.LimitedSleeper;
import org.millrace.agent.Sleeper;

/**
 * Streams and events of the emulated device behave like streams and events of CUDA. The test runs as the device's
 * thread.
 */
class EmulatedStreamTest {

    private static final Duration NOW = Duration.ZERO;

    private final EmulatedDevice device = new EmulatedDevice(0);
    private final List<String> log = new ArrayList<>();

    private void run() {
        while (device.doWork() > 0) {
            continue;
        }
    }

    private EmulatedKernel kernel(AtomicBoolean gate) {
        return new EmulatedKernel("gate", new Block[] {new Block() {
            @Override
            public void begin() {
                log.add("begin");
            }

            @Override
            public int progress() {
                return gate.get() ? 1 : 0;
            }

            @Override
            public boolean done() {
                return gate.get();
            }

            @Override
            public String waitingFor() {
                return "its gate";
            }
        }}, () -> null, _ -> {}, () -> true, new StallLimit(Long.MAX_VALUE));
    }

    /** A large copy must not block the device's thread, because that thread also runs proxies. */
    @Test
    void aLargeCopyTakesSeveralPassesWhileOtherStreamsAdvance() {
        EmulatedStream stream = device.newStream();
        EmulatedStream other = device.newStream();
        byte[] source = new byte[(2 << 20) + 1];
        byte[] target = new byte[source.length];
        new Random(1).nextBytes(source);
        device.copyToDevice(MemorySegment.ofArray(source), MemorySegment.ofArray(target), stream);
        other.call(() -> log.add("meanwhile"));
        device.doWork();
        assertEquals(List.of("meanwhile"), log);
        assertFalse(stream.query());
        assertEquals(1 << 20, Arrays.mismatch(source, target));
        run();
        assertTrue(stream.query());
        assertArrayEquals(source, target);
        device.copyToHost(MemorySegment.ofArray(target).asSlice(0, 2 << 20),
                // a copy of overlapping memory behaves as if all bytes moved at once
                MemorySegment.ofArray(target).asSlice(1, 2 << 20), stream);
        run();
        assertArrayEquals(Arrays.copyOf(source, 2 << 20), Arrays.copyOfRange(target, 1, target.length));
        device.copyToHost(MemorySegment.ofArray(new byte[0]), MemorySegment.ofArray(new byte[0]), stream);
        run();
        assertTrue(stream.query());
    }

    @Test
    void functionsAreCalledInOrderAndTheirExceptionsDoNotStopTheStream() {
        EmulatedStream stream = device.newStream();
        List<Integer> called = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            int number = i;
            stream.call(() -> {
                called.add(number);
                if (number == 50) {
                    throw new IllegalStateException("a function that fails");
                }
            });
        }
        assertFalse(stream.query());
        run();
        assertTrue(stream.query());
        assertEquals(java.util.stream.IntStream.range(0, 100).boxed().toList(), called);
    }

    /**
     * If a thread enqueued millions of operations ahead of the device, the operations would fill the memory. The thread
     * therefore waits, as with CUDA.
     */
    @Test
    void aThreadThatIsTooFarAheadWaitsForRoom() throws Exception {
        EmulatedStream stream = device.newStream();
        int calls = 3 * TaskQueue.MAX_TASKS;
        long[] called = new long[1];
        Thread ahead = Thread.ofPlatform().start(() -> {
            for (int i = 0; i < calls; i++) {
                stream.call(() -> called[0]++);
            }
        });
        while (stream.tasks().enqueued() < TaskQueue.MAX_TASKS || ahead.getState() == Thread.State.RUNNABLE) {
            assertTrue(stream.tasks().enqueued() <= TaskQueue.MAX_TASKS, "it went on: " + stream.tasks().enqueued());
            Thread.onSpinWait();
        }
        assertEquals(TaskQueue.MAX_TASKS, stream.tasks().enqueued());
        while (called[0] < calls) {
            device.doWork();
            assertTrue(stream.tasks().enqueued() - stream.tasks().completed() <= TaskQueue.MAX_TASKS);
        }
        ahead.join();
        assertTrue(stream.query());
    }

    @Test
    void aWaitForRoomEndsWhenTheDeviceStopsOrTheThreadIsInterrupted() throws Exception {
        for (boolean stops : new boolean[] {false, true}) {
            EmulatedStream stream = device.newStream();
            for (int i = 0; i < TaskQueue.MAX_TASKS; i++) {
                stream.call(() -> {});
            }
            Throwable[] thrown = new Throwable[1];
            Thread waiting = Thread.ofPlatform().start(() -> {
                try {
                    stream.call(() -> {});
                } catch (MillraceException e) {
                    thrown[0] = e;
                }
            });
            while (waiting.getState() == Thread.State.RUNNABLE) {
                Thread.onSpinWait();
            }
            if (stops) {
                device.onClose();
            } else {
                waiting.interrupt();
            }
            waiting.join();
            assertEquals(stops, thrown[0] == null);
            assertTrue(stops || thrown[0].getMessage().contains("holds 16384 tasks, and the thread that waits"));
        }
    }

    /**
     * The function runs on the device's thread. If the function waited for room in the stream, no other thread would
     * free room.
     */
    @Test
    void aFunctionThatEnqueuesDoesNotWait() {
        EmulatedStream stream = device.newStream();
        int[] called = new int[1];
        for (int i = 0; i < TaskQueue.MAX_TASKS; i++) {
            stream.call(() -> {
                if (called[0]++ == 0) {
                    stream.call(() -> called[0]++);
                    stream.call(() -> called[0]++);
                }
            });
        }
        run();
        assertEquals(TaskQueue.MAX_TASKS + 2, called[0]);
    }

    /**
     * An interrupted close skips the running kernel, because a later wait for this kernel would never end. For example,
     * a communicator waits for its kernel before it frees memory.
     */
    @Test
    void aRunningTaskIsSkippedWhenAnInterruptedThreadCloses() {
        EmulatedStream stream = device.newStream();
        EmulatedKernel running = kernel(new AtomicBoolean());
        EmulatedKernel behind = kernel(new AtomicBoolean(true));
        device.launch(running, stream);
        device.launch(behind, stream);
        run();
        Thread.currentThread().interrupt();
        assertThrows(MillraceException.class, stream::close);
        assertTrue(Thread.interrupted());
        run();
        assertTrue(running.done() && behind.done(), "a kernel is still on the device");
        assertEquals(List.of("begin"), log);
        assertFalse(device.isRegistered(stream));
    }

    @Test
    void aStreamWaitsForTheMarkThatWasRecordedLastAtItsCall() {
        EmulatedStream first = device.newStream();
        EmulatedStream second = device.newStream();
        EmulatedEvent event = device.newEvent();
        AtomicBoolean gate = new AtomicBoolean();
        AtomicBoolean never = new AtomicBoolean();
        assertTrue(event.query(), "an event that was never recorded counts as reached");
        second.waitFor(event);
        second.call(() -> log.add("not held up"));
        device.launch(kernel(gate), first);
        first.record(event);
        second.waitFor(event);
        second.call(() -> log.add("behind"));
        device.launch(kernel(never), first);
        first.record(event); // records the event again; a stream that already waits for the event is not affected
        run();
        assertFalse(event.query());
        assertEquals(List.of("begin", "not held up"), log.stream().sorted().toList());
        assertThrows(MillraceException.class, () -> event.synchronize(NOW));
        gate.set(true);
        run();
        assertTrue(log.contains("behind"), "the second stream waits for the mark that was recorded later");
        assertFalse(event.query(), "the event was moved behind work that goes on");
        never.set(true);
        run();
        event.synchronize(NOW);
    }

    @Test
    void failuresAreReportedThroughEventsToo() {
        EmulatedStream first = device.newStream();
        EmulatedStream second = device.newStream();
        EmulatedEvent event = device.newEvent();
        EmulatedEvent later = device.newEvent();
        device.launch(new EmulatedKernel("broken", new Block[0], () -> new MillraceException("broken on purpose"),
                _ -> {}, () -> true, new StallLimit(Long.MAX_VALUE)), first);
        first.record(event);
        first.call(() -> log.add("called behind a failure"));
        second.waitFor(event);
        second.call(() -> log.add("called behind a failure of another stream"));
        second.record(later);
        run();
        for (EmulatedEvent each : List.of(event, later)) {
            MillraceException thrown = assertThrows(MillraceException.class, each::query);
            assertTrue(thrown.getMessage().contains("broken on purpose"), thrown.getMessage());
        }
        assertThrows(MillraceException.class, first::query);
        assertThrows(MillraceException.class, second::query);
        assertEquals(List.of(), log);
        first.call(() -> log.add("afterwards"));
        run();
        assertTrue(first.query(), "a failure that was told is over");
    }

    @Test
    void timeBetweenMarks() {
        EmulatedStream stream = device.newStream();
        EmulatedEvent begin = device.newEvent();
        EmulatedEvent end = device.newEvent();
        long[] spent = new long[1];
        stream.record(begin);
        stream.call(() -> {
            long start = System.nanoTime();
            while (System.nanoTime() - start < 1_000_000) {
                Thread.onSpinWait();
            }
            spent[0] = System.nanoTime() - start;
        });
        assertThrows(MillraceException.class, () -> end.elapsedSince(begin));
        stream.record(end);
        assertThrows(MillraceException.class, () -> end.elapsedSince(begin));
        run();
        assertTrue(end.elapsedSince(begin).toNanos() >= 1_000_000,
                () -> end.elapsedSince(begin) + " for " + spent[0] + " ns");
        assertTrue(begin.elapsedSince(end).isNegative());
    }

    /**
     * A thread may close a stream, or wait for the stream or its events, after the stream's communicator was closed.
     * The device's thread has then ended, so a wait for a remaining task would never end.
     */
    @Test
    void remainingTasksRunOrFailWhenTheDeviceStops() {
        EmulatedStream stream = device.newStream();
        EmulatedStream other = device.newStream();
        EmulatedStream held = device.newStream();
        EmulatedEvent reached = device.newEvent();
        EmulatedEvent lost = device.newEvent();
        other.call(() -> log.add("first"));
        other.record(reached);
        stream.waitFor(reached);
        stream.call(() -> log.add("second"));
        EmulatedKernel hangs = kernel(new AtomicBoolean());
        device.launch(hangs, held);
        held.call(() -> log.add("behind what hangs"));
        held.record(lost);
        device.onClose();
        assertEquals(List.of("begin", "first", "second"), log.stream().sorted().toList());
        assertTrue(reached.query() && stream.query() && other.query(), "what waits for nothing is run");
        assertTrue(hangs.done(), "a kernel is still on the device");
        for (MillraceException told : List.of(assertThrows(MillraceException.class, lost::query),
                assertThrows(MillraceException.class, held::query))) {
            assertTrue(told.getMessage().contains("the device has stopped"), told.getMessage());
        }
        stream.call(() -> log.add("on a device that has stopped"));
        assertThrows(MillraceException.class, () -> stream.synchronize(NOW));
        assertThrows(MillraceException.class, device::newStream);
        stream.record(lost);
        assertThrows(MillraceException.class, () -> lost.synchronize(NOW));
        for (EmulatedStream each : List.of(stream, other, held)) {
            each.close();
            assertFalse(device.isRegistered(each));
        }
        assertEquals(3, log.size(), log::toString);
    }

    @Test
    void aFunctionThatEnqueuesItselfDoesNotPreventTheDeviceFromStopping() {
        EmulatedStream stream = device.newStream();
        Runnable[] again = new Runnable[1];
        again[0] = () -> {
            log.add("called");
            stream.call(again[0]);
        };
        stream.call(again[0]);
        device.onClose();
        assertEquals(List.of("called"), log);
        assertThrows(MillraceException.class, stream::query);
    }

    private static HelpedAgent helped(EmulatedDevice device, Backoff alone, Backoff helping, long longestNapNanos) {
        return new HelpedAgent(device, alone, helping, new LimitedSleeper(Sleeper.PARK), longestNapNanos);
    }

    /**
     * A program's function may block, or take a lock that the waiting thread holds. The function therefore never runs
     * on the waiting thread.
     */
    @Test
    void aWaitingThreadRunsKernelsButNoFunctions() {
        Backoff idle = new Backoff(0, 10, 10_000, 50_000);
        HelpedAgent helped = helped(device, idle, new Backoff(0, 10, 10_000, 50_000), 400_000);
        device.runBy(helped);
        EmulatedStream stream = device.newStream();
        EmulatedEvent event = device.newEvent();
        AtomicBoolean gate = new AtomicBoolean(true);
        device.launch(kernel(gate), stream);
        stream.synchronize(Duration.ofSeconds(50));
        assertEquals(List.of("begin"), log, "nobody else runs the device yet");
        List<Thread> callers = new ArrayList<>();
        try (AgentRunner runner = AgentRunner.start(helped, helped)) {
            for (int i = 0; i < 20; i++) {
                device.launch(kernel(gate), stream);
                stream.call(() -> callers.add(Thread.currentThread()));
                stream.record(event);
                if (i % 2 == 0) {
                    stream.synchronize(Duration.ofSeconds(50));
                } else {
                    event.synchronize(Duration.ofSeconds(50));
                }
                assertEquals(i + 1, callers.size());
            }
            assertEquals(List.of(runner.thread()), callers.stream().distinct().toList());
        }
    }

    @Test
    void aThreadThatIsFarAheadRunsTheStream() {
        device.runBy(helped(device, new Backoff(0, 1, 1, 1), new Backoff(0, 1, 1, 1), 400_000));
        EmulatedStream stream = device.newStream();
        AtomicBoolean gate = new AtomicBoolean();
        for (int i = 0; i < 40; i++) {
            device.launch(kernel(gate), stream);
            device.catchUp(stream);
        }
        assertEquals(List.of("begin"), log, "the first kernel waits");
        gate.set(true);
        device.catchUp(stream);
        assertFalse(stream.query());
        assertTrue(stream.tasks().completed() >= 24, stream.tasks().completed() + " of 40 kernels");
    }

    @Test
    void anInterruptByAFunctionIsNotSeenByTheNextOne() {
        EmulatedStream stream = device.newStream();
        stream.call(() -> Thread.currentThread().interrupt());
        stream.call(() -> log.add("interrupted: " + Thread.currentThread().isInterrupted()));
        run();
        assertFalse(Thread.interrupted());
        assertEquals(List.of("interrupted: false"), log);
    }

    /** The device's thread may sleep while its streams have no task. */
    @Test
    void eachTaskThatIsAddedWakesTheDevice() {
        AtomicInteger wakes = new AtomicInteger();
        device.wakeBy(wakes::incrementAndGet);
        EmulatedStream stream = device.newStream();
        device.launch(kernel(new AtomicBoolean(true)), stream);
        assertEquals(1, wakes.get());
        stream.record(device.newEvent());
        assertEquals(2, wakes.get());
    }

    /** The thread of a device may sleep while the device's stream waits for an event of another device. */
    @Test
    void anEventThatIsReachedWakesTheOtherDeviceWhoseStreamWaitsForIt() {
        EmulatedDevice other = new EmulatedDevice(1);
        AtomicInteger wakes = new AtomicInteger();
        EmulatedEvent event = device.newEvent();
        device.newStream().record(event);
        EmulatedStream waits = other.newStream();
        other.wakeBy(wakes::incrementAndGet);
        waits.waitFor(event);
        waits.waitFor(event);
        assertEquals(0, other.doWork());
        assertEquals(2, wakes.get(), "one for each task");
        run();
        assertEquals(3, wakes.get());
        while (other.doWork() > 0) {
            continue;
        }
        assertTrue(waits.query());
    }

    /** Another device's stream recorded the event, so passes of the event's own device do not complete the event. */
    @Test
    @Timeout(60)
    void aThreadThatWaitsForAnEventRunsTheDeviceWhoseStreamRecordedIt() {
        EmulatedDevice other = new EmulatedDevice(1);
        device.runBy(helped(device, new Backoff(1, 1, 1, 1), new Backoff(1, 1, 1, 1), 1));
        other.runBy(helped(other, new Backoff(1, 1, 1, 1), new Backoff(1, 1, 1, 1), 1));
        EmulatedEvent event = device.newEvent();
        other.newStream().record(event);
        event.synchronize(Duration.ofSeconds(10));
        assertTrue(event.query());
    }

    /** Only the pass that reaches an event wakes the threads that wait for the event. */
    @Test
    @Timeout(60)
    void theThreadsThatWaitForAnEventAreUnparkedWhenItIsReached() throws InterruptedException {
        AtomicBoolean gate = new AtomicBoolean();
        EmulatedStream stream = device.newStream();
        device.launch(kernel(gate), stream);
        stream.record(device.newEvent());
        EmulatedEvent event = device.newEvent();
        stream.record(event);
        List<Thread> waiters = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Thread waiter = Thread.ofPlatform().unstarted(() -> {
                event.latest().add(Thread.currentThread());
                while (!event.latest().done()) {
                    LockSupport.park();
                }
            });
            waiters.add(waiter);
            waiter.start();
        }
        for (Thread waiter : waiters) {
            while (waiter.getState() != Thread.State.WAITING) {
                Thread.onSpinWait();
            }
        }
        gate.set(true);
        run();
        for (Thread waiter : waiters) {
            waiter.join();
        }
    }

    /**
     * Random streams record events and wait for them. An operation after a wait never runs before the recorded work.
     */
    @Test
    void randomWaitsKeepTheirOrder() {
        for (long seed = 1; seed <= 50; seed++) {
            Random random = new Random(seed);
            EmulatedStream[] streams = {device.newStream(), device.newStream(), device.newStream()};
            EmulatedEvent[] events = {device.newEvent(), device.newEvent()};
            boolean[] ran = new boolean[400];
            int[] recordedBehind = {-1, -1}; // for each event: the last operation before its last recording
            int[] lastOf = {-1, -1, -1};
            int[] mustFollow = {-1, -1, -1};
            String label = "seed " + seed;
            for (int operation = 0; operation < ran.length; operation++) {
                int s = random.nextInt(3);
                int e = random.nextInt(2);
                if (random.nextInt(3) == 0) {
                    streams[s].record(events[e]);
                    recordedBehind[e] = lastOf[s];
                } else if (random.nextInt(2) == 0) {
                    streams[s].waitFor(events[e]);
                    mustFollow[s] = recordedBehind[e];
                }
                int number = operation;
                int before = lastOf[s];
                int awaited = mustFollow[s];
                streams[s].call(() -> ran[number] = (before < 0 || ran[before]) && (awaited < 0 || ran[awaited]));
                lastOf[s] = operation;
                if (random.nextInt(4) == 0) {
                    device.doWork();
                }
            }
            run();
            for (int operation = 0; operation < ran.length; operation++) {
                assertTrue(ran[operation], label + ": operation " + operation + " ran too early");
            }
        }
    }

    /** An access to truncated mapped memory may throw late, outside the kernel's own exception handler. */
    @Test
    void aTaskWithALateFaultLeavesTheDevice() {
        EmulatedStream stream = device.newStream();
        AtomicBoolean skipped = new AtomicBoolean();
        AtomicBoolean faulted = new AtomicBoolean();
        stream.enqueue(new StreamTask() {
            @Override
            public int progress() {
                return 1;
            }

            @Override
            public void skip(Throwable reason) {
                skipped.set(reason instanceof InternalError);
            }

            @Override
            public boolean done() {
                if (faulted.compareAndSet(false, true)) {
                    throw new InternalError("a fault occurred in an unsafe memory access operation");
                }
                return skipped.get();
            }
        });
        run();
        assertTrue(faulted.get() && skipped.get(), "the task was dropped, and who waits for it waits for ever");
        assertThrows(MillraceException.class, () -> stream.synchronize(NOW));
    }
}
