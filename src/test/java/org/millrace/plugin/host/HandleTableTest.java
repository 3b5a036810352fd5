package org.millrace.plugin.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.millrace.plugin.path.ConnectionHandle;

class HandleTableTest {

    private final HandleTable table = new HandleTable();

    private void assertInvalid(long handle) {
        assertThrows(IllegalArgumentException.class, () -> table.get(handle, String.class), Long.toHexString(handle));
    }

    @Test
    void findsByHandleAndByParts() {
        long handle = table.add("first");
        table.add("second");
        assertSame("first", table.get(handle, String.class));
        assertSame("first", table.get(ConnectionHandle.ofRequest(handle, 5), String.class));
        assertEquals(5, ConnectionHandle.request(ConnectionHandle.ofRequest(handle, 5)));
        assertEquals(ConnectionHandle.REGIONS - 1,
                ConnectionHandle.region(handle, ConnectionHandle.ofRegion(handle, ConnectionHandle.REGIONS - 1)));
    }

    @Test
    void aClosedHandleStaysInvalidWhenItsPlaceIsTakenAgain() {
        long first = table.add("first");
        assertEquals("first", table.remove(first, String.class));
        assertInvalid(first);
        long second = table.add("second");
        assertNotEquals(first, second);
        assertInvalid(first);
        assertThrows(IllegalArgumentException.class, () -> table.remove(first, String.class));
        assertSame("second", table.get(second, String.class));
    }

    @Test
    void whatNobodyMadeIsInvalid() {
        long handle = table.add("only");
        for (long invented : new long[] {0, 1, -1, Long.MAX_VALUE, Long.MIN_VALUE,
                handle + (1L << HandleTable.PART_BITS), handle + (1L << 32)}) {
            assertInvalid(invented);
        }
    }

    @Test
    void aHandleOfSomethingElseSaysWhatItIs() {
        long handle = table.add(42);
        IllegalArgumentException wrong =
                assertThrows(IllegalArgumentException.class, () -> table.get(handle, String.class));
        assertTrue(wrong.getMessage().endsWith("is a Integer, not a String"), wrong.getMessage());
    }

    @Test
    void memoryAndRequestsOfAnotherConnectionAreInvalid() {
        long mine = table.add("mine");
        long other = table.add("other");
        assertThrows(IllegalArgumentException.class,
                () -> ConnectionHandle.region(mine, ConnectionHandle.ofRegion(other, 0)));
        assertThrows(IllegalArgumentException.class, () -> ConnectionHandle.region(mine, mine));
        assertThrows(IllegalArgumentException.class,
                () -> ConnectionHandle.region(mine, ConnectionHandle.ofRequest(mine, 0)));
        assertThrows(IllegalArgumentException.class,
                () -> ConnectionHandle.request(ConnectionHandle.ofRegion(mine, 3)));
    }
}
