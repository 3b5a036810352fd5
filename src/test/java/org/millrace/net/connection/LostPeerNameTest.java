package org.millrace.net.connection;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class LostPeerNameTest {

    private static String sent(String name) {
        return LostPeerName.name(
                IntStream.range(0, LostPeerName.COUNT).mapToLong(index -> LostPeerName.word(name, index)).toArray());
    }

    @Test
    void aNameArrivesAsFarAsThereIsRoom() {
        assertNull(sent(null));
        assertEquals("pid 1 on a", sent("pid 1 on a"));
        assertEquals("pid 4194304 on 10.0.0.2", sent("pid 4194304 on 10.0.0.2"));
        String longest = "x".repeat(LostPeerName.COUNT * Long.BYTES);
        assertEquals(longest, sent(longest));
        assertEquals(longest, sent(longest + " and more"));
    }

    /** Another process wrote the name, so no unprintable character of the name may reach a terminal. */
    @Test
    void whatDoesNotPrintIsADot() {
        assertEquals("........", LostPeerName.name(0xff1b0a0d_7f018980L, 0, 0, 0, 0, 0));
        assertNull(LostPeerName.name(0, -1, -1, -1, -1, -1));
    }
}
