package org.millrace.cuda.driver;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Random;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.kernel.CopyMailbox;

/**
 * A copy engine makes some copies, and a kernel makes others. The copies keep their order although the kernel starts
 * and leaves at any time.
 */
@Timeout(120)
@Tag("optimized")
class CopyQueueTest {

    private static final int BYTES = 1 << 14;
    private static final int SEQUENCES = 5;
    /** Size in bytes of the range that no copy writes. This range is at the end of the memory. */
    private static final int CONSTANT = 400;

    private final MemorySegment mailbox = Arena.ofShared().allocate(CopyMailbox.BYTES, CopyMailbox.ALIGNMENT);
    private final MemorySegment memory = Arena.ofShared().allocate(BYTES, 64);
    /** Number of bytes that relaxed copies of each sequence have written since all copies were last complete. */
    private final int[] filled = new int[SEQUENCES];
    private final PlayedEngine engine = new PlayedEngine(8);

    /**
     * A copy engine that delays its copies. It makes the next copy when the test calls {@link #make}, and sometimes
     * when a queue asks the engine whether a copy is complete.
     */
    private static final class PlayedEngine implements CopyQueue.Engine {
        private final Deque<Runnable> copies = new ArrayDeque<>();
        private final int room;
        private Random random;
        private long begun;
        private long done;

        /** @param room maximum number of copies in flight */
        PlayedEngine(int room) {
            this.room = room;
        }

        void make() {
            if (!copies.isEmpty()) {
                copies.remove().run();
                done++;
            }
        }

        private long begin(Runnable copy) {
            copies.add(copy);
            return ++begun;
        }

        @Override
        public boolean hasRoom() {
            return copies.size() < room || isDone(begun);
        }

        @Override
        public long copy(long to, long from, long bytes, int order, boolean fromHost) {
            return begin(() -> PlayedCopyKernel.at(to, bytes).copyFrom(PlayedCopyKernel.at(from, bytes)));
        }

        @Override
        public boolean isDone(long number) {
            if (random != null && random.nextBoolean()) {
                make();
            }
            return done - number >= 0;
        }

        @Override
        public boolean submit() {
            return false; // no copies wait in this test, because each copy begins at once
        }

        @Override
        public CopyQueue.Counts counts() {
            return CopyQueue.Counts.NONE;
        }

        @Override
        public void settle() {
            close();
        }

        @Override
        public void close() {
            while (!copies.isEmpty()) {
                make();
            }
        }
    }

    @Test
    void theKernelTakesOverWhenTheEngineHasFinished() {
        PlayedCopyKernel kernel = new PlayedCopyKernel(mailbox);
        CopyCommands commands = new CopyCommands(CopyMailbox.of(mailbox), 1, 0, kernel::begin);
        CopyQueue queue = new CopyQueue(engine, commands, true);
        long at = memory.address();
        memory.set(ValueLayout.JAVA_LONG, 16, 3);
        long first = queue.copy(at + 32, at + 16, 8); // the engine makes this copy while the kernel starts
        long second = queue.copy(at + 40, at + 32, 8);
        assertEquals(2, engine.begun);
        assertFalse(queue.isDone(first));
        engine.make();
        assertTrue(queue.isDone(first));
        assertFalse(queue.isDone(second));
        engine.make();
        assertTrue(queue.isDone(second));
        long third = queue.copyFromHost(at, at + 40, 8, CopyOrder.IN_TURN);
        long fourth = queue.copy(at + 8, at, 8);
        assertEquals(2, engine.begun, "the kernel's");
        assertFalse(queue.isDone(third));
        assertTrue(kernel.look());
        assertTrue(queue.isDone(third));
        assertFalse(queue.isDone(fourth));
        assertTrue(kernel.look());
        assertTrue(queue.isDone(fourth));
        assertEquals(3, memory.get(ValueLayout.JAVA_LONG, 8));
        queue.copy(at + BYTES / 2, at, 2048);
        assertFalse(kernel.look(), "posted, but not sealed");
        assertFalse(queue.submit(), "the engine has delayed no copy");
        assertTrue(kernel.look());
        long last = queue.copy(at, at + 1, 1000);
        assertEquals(3, engine.begun,
                "the kernel makes no such copy of odd addresses, and has made what was before it");
        engine.make();
        assertTrue(queue.isDone(last));
    }

    @Test
    void theEngineHasFewCopiesWhileTheKernelStarts() {
        long[] now = {1};
        CopyCommands commands = new CopyCommands(CopyMailbox.of(mailbox), 1, 0, () -> {}, () -> now[0]);
        CopyQueue queue = new CopyQueue(new PlayedEngine(64), commands, true);
        long at = memory.address();
        long first = queue.copy(at, at + 8, 8);
        while (queue.hasRoom()) {
            queue.copy(at, at + 8, 8);
        }
        assertEquals(CopyQueue.MAX_BEFORE_KERNEL, queue.last() - first + 1);
        now[0] += CopyCommands.START_NANOS;
        assertTrue(queue.hasRoom(), "the kernel finds no room on the GPU");
    }

    /**
     * Two queues share a kernel. If the kernel leaves before it sees the copies of one queue, this queue's engine makes
     * these copies, even if the other queue has started the kernel again.
     */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void queuesThatShareAKernelLoseNothing(boolean comesAgain) {
        PlayedCopyKernel kernel = new PlayedCopyKernel(mailbox);
        int[] launches = new int[1];
        CopyCommands commands = new CopyCommands(CopyMailbox.of(mailbox), 1, 0, () -> launches[0]++);
        CopyQueue one = new CopyQueue(engine, commands, true);
        CopyQueue other = new CopyQueue(new PlayedEngine(8), commands, true);
        long at = memory.address();
        memory.set(ValueLayout.JAVA_LONG, 0, 7);
        commands.invite();
        kernel.begin();
        long posted = one.copy(at + 8, at, 8);
        kernel.announce();
        kernel.go(); // the kernel has not seen the posted copy
        if (comesAgain) {
            other.copy(at + 32, at, 8);
            assertEquals(2, launches[0], "the other queue asks for it");
            kernel.begin();
            assertFalse(kernel.look(), "it sees nothing of what was posted before");
        }
        assertFalse(one.isDone(posted));
        assertEquals(1, engine.begun);
        engine.make();
        assertTrue(one.isDone(posted));
        assertEquals(7, memory.get(ValueLayout.JAVA_LONG, 8));
    }

    /**
     * Each command states whether it extends the kernel's stay: commands for the warp and for workers, with and without
     * an order. A peer's copies must not extend it, because the program may wait for the whole device.
     */
    @ParameterizedTest
    @ValueSource(ints = {0, 4})
    void onlyCopiesOfAnExtendingQueueExtendTheKernelsStay(int workers) {
        PlayedCopyKernel kernel = new PlayedCopyKernel(mailbox);
        CopyCommands commands = new CopyCommands(CopyMailbox.of(mailbox), 1, workers, () -> {});
        CopyQueue out = new CopyQueue(engine, commands, true);
        PlayedEngine other = new PlayedEngine(8);
        CopyQueue in = new CopyQueue(other, commands, false);
        long at = memory.address();
        commands.invite();
        kernel.begin();
        int toWorkers = 0;
        for (int bytes : workers == 0 ? new int[] {8} : new int[] {8, 4096}) {
            for (int order : new int[] {CopyOrder.FREE, CopyOrder.strict(1), CopyOrder.relaxed(2)}) {
                in.copyFromHost(at, at + BYTES / 2, bytes, order);
                in.submit();
                assertTrue(kernel.look());
                assertFalse(kernel.extended);
                toWorkers += kernel.worker > 0 ? 1 : 0;
                out.copy(at, at + BYTES / 2, bytes, order);
                out.submit();
                assertTrue(kernel.look());
                assertTrue(kernel.extended);
                toWorkers += kernel.worker > 0 ? 1 : 0;
            }
        }
        assertEquals(workers == 0 ? 0 : 6, toWorkers);
        assertEquals(0, engine.begun + other.begun);
    }

    /**
     * One thread begins long and short copies. Some copies must follow all earlier copies. Each other copy belongs to a
     * sequence, which has its own range of the memory. A strict copy must follow only the earlier copies of its
     * sequence, and may overlap them. The relaxed copies of a sequence do not overlap each other. Another thread plays
     * the kernel and its workers, which leave at any time.
     */
    @ParameterizedTest
    @Tag("slow")
    @CsvSource({"1, 0", "-3000, 0", "1, 3", "-3000, 4"})
    void randomCopiesKeepTheirOrder(int firstCommand, int workers) throws InterruptedException {
        Random random = new Random(firstCommand);
        engine.random = random;
        LinkedBlockingQueue<Integer> launches = new LinkedBlockingQueue<>();
        AtomicReference<Throwable> failure = new AtomicReference<>();
        int[] played = new int[1];
        Thread device = Thread.ofPlatform().daemon().start(() -> {
            try {
                for (int seed; (seed = launches.take()) != 0;) {
                    played[0] += play(workers, new Random(seed));
                }
            } catch (Throwable thrown) {
                failure.set(thrown);
            }
        });
        CopyQueue queue = new CopyQueue(engine, new CopyCommands(CopyMailbox.of(mailbox), firstCommand, workers,
                () -> launches.add(1 + random.nextInt(1 << 20))), true);
        byte[] expected = new byte[BYTES];
        random.nextBytes(expected);
        MemorySegment.copy(expected, 0, memory, ValueLayout.JAVA_BYTE, 0, BYTES);
        for (int i = 0; i < 20_000; i++) {
            while (!queue.hasRoom()) {
                Thread.yield();
            }
            begin(queue, workers, random, expected);
            if (random.nextBoolean()) {
                begin(queue, workers, random, expected); // if hasRoom() returns true, the queue has room for two copies
            }
            if (random.nextInt(4) == 0) {
                await(queue, queue.last() - random.nextInt(2));
            }
            // checks the memory now and then, because a later copy may overwrite wrong bytes
            if (random.nextInt(64) == 0) {
                await(queue, queue.last());
                assertArrayEquals(expected, memory.toArray(ValueLayout.JAVA_BYTE), "after copy " + i);
            }
        }
        await(queue, queue.last());
        queue.settle();
        assertArrayEquals(expected, memory.toArray(ValueLayout.JAVA_BYTE));
        queue.close();
        launches.add(0);
        device.join();
        assertEquals(null, failure.get());
        assertTrue(engine.begun > 100 && played[0] > 100,
                engine.begun + " by the engine, " + played[0] + " by the kernel: both are to be tried");
    }

    private int play(int workers, Random random) {
        PlayedCopyKernel kernel = new PlayedCopyKernel(mailbox, random);
        int made = 0;
        kernel.begin();
        for (int idle = 0; idle < 100 && made < 500;) {
            boolean found = random.nextInt(1 + workers) == 0 && kernel.look();
            found |= workers > 0 && kernel.work(1 + random.nextInt(workers));
            made += found ? 1 : 0;
            idle = found ? 0 : idle + random.nextInt(2);
            Thread.yield();
        }
        kernel.announce();
        while (kernel.look()) {
            made++;
        }
        kernel.go();
        for (int worker = 1; worker <= workers; worker++) {
            while (kernel.work(worker)) {
                made++;
            }
        }
        return made;
    }

    /**
     * Begins a copy. The copy follows all earlier copies (IN_TURN) and has any target, or it belongs to one sequence.
     * The copies of a sequence are strict or relaxed. A strict copy reads bytes that earlier copies wrote, and writes
     * into the first half of its sequence's range. A relaxed copy reads constant bytes. It writes into the second half,
     * to bytes that no other copy writes meanwhile. The share of relaxed copies alternates between half and nearly all.
     * If nearly all copies are relaxed, workers share them.
     */
    private void begin(CopyQueue queue, int workers, Random random, byte[] expected) {
        int sequences = workers > 0 && random.nextInt(8) != 0 ? SEQUENCES : 1;
        int sequence = random.nextInt(sequences);
        boolean relaxed = sequences > 1 && random.nextInt((queue.last() >> 9 & 1) == 0 ? 2 : 40) != 0;
        int part = (BYTES - CONSTANT) / sequences;
        int bytes = 1 + random.nextInt(random.nextInt(16) == 0 ? part / 3 : 40);
        int to;
        int from;
        int order;
        if (relaxed) {
            bytes = Math.min(bytes, CONSTANT);
            if (part / 2 + filled[sequence] + bytes > part) {
                await(queue, queue.last());
                filled[sequence] = 0;
            }
            to = sequence * part + part / 2 + filled[sequence];
            filled[sequence] += bytes;
            from = BYTES - CONSTANT + random.nextInt(CONSTANT - bytes + 1);
            order = CopyOrder.relaxed(sequence);
        } else {
            to = sequence * part + random.nextInt((sequences == 1 ? part : part / 2) - bytes);
            int half = sequence * part + part / 2;
            // some copies read the targets of the most recent relaxed copies
            from = filled[sequence] > bytes && random.nextBoolean() ? half + filled[sequence] - bytes
                    : sequence * part + random.nextInt((sequences == 1 ? part : part / 2 + filled[sequence]) - bytes);
            order = sequences == 1 ? CopyOrder.IN_TURN : CopyOrder.strict(sequence);
            // the target includes the bytes that the next relaxed copy will write
            if (sequences == 1 && random.nextBoolean()) {
                int next = random.nextInt(SEQUENCES);
                int whole = (BYTES - CONSTANT) / SEQUENCES;
                to = Math.min(next * whole + whole / 2 + filled[next], BYTES - CONSTANT - bytes);
            }
        }
        queue.copy(memory.address() + to, memory.address() + from, bytes, order);
        System.arraycopy(expected, from, expected, to, bytes);
    }

    private static void await(CopyQueue queue, long number) {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (!queue.isDone(number)) {
            assertTrue(deadline - System.nanoTime() > 0, "copy " + number + " is never made");
            Thread.yield();
        }
    }
}
