package org.millrace.plugin.fallback;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.millrace.plugin.path.ConnectionHandle;

class RequestRingTest {

    private final RequestRing ring = new RequestRing();

    @Test
    void numbersWrapAndSequencesDoNot() {
        for (long sequence = 0; sequence < 3L * ConnectionHandle.REQUEST_NUMBERS; sequence++) {
            int number = ring.add((int) sequence);
            assertEquals(sequence % ConnectionHandle.REQUEST_NUMBERS, number);
            assertEquals(sequence, ring.sequence(number));
            assertEquals(sequence, ring.bytes(sequence));
            ring.release(sequence);
            assertTrue(ring.isIdle());
        }
    }

    @Test
    void isFullWithTheOldestStillUnderWayWhateverElseIsDone() {
        for (int i = 0; i < RequestRing.CAPACITY; i++) {
            assertTrue(ring.hasRoom());
            ring.add(i);
        }
        ring.release(5);
        assertFalse(ring.hasRoom());
        ring.release(0);
        assertTrue(ring.hasRoom());
    }

    @Test
    void aRequestThatIsDoneOrWasNeverBegunIsInvalid() {
        int number = ring.add(1);
        ring.release(0);
        assertThrows(IllegalArgumentException.class, () -> ring.sequence(number));
        assertThrows(IllegalArgumentException.class, () -> ring.sequence(1));
        assertThrows(IllegalArgumentException.class, () -> ring.sequence(ConnectionHandle.REQUEST_NUMBERS - 1));
    }
}
