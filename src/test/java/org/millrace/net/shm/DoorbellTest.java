package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.agent.IdleStrategy;
import org.millrace.agent.Sleeper;

@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD) // an interrupt does not end a sleep
class DoorbellTest {

    /**
     * Duration of a sleep, in nanoseconds. The sleep exceeds the test's timeout, so only another thread can end the
     * sleep in time.
     */
    private static final long FOR_EVER = Duration.ofHours(1).toNanos();
    private static final VarHandle WORD = ValueLayout.JAVA_INT.varHandle();

    @BeforeEach
    void memoryThatOthersMap() {
        assumeTrue(SharedMemory.sealedDomain() != 0, "no sealed memory here");
    }

    /**
     * Two ranks pass a number back and forth. Every second number is stored after the peer has announced its sleep. The
     * other numbers are stored at once, possibly while the peer is about to announce its sleep.
     */
    @Test
    void whoSleepsIsWokenByEveryStore() throws InterruptedException {
        int rounds = 20_000;
        try (SharedHeap one = SharedHeap.create(); SharedHeap other = SharedHeap.create()) {
            AtomicInteger number = new AtomicInteger();
            one.doorbell().reach(other.name());
            other.doorbell().reach(one.name());
            Thread answers = Thread.ofPlatform().daemon().start(() -> count(number, 1, rounds, other.doorbell(), one));
            count(number, 0, rounds, one.doorbell(), other);
            answers.join();
            assertEquals(2 * rounds, number.get());
        }
    }

    private static IdleStrategy strategy(Doorbell doorbell, IdleStrategy otherwise) {
        return doorbell.strategy(otherwise, doorbell.sleeper(FOR_EVER), FOR_EVER, FOR_EVER);
    }

    private static void count(AtomicInteger number, int mine, int rounds, Doorbell doorbell, SharedHeap other) {
        IdleStrategy idle = strategy(doorbell, unused());
        for (int round = 0; round < rounds; round++) {
            while (number.getAcquire() != 2 * round + mine) {
                idle.idle(0);
            }
            if (round % 2 == 0 && 2 * round + mine > 0) {
                awaitAnnouncement(other);
            }
            number.setRelease(2 * round + mine + 1);
            doorbell.wakePeers();
            idle.idle(1);
        }
    }

    private static void awaitAnnouncement(SharedHeap sleeper) {
        while (((int) WORD.getVolatile(sleeper.segment(), 0L) & 0xff) == 0) {
            Thread.yield();
        }
    }

    @Test
    void anotherThreadOfTheRankWakesIt() throws InterruptedException {
        int rounds = 1_000;
        try (SharedHeap heap = SharedHeap.create()) {
            IdleStrategy idle = strategy(heap.doorbell(), unused());
            AtomicInteger asked = new AtomicInteger();
            Thread sleeper = Thread.ofPlatform().daemon().start(() -> {
                for (int round = 1; round <= rounds; round++) {
                    while (asked.getAcquire() < round) {
                        idle.idle(0);
                    }
                    idle.idle(1);
                }
            });
            for (int round = 1; round <= rounds; round++) {
                awaitAnnouncement(heap);
                asked.setRelease(round);
                heap.doorbell().wakeOwner();
            }
            sleeper.join();
        }
    }

    /** A thread may announce its next sleep before the waking call has returned. */
    @Test
    void aCallWakesASleepingThreadOnlyOnce() throws InterruptedException {
        int rounds = 20_000;
        try (SharedHeap heap = SharedHeap.create()) {
            Sleeper sleeper = heap.doorbell().sleeper(FOR_EVER);
            AtomicInteger asked = new AtomicInteger();
            Thread sleeping = Thread.ofPlatform().daemon().start(() -> {
                while (asked.getAcquire() < rounds) {
                    sleeper.sleep(FOR_EVER);
                }
            });
            while (asked.getPlain() < rounds) {
                awaitAnnouncement(heap);
                asked.setRelease(asked.getPlain() + 1);
                heap.doorbell().wakeOwner();
            }
            sleeping.join();
            int wakes = (int) WORD.getVolatile(heap.segment(), 0L) >>> 8;
            assertTrue(wakes <= rounds, () -> wakes + " wakes");
        }
    }

    /** A rank must poll while another component may store into the rank's memory without waking the rank. */
    @Test
    void aRankPollsWhileSomethingDoesNotWakeIt() {
        try (SharedHeap heap = SharedHeap.create()) {
            List<Integer> polled = new ArrayList<>();
            IdleStrategy idle = strategy(heap.doorbell(), polled::add);
            heap.doorbell().addSilent(1);
            for (int pass = 0; pass < 100; pass++) {
                idle.idle(0);
            }
            assertEquals(100, polled.size());
            heap.doorbell().addSilent(-1);
            idle.idle(0); // the rank yields its core, and does not poll
            assertEquals(100, polled.size());
        }
    }

    /**
     * A rank without a kernel in flight need not poll its network connections, because no kernel would receive the
     * data.
     */
    @Test
    void aSilentPeerShortensTheSleepOnlyWhileSomethingIsInFlight() {
        Doorbell doorbell = new Doorbell();
        assertEquals(50, doorbell.bound(50, 1), "each event wakes it");
        doorbell.addSilent(1);
        assertEquals(1, doorbell.bound(50, 1));
        doorbell.setQuiet(true);
        assertEquals(50, doorbell.bound(50, 1));
    }

    @Test
    void whatWakesPeersIsNotHandedOut() {
        try (SharedHeap heap = SharedHeap.create(); Arena arena = Arena.ofConfined()) {
            heap.allocate(1, arena).fill((byte) 1);
            assertEquals((byte) 0, heap.segment().get(ValueLayout.JAVA_BYTE, 0));
        }
    }

    private static IdleStrategy unused() {
        return workCount -> {
            throw new AssertionError("polls");
        };
    }
}
