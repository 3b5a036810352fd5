package org.millrace.cuda.driver;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.kernel.CopyMailbox;

/** The host's commands to a copying kernel that starts and leaves at any time. */
@Timeout(60)
class CopyCommandsTest {

    private final MemorySegment mailbox = Arena.ofAuto().allocate(CopyMailbox.BYTES, CopyMailbox.ALIGNMENT);
    private final MemorySegment memory = Arena.ofAuto().allocate(1024, 64);
    private final PlayedCopyKernel kernel = new PlayedCopyKernel(mailbox);
    private int launches;

    private CopyCommands commands(int first) {
        return commands(first, 0);
    }

    private CopyCommands commands(int first, int workers) {
        return new CopyCommands(CopyMailbox.of(mailbox), first, workers, () -> launches++);
    }

    /** Posts and seals a copy. Returns its ticket, or -1 if the kernel has left and does not see the copy. */
    private static long copy(CopyCommands commands, long to, long from, int bytes, int order) {
        long ticket = commands.post(to, from, bytes, order, false, true, null);
        return commands.seal() == 0 ? ticket : UNSEEN;
    }

    private long at(long offset) {
        return memory.address() + offset;
    }

    private long longAt(long offset) {
        return memory.get(ValueLayout.JAVA_LONG, offset);
    }

    private static final long UNSEEN = -1;
    private static final int IN_TURN = CopyOrder.IN_TURN;

    /**
     * The kernel's warp makes a copy only if 128 loads cover the copy, four for each of the 32 lanes. A load has 16, 8
     * or 1 bytes, depending on the alignment. Workers also make longer copies of a sequence, up to 32 KiB.
     */
    @ParameterizedTest
    @CsvSource({"0, 0, 2048, true", "0, 0, 2064, false", "16, 8, 1024, true", "16, 8, 1032, false", "0, 0, 1020, false",
            "4, 8, 128, true", "4, 8, 132, false", "1, 3, 128, true", "1, 3, 129, false", "0, 0, 1, true",
            "0, 0, 1099511627776, false"})
    void theKernelCopiesUpToItsLimits(long to, long from, long bytes, boolean fits) {
        assertEquals(fits, commands(1).fits(to, from, bytes, CopyOrder.FREE));
        assertEquals(fits, commands(1, 4).fits(to, from, bytes, IN_TURN), "workers do not wait for each other");
        assertEquals(bytes <= 32768, commands(1, 4).fits(to, from, bytes, CopyOrder.strict(3)));
    }

    /**
     * If few copies wait, the kernel's warp makes each copy itself, unless a worker still has copies of the same
     * sequence. If many copies wait, the workers make them.
     */
    @Test
    void theWarpMakesFewCopiesAndTheWorkersMany() {
        CopyCommands commands = commands(1, 2);
        commands.invite();
        kernel.begin();
        for (int i = 0; i < 64; i++) {
            memory.set(ValueLayout.JAVA_BYTE, i, (byte) i);
        }
        List<Long> tickets = new ArrayList<>();
        // The warp makes the first two copies. The other copies belong to two sequences, and a worker for each sequence
        // makes them.
        for (int i = 0; i < 6; i++) {
            tickets.add(copy(commands, at(64 + 8 * i), at(8 * i), 8, CopyOrder.strict(i % 2)));
        }
        for (int i = 0; i < 6; i++) {
            assertFalse(commands.isDone(tickets.get(i)));
            assertTrue(kernel.look());
            assertEquals(i < 2, commands.isDone(tickets.get(i)));
        }
        // this copy must follow the worker's copies of the same sequence
        tickets.add(copy(commands, at(64 + 48), at(48), 8, CopyOrder.strict(0)));
        assertTrue(kernel.look());
        assertFalse(commands.isDone(tickets.get(6)), "the warp would overtake the worker");
        assertTrue(kernel.work(1) && kernel.work(1));
        assertFalse(kernel.work(1));
        assertTrue(commands.isDone(tickets.get(3)) && commands.isDone(tickets.get(5)));
        assertFalse(commands.isDone(tickets.get(2)) || commands.isDone(tickets.get(4)));
        assertTrue(kernel.work(2) && kernel.work(2) && kernel.work(2));
        for (long ticket : tickets) {
            assertTrue(commands.isDone(ticket));
        }
        commands.settle();
        assertEquals(-1, memory.asSlice(0, 56).mismatch(memory.asSlice(64, 56)));
        long last = copy(commands, at(64 + 56), at(56), 8, CopyOrder.strict(0));
        assertTrue(kernel.look() && commands.isDone(last), "its worker has nothing to do: the warp's");
    }

    /**
     * A strict copy that the warp makes ends the run of relaxed copies, too. Otherwise all relaxed copies would be
     * spread, and the thread would wait for them before each strict copy.
     */
    @Test
    void aStrictCopyWaitsForSpreadCopiesOnlyIfRunsAreLong() {
        CopyCommands commands = commands(1, CopyMailbox.WORKERS);
        commands.invite();
        kernel.begin();
        int awaited = 0;
        for (int run = 0; run < 100; run++) {
            long last = 0;
            for (int i = 0; i < 3; i++) {
                // the addresses are not aligned, so the warp does not make this copy
                last = copy(commands, at(0), at(401), 601, CopyOrder.relaxed(0));
            }
            awaited += commands.isAfterSpread(CopyOrder.strict(0)) ? 1 : 0;
            while (kernel.look()) {
                assertTrue(kernel.work(kernel.worker));
            }
            if (commands.isAfterSpread(CopyOrder.strict(0))) {
                commands.awaitSpread(CopyOrder.strict(0));
            }
            assertTrue(commands.isDone(last));
            copy(commands, at(0), at(8), 8, CopyOrder.strict(0));
            assertTrue(kernel.look());
            assertEquals(0, kernel.worker);
        }
        assertEquals(1, awaited);
    }

    @Test
    void aWorkerReceivesOnlyCopiesThatItHasRoomFor() {
        CopyCommands commands = commands(1, 2);
        commands.invite();
        kernel.begin();
        for (int i = 0; i < CopyMailbox.GIVEN; i++) {
            assertTrue(commands.isReady(null));
            // the addresses are not aligned, so the warp does not make this copy
            copy(commands, at(0), at(401), 601, CopyOrder.strict(0));
            assertTrue(kernel.look());
        }
        assertTrue(kernel.work(2));
        copy(commands, at(0), at(401), 601, CopyOrder.strict(0));
        assertTrue(kernel.look());
        assertFalse(commands.isReady(null));
        assertTrue(kernel.work(2));
        assertTrue(commands.isReady(null));
    }

    @ParameterizedTest
    @ValueSource(ints = {1, -70, Integer.MAX_VALUE - 70})
    void numbersWrap(int first) {
        CopyCommands commands = commands(first);
        commands.invite();
        assertEquals(1, launches);
        assertFalse(commands.isReady(null), "launched, but it has not begun");
        kernel.begin();
        for (int i = 0; i < 200; i++) {
            assertTrue(commands.isReady(null));
            memory.set(ValueLayout.JAVA_LONG, 0, i);
            long ticket = copy(commands, at(8), at(0), 8, IN_TURN);
            assertNotEquals(UNSEEN, ticket);
            assertFalse(commands.isDone(ticket));
            assertTrue(kernel.look());
            assertTrue(commands.isDone(ticket));
            assertEquals(i, longAt(8));
        }
        assertFalse(kernel.look());
    }

    @Test
    void aFullMailboxIsNotReady() {
        CopyCommands commands = commands(1);
        commands.invite();
        kernel.begin();
        for (int i = 0; i < CopyMailbox.COMMANDS; i++) {
            assertTrue(commands.isReady(null));
            assertNotEquals(UNSEEN, copy(commands, at(8L * i), at(0), 8, IN_TURN));
        }
        assertFalse(commands.isReady(null));
        assertTrue(kernel.look());
        assertTrue(commands.isReady(null));
    }

    @Test
    void theKernelIsLaunchedOnceUntilItHasLeft() {
        CopyCommands commands = commands(1);
        commands.invite();
        commands.invite();
        kernel.begin();
        commands.invite();
        kernel.announce();
        assertFalse(commands.isReady(null), "it takes no more");
        commands.invite();
        assertEquals(1, launches);
        kernel.go();
        commands.invite();
        assertEquals(2, launches);
    }

    @Test
    void aFailedLaunchIsRetried() {
        CopyCommands commands = new CopyCommands(CopyMailbox.of(mailbox), 1, 0, () -> {
            launches++;
            if (launches == 1) {
                CopyMailbox.of(mailbox).stateGoneRelease();
            }
        });
        commands.invite();
        assertEquals(1, launches);
        assertFalse(commands.isReady(null));
        commands.invite();
        commands.invite();
        assertEquals(2, launches);
    }

    /**
     * A command is posted after the kernel has announced that it leaves. The kernel reads the commands once more,
     * before or after the command is posted.
     */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCommandMayMeetTheLeavingKernel(boolean seen) throws InterruptedException {
        CopyCommands commands = commands(1);
        commands.invite();
        kernel.begin();
        assertTrue(commands.isReady(null));
        kernel.announce();
        CountDownLatch begun = new CountDownLatch(1);
        Thread leaving = Thread.ofPlatform().start(() -> {
            begun.countDown();
            while (seen && !kernel.look()) {
                Thread.onSpinWait();
            }
            kernel.go();
        });
        begun.await();
        memory.set(ValueLayout.JAVA_LONG, 16, 7);
        assertEquals(seen, copy(commands, at(0), at(16), 8, IN_TURN) != UNSEEN);
        leaving.join();
        assertEquals(seen ? 7 : 0, longAt(0));
        commands.settle(); // this call returns at once, because nothing is in flight

        commands.invite();
        kernel.begin();
        assertFalse(kernel.look(),
                "the caller that was told that it was not seen has copied otherwise: it must not be copied again");
        long ticket = copy(commands, at(8), at(16), 8, IN_TURN);
        assertFalse(commands.isDone(ticket));
        assertTrue(kernel.look());
        assertTrue(commands.isDone(ticket));
        assertEquals(7, longAt(8));
    }
}
