package org.millrace.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.agent.IdleProfile.Backoff;

/**
 * Waiting threads run an agent's passes, one thread at a time. The agent's own thread runs the passes if no thread
 * waits.
 */
@Timeout(60)
class HelpedAgentTest {

    private static final long LONG = TimeUnit.SECONDS.toNanos(50);

    /** Passes write fields with plain stores, as a real agent does. */
    private static final class Counter implements Agent {
        private final IntSupplier work;
        private final AtomicBoolean inside = new AtomicBoolean();
        private final List<Throwable> failures = new ArrayList<>();
        /** Threads that stay parked until a pass of the agent unparks them. */
        private final Queue<Thread> waiting = new ConcurrentLinkedQueue<>();
        private volatile boolean overlapped;
        private volatile int passes;
        private int plain;
        private volatile Thread last;
        private volatile Thread closedBy;

        Counter(IntSupplier work) {
            this.work = work;
        }

        @Override
        public int doWork() {
            overlapped |= !inside.compareAndSet(false, true);
            plain++;
            last = Thread.currentThread();
            try {
                return work.getAsInt();
            } finally {
                overlapped |= !inside.compareAndSet(true, false);
                passes = plain;
                waiting.forEach(LockSupport::unpark);
            }
        }

        @Override
        public String name() {
            return "counter";
        }

        @Override
        public void onFailure(Throwable failure) {
            failures.add(failure);
        }

        @Override
        public void onClose() {
            closedBy = Thread.currentThread();
            passes = Integer.MAX_VALUE;
        }
    }

    private static HelpedAgent helped(Agent agent) {
        return new HelpedAgent(agent, new Backoff(0, 10, 10_000, 50_000), new Backoff(0, 10, 10_000, 50_000),
                new LimitedSleeper(Sleeper.PARK), 400_000);
    }

    @Test
    void whoWaitsRunsThePasses() {
        Counter counter = new Counter(() -> 0);
        assertTrue(helped(counter).await(() -> counter.passes == 100, LONG));
        assertEquals(100, counter.passes);
        assertSame(Thread.currentThread(), counter.last);
    }

    @Test
    void whoIsAheadRunsPassesWhileTheyDoSomething() {
        AtomicInteger left = new AtomicInteger(10);
        Counter counter = new Counter(() -> left.getAndDecrement() > 0 ? 1 : 0);
        HelpedAgent helped = helped(counter);
        helped.help(() -> counter.passes == 4);
        assertEquals(4, counter.passes);
        helped.help(() -> false);
        assertEquals(11, counter.passes, "one pass more than there was work");
    }

    @Test
    void whoWaitsHearsThatTheTimeIsOver() {
        Counter counter = new Counter(() -> 0);
        HelpedAgent helped = helped(counter);
        assertFalse(helped.await(() -> false, 0));
        assertEquals(0, counter.passes);
        while (counter.passes == 0) { // on a busy machine, the timeout may expire before the first pass
            assertFalse(helped.await(() -> false, 1_000_000));
        }
        Thread.currentThread().interrupt();
        assertFalse(helped.await(() -> false, LONG));
        assertTrue(Thread.interrupted(), "the interrupt is kept");
    }

    /** Without the helper's deadline, the idle strategy would sleep for a second. */
    @Test
    void theSleepsOfAHelperEndAtItsDeadline() {
        long deadline = 1_000_000;
        List<Long> sleeps = new ArrayList<>();
        LimitedSleeper sleeper = new LimitedSleeper(sleeps::add);
        IdleStrategy helping = new Backoff(null, 0, 0, 1_000_000_000, 1_000_000_000, sleeper, null);
        HelpedAgent helped = new HelpedAgent(new Counter(() -> 0), helping, helping, sleeper, 400_000);
        while (sleeps.isEmpty()) { // on a busy machine, the deadline may expire before the first sleep
            assertFalse(helped.await(() -> false, deadline));
        }
        assertTrue(sleeps.stream().allMatch(nanos -> nanos <= deadline), sleeps::toString);
    }

    @Test
    void whatAPassThrowsIsTheAgents() {
        IllegalStateException failure = new IllegalStateException("a pass that fails");
        AtomicInteger passes = new AtomicInteger();
        Counter counter = new Counter(() -> {
            if (passes.incrementAndGet() == 3) {
                throw failure;
            }
            return 1;
        });
        assertTrue(helped(counter).await(() -> counter.passes == 5, LONG));
        assertEquals(List.of(failure), counter.failures);
    }

    @Test
    void theOwnThreadGoesOnWhenNobodyWaits() throws Exception {
        CountDownLatch ran = new CountDownLatch(1000);
        Counter counter = new Counter(() -> {
            ran.countDown();
            return 1;
        });
        HelpedAgent helped = helped(counter);
        try (AgentRunner runner = AgentRunner.start(helped, helped)) {
            for (int i = 0; i < 10; i++) {
                int until = counter.passes + 10;
                assertTrue(helped.await(() -> counter.passes >= until, LONG));
            }
            assertTrue(ran.await(50, TimeUnit.SECONDS));
            assertSame(runner.thread(), awaited(counter));
        }
        assertFalse(counter.overlapped);
    }

    private static Thread awaited(Counter counter) {
        int seen = counter.passes;
        while (counter.passes == seen) {
            Thread.onSpinWait();
        }
        return counter.last;
    }

    /**
     * Four threads repeatedly wait for the agent, and call help() after each wait. These threads and the agent's own
     * thread never run two passes at once.
     */
    @Test
    void oneThreadAtATime() throws Exception {
        Counter counter = new Counter(() -> 1);
        HelpedAgent helped = helped(counter);
        AtomicInteger given = new AtomicInteger();
        Set<Thread> passers = ConcurrentHashMap.newKeySet();
        try (AgentRunner _ = AgentRunner.start(helped, helped)) {
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                threads.add(Thread.ofPlatform().start(() -> {
                    counter.waiting.add(Thread.currentThread());
                    // On a machine with much other work, one thread may have run all passes so far. The loop then
                    // continues.
                    for (int wait = 0; wait < 2000 || passers.size() < 2; wait++) {
                        int until = counter.passes + 5;
                        if (!helped.await(() -> counter.passes >= until, LONG)) {
                            given.incrementAndGet();
                        }
                        passers.add(counter.last);
                        helped.help(() -> counter.passes >= until + 3);
                    }
                }));
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
        assertEquals(0, given.get(), "waits that ended too early");
        assertFalse(counter.overlapped, "two threads were in a pass");
    }

    @Test
    void whatNeedsTheOwnThreadIsDoneByIt() {
        HelpedAgent[] helped = new HelpedAgent[1];
        AtomicInteger called = new AtomicInteger();
        List<Thread> callers = new ArrayList<>();
        AtomicInteger passedOn = new AtomicInteger();
        Counter counter = new Counter(() -> {
            if (called.get() == 100) {
                return 0;
            }
            if (!helped[0].isOwnThread()) {
                passedOn.incrementAndGet();
                helped[0].needOwnThread();
                return 0;
            }
            callers.add(Thread.currentThread());
            called.incrementAndGet();
            return 1;
        });
        helped[0] = helped(counter);
        try (AgentRunner runner = AgentRunner.start(helped[0], helped[0])) {
            assertTrue(helped[0].await(() -> called.get() == 100, LONG));
            assertEquals(List.of(runner.thread()), callers.stream().distinct().toList());
            int until = counter.passes + 10;
            assertTrue(helped[0].await(() -> counter.passes >= until, LONG), "nobody has the turn behind it");
        }
        assertFalse(counter.overlapped);
    }

    /** When the agent is closed, its own thread runs the last action. No waiting thread runs a pass afterwards. */
    @Test
    void whoWaitsLeavesWhenTheAgentIsClosed() throws Exception {
        Counter counter = new Counter(() -> 0);
        HelpedAgent helped = helped(counter);
        AgentRunner runner = AgentRunner.start(helped, helped);
        CountDownLatch waits = new CountDownLatch(1);
        Thread waiter = Thread.ofPlatform().start(() -> {
            helped.await(() -> {
                waits.countDown();
                return counter.passes == Integer.MAX_VALUE;
            }, LONG);
        });
        waits.await();
        runner.close();
        waiter.join();
        assertSame(runner.thread(), counter.closedBy);
        assertEquals(Integer.MAX_VALUE, counter.passes, "a pass behind the last");
        helped.help(() -> false);
        assertEquals(Integer.MAX_VALUE, counter.passes, "a pass behind the last");
        assertFalse(counter.overlapped);
    }

    /** Threads that wait must not take a core from the thread that runs the passes. */
    @Test
    void aThreadThatWaitsBehindAHelperAsksOnlyWhenItIsUnparked() throws Exception {
        AtomicReference<Thread> helper = new AtomicReference<>();
        Counter counter = new Counter(() -> {
            helper.compareAndSet(null, Thread.currentThread().isDaemon() ? null : Thread.currentThread());
            return 1;
        });
        HelpedAgent helped = helped(counter);
        AtomicInteger asked = new AtomicInteger();
        AtomicBoolean over = new AtomicBoolean();
        int waiters = 20;
        CountDownLatch wait = new CountDownLatch(waiters);
        List<Thread> threads = new ArrayList<>();
        try (AgentRunner _ = AgentRunner.start(helped, helped)) {
            long begun = System.nanoTime();
            for (int i = 0; i < waiters; i++) {
                Thread thread = Thread.ofPlatform().start(() -> helped.await(() -> {
                    if (Thread.currentThread() != helper.get()) {
                        asked.incrementAndGet();
                    }
                    wait.countDown();
                    return over.get();
                }, LONG));
                threads.add(thread);
            }
            wait.await();
            counter.waiting.add(Thread.currentThread());
            int until = counter.passes + 100_000;
            assertTrue(helped.await(() -> counter.passes >= until, LONG));
            long backstops = 1 + (System.nanoTime() - begun) / HelpedAgent.RESULT_NANOS;
            over.set(true);
            assertTrue(asked.get() <= waiters * (2 + backstops), asked + " looks of " + waiters + " threads");
            threads.forEach(LockSupport::unpark);
            for (Thread thread : threads) {
                thread.join();
            }
        }
        assertFalse(counter.overlapped);
    }

    /**
     * A pass makes native calls, which would pin the carrier of a virtual thread. A virtual thread therefore runs no
     * pass.
     */
    @Test
    void aVirtualThreadRunsNoPass() throws Exception {
        AtomicBoolean virtual = new AtomicBoolean();
        Counter counter = new Counter(() -> {
            if (Thread.currentThread().isVirtual()) {
                virtual.set(true);
            }
            return 1;
        });
        HelpedAgent helped = helped(counter);
        try (AgentRunner _ = AgentRunner.start(helped, helped)) {
            Thread waiter = Thread.ofVirtual().start(() -> {
                counter.waiting.add(Thread.currentThread());
                for (int wait = 0; wait < 20; wait++) {
                    int until = counter.passes + 5;
                    assertTrue(helped.await(() -> counter.passes >= until, LONG));
                }
            });
            waiter.join();
            assertTrue(counter.passes >= 100);
        }
        assertFalse(virtual.get());
    }
}
