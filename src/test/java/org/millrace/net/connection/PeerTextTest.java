package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** Texts that would forge lines of a log. */
class PeerTextTest {

    @Test
    void aLineStaysOne() {
        assertEquals("host?ERROR ?all? is l\u00f6st?", PeerText.line("host\nERROR \u202eall\u2028 is l\u00f6st\u001b"));
    }

    @Test
    void furtherLinesAreMarkedOnce() {
        String text = PeerText.lines("failed\n\tat here\r\nERROR \u2066forged\n  | marked");
        assertEquals("failed\n  | \tat here?\n  | ERROR ?forged\n  | marked", text);
        assertEquals(text, PeerText.lines(text));
    }
}
