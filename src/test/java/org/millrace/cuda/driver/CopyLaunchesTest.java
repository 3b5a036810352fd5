package org.millrace.cuda.driver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.millrace.MillraceException;
import org.millrace.abi.kernel.CopyMailbox;

/**
 * If a kernel does not begin in one stream, the next stream is tried. A stream has at most one launch that has not
 * ended.
 */
class CopyLaunchesTest {

    private static final int COUNT = 3;

    private final MemorySegment memory = Arena.ofAuto().allocate(CopyMailbox.BYTES, CopyMailbox.ALIGNMENT);
    private final CopyMailbox mailbox = CopyMailbox.of(memory);
    private final PlayedCopyKernel kernel = new PlayedCopyKernel(memory);
    private final PlayedStreams streams = new PlayedStreams();
    private final CopyLaunches launches = new CopyLaunches(mailbox, streams, COUNT, 0);

    /** Imitated streams. A stream runs a launch at once, queues it after a kernel of the program, or refuses it. */
    private final class PlayedStreams implements CopyLaunches.Streams {
        private final List<String> launched = new ArrayList<>();
        private final BitSet standing = new BitSet();
        private final BitSet refusing = new BitSet();
        private final BitSet busy = new BitSet();

        @Override
        public boolean isIdle(int stream) {
            return !busy.get(stream);
        }

        @Override
        public void launch(int stream, int number) {
            assertFalse(busy.get(stream), "a launch behind another");
            if (refusing.get(stream)) {
                throw new MillraceException("refused");
            }
            launched.add(stream + "/" + number);
            if (standing.get(stream)) {
                busy.set(stream);
            } else {
                kernel.beginIn(stream);
            }
        }
    }

    private void askAgain() {
        mailbox.stateAbsentRelease();
    }

    @Test
    void theStreamOfTheLastLaunchThatBeganIsTriedFirst() {
        streams.standing.set(0);
        assertFalse(launches.attempt());
        assertEquals(List.of("0/1", "1/1"), streams.launched);
        askAgain();
        assertFalse(launches.attempt());
        assertEquals(List.of("0/1", "1/1", "1/2"), streams.launched);
        assertTrue(launches.hasLaunched());
    }

    /** copy.cu stores twice the number in 32 bits, and its workers compare half of it with the number. */
    @Test
    void theNumberOfALaunchHas31Bits() {
        CopyLaunches late = new CopyLaunches(mailbox, streams, 1, 0, Integer.MAX_VALUE - 1);
        for (int i = 0; i < 3; i++) {
            askAgain();
            assertFalse(late.attempt());
        }
        assertEquals(List.of("0/2147483647", "0/0", "0/1"), streams.launched);
    }

    @Test
    void aKernelThatIsNotAwaitedIsNotLaunched() {
        kernel.beginIn(2);
        assertFalse(launches.attempt());
        kernel.go();
        assertFalse(launches.attempt());
        assertEquals(List.of(), streams.launched);
        assertFalse(launches.hasLaunched());
    }

    @Test
    void aBlockedStreamIsSkippedUntilItIsFree() {
        streams.standing.set(0, COUNT);
        assertTrue(launches.attempt());
        assertTrue(launches.attempt());
        assertEquals(List.of("0/1", "1/1", "2/1"), streams.launched);
        streams.busy.clear(2);
        streams.standing.clear(2);
        assertFalse(launches.attempt(), "the one that had come for another visit, and left");
        assertEquals(List.of("0/1", "1/1", "2/1", "2/2"), streams.launched);
    }

    @Test
    void aLateLaunchServesTheRequest() {
        streams.standing.set(0, COUNT);
        assertTrue(launches.attempt());
        kernel.beginIn(1);
        assertFalse(launches.attempt());
        kernel.go();
        streams.busy.clear();
        streams.standing.clear();
        askAgain();
        assertFalse(launches.attempt());
        assertEquals("0/2", streams.launched.getLast(), "none was seen to begin at once");
    }

    @Test
    void aRefusedLaunchMayBeRequestedAgainAFewTimes() {
        streams.refusing.set(0, COUNT);
        for (int i = 1; i < CopyLaunches.MAX_REFUSALS; i++) {
            assertFalse(launches.attempt());
            assertEquals(CopyMailbox.GONE, mailbox.stateAcquire());
            askAgain();
        }
        launches.attempt();
        assertEquals(CopyMailbox.ABSENT, mailbox.stateAcquire(), "the copy engine makes all copies");
        streams.refusing.clear();
        assertFalse(launches.attempt());
        assertEquals(List.of(), streams.launched);
    }

    @Test
    void aRefusalLeavesTheStateToALaunchThatMayStillBegin() {
        streams.standing.set(0);
        streams.refusing.set(1);
        assertTrue(launches.attempt());
        assertEquals(CopyMailbox.ABSENT, mailbox.stateAcquire());
        kernel.beginIn(0);
        assertEquals(CopyMailbox.PRESENT, mailbox.stateAcquire());
        assertFalse(launches.attempt());
    }
}
