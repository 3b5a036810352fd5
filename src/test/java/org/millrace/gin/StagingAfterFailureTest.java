package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Arrays;
import java.util.function.IntSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;

/**
 * A communicator ends with transfers in flight. The next communicator on the two devices receives all staging buffers,
 * but it receives a buffer only after the last copy that uses the buffer is complete.
 */
class StagingAfterFailureTest {

    private static final GinDescriptorFormat FORMAT = GinDescriptorFormat.V30;
    private static final int CHUNK = 64;
    private static final int BUFFERS = 8;
    private static final int OPERATIONS = 16;
    private static final int SIGNAL = 1;
    private static final int SOURCE = 64;
    private static final int TARGET = SOURCE + OPERATIONS * CHUNK;
    private static final int WINDOW = TARGET + OPERATIONS * CHUNK;
    private static final int MAX_PASSES = 100 * OPERATIONS;

    private final Arena arena = Arena.ofConfined();
    private final StagedDevice[] devices = new StagedDevice[2];
    private final Ranks first;

    StagingAfterFailureTest() {
        for (int rank = 0; rank < 2; rank++) {
            devices[rank] = new StagedDevice(arena.allocate((long) BUFFERS * CHUNK, 64), BUFFERS, null);
        }
        first = new Ranks();
    }

    @AfterEach
    void close() {
        first.pair.close();
        arena.close();
    }

    /** Both ranks of one communicator. Several communicators use the two devices in sequence. */
    private final class Ranks {
        final GinPair pair = new GinPair(new GinOptions(CHUNK, 16, Duration.ofSeconds(5)), null);
        final MemorySegment[] memory = new MemorySegment[2];
        final GinPair.Context[] contexts = new GinPair.Context[2];

        Ranks() {
            pair.serve();
            for (int rank = 0; rank < 2; rank++) {
                memory[rank] = arena.allocate(WINDOW, 64);
                for (int i = 0; i < OPERATIONS; i++) {
                    memory[rank].asSlice(SOURCE + i * CHUNK, CHUNK).fill((byte) (1 + 101 * rank + i));
                }
                pair.communicators[rank].register(new StagedMemory(memory[rank], devices[rank]));
                contexts[rank] = new GinPair.Context(arena, 0, FORMAT, 2 * OPERATIONS, 4, 0);
                pair.add(rank, contexts[rank]);
            }
        }

        void put(int rank, int peer, int number) {
            FORMAT.begin(contexts[rank].words, GinOp.PUT | GinOp.SIGNAL_INC, CHUNK);
            FORMAT.source(contexts[rank].words, 1, SOURCE + number * CHUNK);
            FORMAT.target(contexts[rank].words, 1, TARGET + number * CHUNK);
            FORMAT.completion(contexts[rank].words, 0, SIGNAL, 1);
            contexts[rank].post(peer);
        }

        void get(int rank, int peer, int number) {
            FORMAT.begin(contexts[rank].words, GinOp.GET, CHUNK);
            FORMAT.source(contexts[rank].words, 1, SOURCE + number * CHUNK);
            FORMAT.target(contexts[rank].words, 1, TARGET + number * CHUNK);
            contexts[rank].post(peer);
        }

        void add(int rank, int peer) {
            FORMAT.begin(contexts[rank].words, GinOp.VA_SIGNAL | GinOp.SIGNAL_ADD, 0);
            FORMAT.source(contexts[rank].words, 1, 8);
            FORMAT.completion(contexts[rank].words, 0, 0, 5);
            contexts[rank].post(peer);
        }

        /**
         * Posts operations of each kind from each rank. If {@code peer} is 1, the other rank is the destination. If it
         * is 0, the posting rank itself is the destination.
         */
        void postOfEachKind(int peer) {
            add(0, peer);
            add(1, 1 - peer);
            for (int i = 0; i < OPERATIONS / 2; i++) {
                put(0, peer, i);
                put(1, 1 - peer, i);
                if (peer == 1) {
                    get(0, 1, i + OPERATIONS / 2);
                }
            }
        }

        /** Requires that both connections of a rank are closed before the rank abandons a buffer. */
        void expectClosedConnections() {
            devices[0].networkIsClosed = () -> pair.forth.senderClosed() && pair.back.receiverClosed();
            devices[1].networkIsClosed = () -> pair.back.senderClosed() && pair.forth.receiverClosed();
        }

        void run(int passes) {
            for (int pass = 0; pass < passes; pass++) {
                pair.work();
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"1, 2, false", "1, 3, false", "1, 4, false", "1, 5, false", "1, 6, false", "1, 2, true", "1, 3, true",
            "1, 4, true", "1, 5, true", "1, 6, true", "0, 2, true", "0, 3, true"})
    void theNextCommunicatorHasThemAll(int peer, int passes, boolean copiesLast) {
        devices[0].holding = copiesLast;
        devices[1].holding = copiesLast;
        if (peer == 1) {
            first.expectClosedConnections();
        }
        first.postOfEachKind(peer);
        first.run(passes);
        assertTrue(devices[0].open > 0, "nothing was open at rank 0, so that nothing was tested");
        for (GinCommunicator communicator : first.pair.communicators) {
            communicator.fail(new GinException("failed by the test"));
        }
        first.run(1);
        assertAllServeTheNext(copiesLast);
    }

    /** The receiver has a buffer for the arriving payload, but none of the receiver's lists contains the frame yet. */
    @Test
    void soItDoesWhereTheConnectionIsLostWhileAPayloadIsReceived() {
        first.expectClosedConnections();
        first.pair.forth.cut();
        first.put(0, 1, 0);
        first.run(10);
        assertNotNull(first.pair.communicators[1].failure());
        assertEquals(0, devices[1].open);
        first.pair.communicators[0].fail(new GinException("failed by the test"));
        first.run(1);
        assertAllServeTheNext(false);
    }

    /** A communicator may also be closed before all operations are complete. */
    @Test
    void soItDoesAfterOneThatWasClosedTooSoon() throws InterruptedException {
        devices[0].holding = true;
        first.expectClosedConnections();
        first.postOfEachKind(1);
        first.run(3);
        assertTrue(devices[0].open > 0, "nothing was open at rank 0, so that nothing was tested");
        for (int rank = 0; rank < 2; rank++) {
            GinAgent agent = first.pair.agents[rank];
            GinCommunicator communicator = first.pair.communicators[rank];
            Thread closing = new Thread(() -> agent.remove(communicator, Duration.ZERO));
            closing.start();
            long deadline = System.nanoTime() + Duration.ofSeconds(30).toNanos();
            while (!communicator.isDisconnected()) {
                assertTrue(deadline - System.nanoTime() > 0, "the agent was not asked");
                agent.doWork();
            }
            closing.join(Duration.ofSeconds(30));
            assertFalse(closing.isAlive());
        }
        assertAllServeTheNext(true);
    }

    private void assertAllServeTheNext(boolean copiesLast) {
        for (int rank = 0; rank < 2; rank++) {
            devices[rank].holding = false;
            assertTrue(first.pair.communicators[rank].isDisconnected());
        }
        Ranks next = new Ranks();
        try (GinPair pair = next.pair) {
            for (int i = 0; i < OPERATIONS; i++) {
                next.put(0, 1, i);
                next.put(1, 0, i);
            }
            next.add(0, 1);
            next.run(MAX_PASSES);
            pair.throwIfFailed(); // one buffer is still in use by a held copy of the first communicator
            assertEquals(copiesLast, devices[0].finishHeld() + devices[1].finishHeld() > 0,
                    "copies that were held to the end");
            int pass = 0;
            while (!(pair.communicators[0].isDrained() && pair.communicators[1].isDrained())) {
                assertTrue(pass++ < MAX_PASSES, "it stands still");
                pair.work();
                pair.throwIfFailed();
            }
            assertEquals(5, next.memory[1].get(ValueLayout.JAVA_LONG, 8));
            for (int rank = 0; rank < 2; rank++) {
                assertEquals(OPERATIONS, next.contexts[rank].signals.acquire(SIGNAL));
                for (int i = 0; i < OPERATIONS; i++) {
                    byte[] expected = new byte[CHUNK];
                    Arrays.fill(expected, (byte) (1 + 101 * (1 - rank) + i));
                    assertArrayEquals(expected,
                            next.memory[rank].asSlice(TARGET + i * CHUNK, CHUNK).toArray(ValueLayout.JAVA_BYTE),
                            "put " + i);
                }
                StagingBuffers buffers = devices[rank].buffers;
                assertEquals(BUFFERS,
                        count(buffers::takeToSend) + count(buffers::takeToReceive) + count(buffers::takeToAdd),
                        "free at rank " + rank);
            }
        }
    }

    private static int count(IntSupplier take) {
        int taken = 0;
        while (take.getAsInt() >= 0) {
            taken++;
        }
        return taken;
    }
}
