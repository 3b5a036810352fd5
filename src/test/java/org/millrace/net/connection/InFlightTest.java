package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.FrameHeader;

class InFlightTest {

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 16, 1000})
    void whatIsUnderWayHasSlotsOfItsOwnUpToTheLimit(int limit) {
        InFlight window = new InFlight(limit);
        Long[] numbers = new Long[window.slots()];
        for (long done = 0; done < 5L * limit; done++) {
            while (!window.isFull()) {
                long number = window.begun();
                int slot = window.begin();
                assertNull(numbers[slot], "the slot of another that is under way");
                numbers[slot] = number;
            }
            assertEquals(limit, window.begun() - window.done());
            assertEquals(done, numbers[window.oldest()]);
            numbers[window.finishOldest()] = null;
            assertEquals(done + 1, window.done());
        }
        while (!window.isEmpty()) {
            window.finishOldest();
        }
        assertEquals(window.begun(), window.done());
    }

    @Test
    void waitingFramesComeOutAsTheyWereAdded() {
        FrameQueue queue = new FrameQueue(3);
        FrameHeader header = new FrameHeader();
        for (int i = 0; i < 3; i++) {
            header.word(0, i);
            queue.add(header, null, 100 + i);
        }
        assertTrue(queue.isFull());
        for (int i = 0; i < 3; i++) {
            assertEquals(i, queue.header().word(0));
            assertEquals(100 + i, queue.offset());
            assertFalse(queue.isEmpty());
            queue.removeOldest();
        }
        assertTrue(queue.isEmpty());
    }
}
