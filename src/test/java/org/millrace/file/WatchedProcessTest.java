package org.millrace.file;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** All connections to a process share one object, which reads the process's state twice a second. */
class WatchedProcessTest {

    private static final ProcessIdentity DEAD = new ProcessIdentity(ProcessIdentity.CURRENT.pid(),
            ProcessIdentity.CURRENT.startTicks() + 1, ProcessIdentity.CURRENT.namespace());

    private final AtomicLong clock = new AtomicLong();

    @Test
    void connectionsToAProcessShareOneObjectUntilTheLastIsClosed() {
        WatchedProcess first = WatchedProcess.of(DEAD);
        WatchedProcess second = WatchedProcess.of(DEAD);
        assertSame(first, second);
        first.close();
        WatchedProcess third = WatchedProcess.of(DEAD);
        assertSame(first, third, "one connection still uses it");
        third.close();
        second.close();
        WatchedProcess anew = WatchedProcess.of(DEAD);
        assertNotSame(first, anew);
        anew.close();
    }

    @Test
    void theProcessIsReadAgainAfterHalfASecond() {
        WatchedProcess dead = new WatchedProcess(DEAD, () -> true, clock::get);
        assertFalse(dead.isProvablyDead(), "it was alive when the connection was made");
        clock.addAndGet(499_999_999);
        assertFalse(dead.isProvablyDead());
        clock.addAndGet(1);
        assertTrue(dead.isProvablyDead());
    }

    @Test
    void anotherReadFollowsOnlyAfterTheInterval() {
        AtomicLong reads = new AtomicLong();
        WatchedProcess alive =
                new WatchedProcess(ProcessIdentity.CURRENT, () -> reads.incrementAndGet() < 0, clock::get);
        for (int pass = 0; pass < 100; pass++) {
            clock.addAndGet(50_000_000);
            assertFalse(alive.isProvablyDead());
        }
        assertEquals(10, reads.get(), "reads in five seconds");
    }
}
