package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;
import org.millrace.net.TestOptions;

/** If a peer writes invalid data to a ring, this side throws an exception, and accesses no memory out of bounds. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class CorruptedRingTest {

    private static final int RING = 16 << 10;
    private static final ShmOptions OPTIONS = TestOptions.ring(RING, 1 << 10);

    private static void assertCorrupt(ConnectionException e) {
        assertTrue(e.getMessage().contains("corrupted"), e.getMessage());
        assertFalse(e instanceof PeerClosedException);
    }

    @ParameterizedTest
    @ValueSource(longs = {RING + 64, -64, 1, 63, Long.MAX_VALUE, Long.MIN_VALUE, 1L << 32})
    void aProducerPositionOutOfBounds(long position) throws Exception {
        try (RingPair ring = RingPair.make(OPTIONS, 0)) {
            // A valid frame, so that only the position can be wrong.
            ring.sender().offer(new FrameHeader(), null, 0);
            ring.ring().putLongRelease(RingLayout.PRODUCER_POSITION, position);
            assertCorrupt(assertThrows(ConnectionException.class, ring.receiver()::poll));
            assertCorrupt(assertThrows(ConnectionException.class, ring.receiver()::poll));
            // The sender sees that the receiver has ended the connection.
            assertTrue(Connected.failureOf(ring.sender()::progress).getMessage().contains("lost"));
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {RING + 64, -64, 1, Long.MAX_VALUE, Long.MIN_VALUE})
    void aConsumerPositionOutOfBounds(long position) throws Exception {
        try (Arena arena = Arena.ofConfined(); RingPair ring = RingPair.make(OPTIONS, 0)) {
            MemoryRegion out = ring.register(arena.allocate(2 * RING));
            FrameHeader header = new FrameHeader();
            header.payloadBytes(2 * RING);
            ring.sender().offer(header, out, 0);
            ring.ring().putLongRelease(RingLayout.CONSUMER_POSITION, position);
            assertCorrupt(Connected.failureOf(ring.sender()::progress));
        }
    }

    @Test
    void aConsumerThatTakesRoomBack() throws Exception {
        try (Arena arena = Arena.ofConfined(); RingPair ring = RingPair.make(OPTIONS, 0)) {
            MemoryRegion memory = ring.register(arena.allocate(4 * RING));
            FrameHeader header = new FrameHeader();
            header.payloadBytes(4 * RING);
            ring.sender().offer(header, memory, 0);
            while (ring.sender().progress() > 0) {
                // The loop ends when the ring is full.
            }
            ring.receiver().poll();
            ring.receiver().accept(memory, 0);
            ring.sender().progress();
            ring.ring().putLongRelease(RingLayout.CONSUMER_POSITION, 0);
            assertCorrupt(Connected.failureOf(ring.sender()::progress));
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {-1, Long.MIN_VALUE, Long.MAX_VALUE, FrameLayout.MAX_PAYLOAD_BYTES + 1})
    void aPayloadLengthOutOfBounds(long length) throws Exception {
        try (RingPair ring = RingPair.make(OPTIONS, 0)) {
            ring.sender().offer(new FrameHeader(), null, 0);
            ring.ring().putLong(RingLayout.DATA_OFFSET + 8, length);
            ConnectionException e = assertThrows(ConnectionException.class, ring.receiver()::poll);
            assertCorrupt(e);
            assertTrue(e.getMessage().contains(Long.toString(length)), e.getMessage());
        }
    }

    @Test
    void aHeaderThatIsNotTheNextOne() throws Exception {
        try (RingPair ring = RingPair.make(OPTIONS, 0)) {
            ring.sender().offer(new FrameHeader(), null, 0);
            ring.sender().offer(new FrameHeader(), null, 0);
            ring.ring().putLong(RingLayout.DATA_OFFSET + 64, ring.ring().getLong(RingLayout.DATA_OFFSET));
            ring.receiver().poll();
            ring.receiver().accept(null, 0);
            assertCorrupt(assertThrows(ConnectionException.class, ring.receiver()::poll));
        }
    }

    @Test
    void aShutdownInTheMiddleOfAPayloadIsALostConnection() throws Exception {
        try (Arena arena = Arena.ofConfined(); RingPair ring = RingPair.make(OPTIONS, 0)) {
            MemoryRegion memory = ring.register(arena.allocate(2 * RING));
            FrameHeader header = new FrameHeader();
            header.payloadBytes(2 * RING);
            ring.sender().offer(header, memory, 0);
            ring.receiver().poll();
            ring.receiver().accept(memory, 0);
            ring.ring().putLongRelease(RingLayout.PRODUCER_STATE, RingLayout.CLOSED);
            ConnectionException e = Connected.failureOf(ring.receiver()::progress);
            assertFalse(e instanceof PeerClosedException);
            assertTrue(e.getMessage().contains("lost"), e.getMessage());
        }
    }

    @Test
    void randomBytesNeverReachBeyondTheDestination() throws Exception {
        long seed = 99;
        Random random = new Random(seed);
        int failures = 0;
        for (int round = 0; round < 300; round++) {
            try (Arena arena = Arena.ofConfined(); RingPair ring = RingPair.make(OPTIONS, 0)) {
                MemoryRegion memory = ring.register(arena.allocate(RING));
                FrameHeader header = new FrameHeader();
                header.payloadBytes(500);
                for (int frame = 0; frame < 4; frame++) {
                    ring.sender().offer(header, memory, 0);
                }
                for (int i = 0; i < 4; i++) {
                    // Half of the changed words are positions and states, and the other half are in the first frames.
                    // Changes of these words have the most effect.
                    int at = random.nextBoolean() ? 128 + 8 * random.nextInt(18)
                            : RingLayout.DATA_OFFSET + 8 * random.nextInt(320);
                    ring.ring().putLong(at, random.nextBoolean() ? random.nextLong() : 64L * random.nextInt(1000));
                }
                try {
                    for (int step = 0; step < 20; step++) {
                        FrameHeader shown = ring.receiver().poll();
                        if (shown != null) {
                            try {
                                ring.receiver().accept(memory, 0);
                            } catch (IndexOutOfBoundsException e) {
                                assertTrue(shown.payloadBytes() > RING, "seed " + seed + ", round " + round);
                                break;
                            } catch (IllegalArgumentException e) {
                                throw new AssertionError("seed " + seed + ", round " + round, e);
                            }
                        }
                        ring.receiver().progress();
                        ring.sender().offer(header, memory, 0);
                        ring.sender().progress();
                    }
                } catch (ConnectionException expected) {
                    failures++;
                }
            }
        }
        assertTrue(failures > 50, failures + " of 300 rings were seen to be corrupted");
    }
}
