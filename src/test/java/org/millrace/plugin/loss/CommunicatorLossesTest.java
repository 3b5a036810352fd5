package org.millrace.plugin.loss;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.millrace.plugin.loss.AsyncErrors.Reply;

/** Lost connections that are reported, and the time at which the process must end. The test sets the clock. */
class CommunicatorLossesTest {

    private static final long NUMBER = 7;

    private long now = 1_000_000_000_000L;
    private final List<String> told = new ArrayList<>();
    private int ends;
    private int answers;
    /** Communicators that ncclCommGetAsyncError reports as failed. */
    private final Set<Long> lost = new HashSet<>();
    private Reply reply = Reply.NOT_ASKED;
    private boolean owes;
    private boolean isJava;
    /** Time that the device has been busy, in milliseconds. Negative if the host has no device. */
    private long busyMillis = -1;

    private final LossWatch watch = new LossWatch(() -> now, new LossWatch.Reaction() {
        @Override
        public void tell(LostEnd lost, LossPolicy policy) {
            told.add(lost.peer());
        }

        @Override
        public void end(Runnable leave) {
            ends++;
        }

        @Override
        public void answer() {
            answers++;
        }

        @Override
        public Reply lost(long communicator, boolean is) {
            if (is) {
                lost.add(communicator);
            } else {
                lost.remove(communicator);
            }
            return reply;
        }
    }, () -> isJava);
    private final CommunicatorLosses losses = watch.communicator(NUMBER);

    CommunicatorLossesTest() {
        watch.use(new LossPolicy(true, Duration.ofSeconds(5), true));
    }

    private void withDevice(long busy) {
        busyMillis = busy;
        losses.use(new CommunicatorLosses.Device() {
            @Override
            public void start() {
                // this device needs no start
            }

            @Override
            public void stop() {
                busyMillis = 0;
            }

            @Override
            public long busyNanos(long at) {
                return Duration.ofMillis(busyMillis).toNanos();
            }
        });
    }

    private void lose(String peer, boolean orderly) {
        losses.add(new LostEnd(peer, "connection to " + peer, orderly, () -> owes));
    }

    private void after(long millis) {
        now += Duration.ofMillis(millis).toNanos();
        watch.look();
    }

    @Test
    void aPeerThatIsKilledIsToldOfAtOnceAndOnceAndThenTheProcessEnds() {
        lose("A", false);
        lose("A", false);
        lose("B", false);
        after(0);
        assertEquals(List.of("A", "B"), told);
        after(4_900);
        assertEquals(0, ends);
        after(200);
        assertEquals(1, ends);
        assertEquals(List.of("A", "B"), told);
    }

    @Test
    void aJavaProgramHasItsExceptions() {
        isJava = true;
        lose("A", false);
        after(0);
        after(60_000);
        assertEquals(List.of(), told);
        assertEquals(0, ends);
    }

    @Test
    void whoOnlyWantsReportsGoesOn() {
        watch.use(new LossPolicy(false, Duration.ofSeconds(5), true));
        lose("A", false);
        after(0);
        after(60_000);
        assertEquals(List.of("A"), told);
        assertEquals(0, ends);
    }

    @Test
    void anAbortWithinTheGraceIsAllThatIsNeeded() {
        lose("A", false);
        after(0);
        losses.ending(peer -> {});
        lose("B", false); // A loss that the teardown causes does not count.
        after(60_000);
        assertEquals(List.of("A"), told);
        assertEquals(0, ends);
        assertNull(watch.deliver(NUMBER));
        assertFalse(watch.look(), "nothing is left to watch");
    }

    @Test
    void anErrorThatTheProgramGotGivesItTheGraceOnceMore() {
        lose("A", false);
        after(0);
        after(4_000);
        assertNull(watch.deliver(NUMBER + 1), "another communicator is whole");
        assertEquals("A: connection to A", watch.deliver(NUMBER));
        after(4_000);
        assertEquals(0, ends);
        after(1_100);
        assertEquals(1, ends);
    }

    @Test
    void ncclAnswersThatAPeerIsLostUntilTheProgramAborts() {
        lose("A", false);
        after(0);
        assertEquals(Set.of(NUMBER), lost);
        losses.ending(peer -> {});
        assertEquals(Set.of(), lost);
    }

    /** A program that has received the error may abort at any later time, as with NCCL's own proxy. */
    @Test
    void aProgramThatWasToldIsNotEnded() {
        lose("A", false);
        after(0);
        reply = Reply.TOLD;
        after(60_000);
        assertEquals(0, ends);
    }

    /** The program has shrunk the communicator. Its old connections stay open, with posted data on them. */
    @Test
    void aCommunicatorThatWasShrunkIsLookedAtNoMore() {
        withDevice(1_000);
        owes = true;
        lose("A", false);
        reply = Reply.GIVEN_UP;
        after(0);
        assertEquals(Set.of(), lost);
        assertEquals(0, busyMillis, "its device is no longer watched");
        lose("B", false);
        after(60_000);
        assertEquals(List.of("A"), told);
        assertEquals(0, ends);
        assertFalse(watch.look(), "nothing is left to watch");
    }

    /** An enqueue reported the loss, and the program shrinks the communicator before any kernel waits for the peer. */
    @Test
    void aProgramThatAnEnqueueToldIsSeenToShrink() {
        withDevice(0);
        lose("A", false);
        watch.deliver(NUMBER);
        assertEquals(Set.of(NUMBER), lost);
        assertEquals(1, answers, "calls are led here before the program makes the next");
        reply = Reply.GIVEN_UP;
        after(0);
        assertNull(watch.deliver(NUMBER), "it is settled");
        assertEquals(Set.of(), lost);
    }

    /**
     * After a loss, the program may still load a library that queries errors. The search for such libraries is
     * therefore repeated.
     */
    @Test
    void theSearchForCallersOfTheErrorFunctionIsRepeated() {
        lose("A", false);
        for (int i = 0; i < 100; i++) {
            after(20);
        }
        assertEquals(4, answers);
    }

    @Test
    void ncclsOwnAnswerIsLeftAloneIfItIsToBe() {
        watch.use(new LossPolicy(true, Duration.ofSeconds(5), false));
        lose("A", false);
        after(0);
        reply = Reply.TOLD;
        after(5_100);
        assertEquals(0, answers);
        assertEquals(Set.of(), lost);
        assertEquals(1, ends);
    }

    /**
     * A peer's process may exit without a shutdown message when all work is done. A device without work does not wait
     * for the peer.
     */
    @Test
    void anIdleDeviceMissesNobody() {
        withDevice(0);
        lose("A", false);
        after(0);
        after(60_000);
        assertEquals(List.of(), told);
        assertEquals(0, ends);
        busyMillis = 1_000;
        after(20);
        assertEquals(List.of("A"), told);
        busyMillis = 0; // the device has completed its kernel, so it did not wait for the peer
        after(3_000);
        busyMillis = 1_000;
        after(3_000);
        assertEquals(0, ends);
        after(5_100);
        assertEquals(1, ends);
    }

    @Test
    void whatWasPostedForALostPeerIsReasonEnough() {
        withDevice(0);
        owes = true;
        lose("A", false);
        after(0);
        assertEquals(List.of("A"), told);
        after(5_100);
        assertEquals(1, ends);
    }

    /** After both sides abort, the shutdown message of the peer counts as a loss only if this side has unsent data. */
    @Test
    void aShutdownHurtsOnlyWhoseDataIsLeft() {
        lose("A", true);
        after(60_000);
        assertEquals(List.of(), told);
        owes = true;
        after(0);
        assertEquals(List.of("A"), told);
        CommunicatorLosses other = watch.communicator(NUMBER + 1);
        other.add(new LostEnd("B", "connection to B", true, () -> true));
        after(400);
        assertFalse(told.contains("B"));
        after(200);
        assertTrue(told.contains("B"));
    }
}
