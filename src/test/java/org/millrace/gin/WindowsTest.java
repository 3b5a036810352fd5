package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/** Windows can be registered and closed at any time in the life of a communicator. */
class WindowsTest {

    private final Windows windows = new Windows();

    @Test
    void whatIsClosedIsNotKept() {
        Window first = windows.add(null);
        for (int i = 0; i < 10_000; i++) {
            assertTrue(windows.remove(windows.add(null)));
        }
        assertSame(first, windows.find(1));
        assertTrue(windows.capacity() <= 8, "places for one window: " + windows.capacity());
        assertEquals(10_002, windows.add(null).handle(), "a handle is never used again");
        assertEquals("window 5 was closed", windows.describe(5));
        assertEquals("window 10003 is not registered (there are 10002)", windows.describe(10_003));
        assertFalse(windows.isYetToCome(10_002));
        assertTrue(windows.isYetToCome(10_003));
    }

    @Test
    void everyWindowIsFoundByItsHandleAndNoOther() {
        Map<Long, Window> there = new TreeMap<>();
        Random random = new Random(5);
        for (int i = 0; i < 2_000; i++) {
            if (there.isEmpty() || random.nextInt(5) < 3) {
                Window added = windows.add(null);
                assertNull(there.put(added.handle(), added));
            } else {
                Long handle = there.keySet().stream().skip(random.nextInt(there.size())).findFirst().orElseThrow();
                Window removed = there.remove(handle);
                assertTrue(windows.remove(removed));
                assertFalse(windows.remove(removed), "twice");
            }
            for (long handle : new long[] {0, -1, Long.MIN_VALUE, Long.MAX_VALUE, random.nextInt(i + 2), i, i + 1}) {
                assertSame(there.get(handle), windows.find(handle));
            }
        }
        there.forEach((handle, window) -> assertSame(window, windows.find(handle)));
    }
}
