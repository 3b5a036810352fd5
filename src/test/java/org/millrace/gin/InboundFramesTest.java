package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Received frames that are not completely processed when their connection closes. */
class InboundFramesTest {

    @Test
    void aSignalThatWasNotAddedNoLongerUsesItsWindow() {
        Window window = new Windows().add(null);
        InboundFrames frames = new InboundFrames(4);
        frames.next().vaSignal(window, 0, 1);
        frames.add();
        assertFalse(window.isIdle());
        frames.abandon();
        assertTrue(window.isIdle());
    }
}
