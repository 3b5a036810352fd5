package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.millrace.file.ProcessIdentity;

/** Reads of another process's memory: whether this machine permits such reads, and the reported reason if not. */
class SingleCopyTest {

    private static final SingleCopy REQUIRED = new SingleCopy(SingleCopy.Use.REQUIRED, 1);
    private static final SingleCopy PERHAPS = new SingleCopy(SingleCopy.Use.WHERE_IT_PAYS, 1);
    private static final ProcessIdentity SELF = ProcessIdentity.CURRENT;

    private static void refused(ProcessIdentity peer, Cookie cookie, String why) {
        assertNull(PERHAPS.open(peer, cookie));
        SingleCopy.SingleCopyException refusal =
                assertThrows(SingleCopy.SingleCopyException.class, () -> REQUIRED.open(peer, cookie));
        assertTrue(refusal.getMessage().contains(why), refusal.getMessage());
        assertTrue(refusal.getMessage().contains(SingleCopy.SETTING), refusal.getMessage());
    }

    @Test
    void aProcessThatInvitesIsRead() {
        assumeTrue(SingleCopy.isPossible(), SingleCopy::describe);
        assertNotNull(REQUIRED.open(SELF, REQUIRED.invite()));
        try (Arena arena = Arena.ofConfined()) {
            PeerMemory memory = REQUIRED.open(SELF, PERHAPS.invite());
            MemorySegment from = arena.allocate(100).fill((byte) 7);
            MemorySegment to = arena.allocate(100);
            memory.add(to, 10, 20);
            memory.add(to, 50, 30);
            assertEquals(50, memory.read(from.address(), 50));
            for (int i = 0; i < 100; i++) {
                boolean written = i >= 10 && i < 30 || i >= 50 && i < 80;
                assertEquals(written ? 7 : 0, to.get(ValueLayout.JAVA_BYTE, i), "byte " + i);
            }
        }
    }

    @Test
    void whatIsSwitchedOffIsNotTried() {
        SingleCopy off = SingleCopy.of(Optional.of(false));
        assertEquals(Cookie.NONE, off.invite());
        assertNull(off.open(SELF, Cookie.ours()));
        refused(SELF, off.invite(), SingleCopy.SETTING + " is 0");
        off.declined("connection");
        PERHAPS.declined("connection");
        assertThrows(SingleCopy.SingleCopyException.class, () -> REQUIRED.declined("connection"));
    }

    /** A read is refused if the number of the process now belongs to another process, or was wrong from the start. */
    @Test
    void anotherCookieIsAnotherProcess() {
        assumeTrue(SingleCopy.isPossible(), SingleCopy::describe);
        Cookie ours = Cookie.ours();
        refused(SELF, new Cookie(ours.address(), ours.first() + 1, ours.second()), "ESRCH");
        refused(SELF, new Cookie(ours.address(), ours.first(), ours.second() ^ 1), "ESRCH");
        refused(SELF, new Cookie(8, ours.first(), ours.second()), "EFAULT");
    }

    @Test
    void aProcessThatIsNotThereIsNotRead() throws IOException, InterruptedException {
        assumeTrue(SingleCopy.isPossible(), SingleCopy::describe);
        Process ended = new ProcessBuilder("true").start();
        ended.waitFor();
        refused(new ProcessIdentity(ended.pid(), 1, SELF.namespace()), Cookie.ours(), "ESRCH");
    }

    @Test
    void numbersOfAnotherContainerAreNotTried() {
        refused(new ProcessIdentity(SELF.pid(), SELF.startTicks(), SELF.namespace() + 1), Cookie.ours(), "PID");
    }

    @Test
    void memoryThatIsNotThereCannotBeRead() {
        assumeTrue(SingleCopy.isPossible(), SingleCopy::describe);
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(1 << 16);
            assertTrue(SingleCopy.isReadable(memory.address(), memory.byteSize()));
            assertTrue(SingleCopy.isReadable(0, 0));
            assertFalse(SingleCopy.isReadable(16, 100));
            assertFalse(SingleCopy.isReadable(memory.address(), 1L << 50));
        }
    }

    @Test
    void whatPaysIsMeasured() {
        assertTrue(new SingleCopy.CopyCost(18, 20).readPays());
        assertFalse(new SingleCopy.CopyCost(19, 20).readPays());
        assertFalse(new SingleCopy.CopyCost(Long.MAX_VALUE, 6).readPays(), "nothing could be read");
        assertTrue(SingleCopy.CopyCost.here().copiesNanos() > 0);
    }

    @Test
    void theMachineIsDescribed() {
        assertFalse(SingleCopy.describe().isBlank());
        assertEquals(!SingleCopy.isPossible(), SingleCopy.describe().startsWith("not possible"));
    }
}
