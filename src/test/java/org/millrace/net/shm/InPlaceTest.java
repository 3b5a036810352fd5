package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.FrameReceiver.Pages;
import org.millrace.net.PeerClosedException;
import org.millrace.net.TestOptions;

/** The receiver reads payloads directly in the sender's memory. Faults and closes occur before or during a read. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class InPlaceTest {

    private static final int RING = 16 << 10;
    private static final int LEAST = 1 << 10;
    private static final ShmOptions OPTIONS =
            TestOptions.ring(RING, LEAST).withSingleCopy(new SingleCopy(SingleCopy.Use.REQUIRED, LEAST));
    private static final int LENGTH = 700_001;

    private final Arena arena = Arena.ofShared();

    /** Performs each read of a peer's memory as the test requires, in place of the operating system. */
    private abstract static class Spoiled implements PeerMemory {

        final PeerMemory real;
        private MemorySegment to;
        private long offset;
        int calls;

        Spoiled(PeerMemory real) {
            this.real = real;
        }

        @Override
        public void add(MemorySegment memory, long at, long bytes) {
            to = memory;
            offset = at;
        }

        @Override
        public final long read(long address, long bytes) {
            calls++;
            return spoil(address, bytes);
        }

        abstract long spoil(long address, long bytes);

        final long really(long address, long bytes) {
            real.add(to, offset, bytes);
            return real.read(address, bytes);
        }
    }

    @BeforeAll
    static void possible() {
        assumeTrue(SingleCopy.isPossible(), SingleCopy::describe);
    }

    @AfterEach
    void free() {
        arena.close();
    }

    private MemoryRegion memory(RingPair ring, long bytes) {
        MemorySegment memory = arena.allocate(bytes, 64);
        for (long i = 0; i + 8 <= bytes; i += 8) {
            memory.set(ValueLayout.JAVA_LONG, i, i * 0x9e3779b97f4a7c15L + 1);
        }
        return ring.register(memory);
    }

    private MemoryRegion empty(RingPair ring, long bytes) {
        return ring.register(arena.allocate(bytes, 64));
    }

    private static FrameHeader header(long bytes) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(bytes);
        return header;
    }

    private static void receive(RingPair ring, long frames) {
        while (ring.receiver().framesCompleted() < frames) {
            ring.receiver().progress();
        }
    }

    /** The ring has no room for a payload, so no payload passes through the ring. */
    @Test
    void aPayloadIsCompleteWhenItWasReadAndTakesNoRoom() throws IOException {
        try (RingPair ring = RingPair.make(OPTIONS, 0)) {
            MemoryRegion out = memory(ring, LENGTH);
            MemoryRegion in = empty(ring, LENGTH + 16);
            assertTrue(ring.sender().offer(header(LENGTH), out, 0));
            assertEquals(128, ring.ring().getLongAcquire(RingLayout.PRODUCER_POSITION));
            ring.sender().progress();
            assertEquals(0, ring.sender().framesCompleted(), "it must not be overwritten yet");
            assertEquals(LENGTH, ring.receiver().poll().payloadBytes());
            ring.receiver().accept(in, 0);
            assertEquals(0, ring.ring().getLongAcquire(RingLayout.CONSUMER_POSITION), "one piece of several is there");
            receive(ring, 1);
            assertEquals(0, ring.sender().framesCompleted());
            assertEquals(LENGTH, ring.sender().progress());
            assertEquals(1, ring.sender().framesCompleted());
            assertEquals(-1, out.segment().mismatch(in.segment().asSlice(0, LENGTH)));
            assertEquals(0, in.segment().get(ValueLayout.JAVA_LONG, LENGTH + 7 & -8), "behind it nothing is written");
        }
    }

    /**
     * The sender counts completed frames in order. If an unread payload precedes a copied frame, the frame is complete
     * only after that payload is read.
     */
    @ParameterizedTest
    @ValueSource(longs = {0, Long.MAX_VALUE - 63 - 3 * 64, -3 * 64, (1L << 32) - 64})
    void framesOfBothKindsCompleteInOrder(long first) throws IOException {
        int[] lengths = {LEAST - 1, LEAST, 0, 8, LENGTH, 5 * LEAST, 1, LEAST + 1};
        try (RingPair ring = RingPair.make(OPTIONS, first)) {
            MemoryRegion out = memory(ring, LENGTH);
            MemoryRegion in = empty(ring, LENGTH);
            for (int round = 0; round < 200; round++) {
                for (int length : lengths) {
                    assertTrue(ring.sender().offer(header(length), length == 0 ? null : out, 0));
                }
                assertEquals(8L * round + 1, ring.sender().framesCompleted(), "the first needs nobody to read it");
                for (int i = 0; i < lengths.length; i++) {
                    assertEquals(lengths[i], ring.receiver().poll().payloadBytes());
                    ring.receiver().accept(lengths[i] == 0 ? null : in, 0);
                    receive(ring, 8L * round + i + 1);
                    assertEquals(-1, MemorySegment.mismatch(out.segment(), 0, lengths[i], in.segment(), 0, lengths[i]));
                    in.segment().fill((byte) 0);
                }
                ring.sender().progress();
                assertEquals(8L * round + 8, ring.sender().framesCompleted());
            }
        }
    }

    @Test
    void asManyPayloadsStayInPlaceAsFramesMayBeInFlight() throws IOException {
        ShmOptions threeFrames = new ShmOptions(OPTIONS.directory(), RING, LEAST, 3, OPTIONS.connectDeadline(),
                OPTIONS.handshakeDeadline(), OPTIONS.singleCopy(), OPTIONS.sealed());
        try (RingPair ring = RingPair.make(threeFrames, 0)) {
            MemoryRegion memory = memory(ring, 2 * LEAST);
            int offered = 0;
            while (ring.sender().offer(header(LEAST), memory, 0)) {
                offered++;
            }
            assertEquals(6, offered, "three in the ring and three that wait");
            assertEquals(3 * 128, ring.ring().getLongAcquire(RingLayout.PRODUCER_POSITION));
            for (int i = 1; i <= 6; i++) {
                ring.receiver().poll();
                ring.receiver().accept(memory, LEAST);
                receive(ring, i);
                ring.sender().progress();
            }
            assertEquals(6, ring.sender().framesCompleted());
        }
    }

    @Test
    void aPayloadIsSpreadOverPages() throws IOException {
        int page = 4096;
        int pages = 100; // more pages than one system call can read
        try (RingPair ring = RingPair.make(OPTIONS, 0)) {
            int bytes = pages * page - 17;
            MemoryRegion out = memory(ring, bytes);
            MemoryRegion in = empty(ring, (long) pages * page);
            int[] offsets = new int[pages + 1];
            for (int i = 0; i < pages; i++) {
                offsets[i + 1] = (pages - 1 - i) * page;
            }
            ring.sender().offer(header(bytes), out, 0);
            ring.receiver().poll();
            ring.receiver().acceptScattered(new Pages(in, offsets, page), 1);
            receive(ring, 1);
            for (int i = 0; i < pages; i++) {
                long length = Math.min(page, bytes - (long) i * page);
                assertEquals(-1, MemorySegment.mismatch(out.segment(), (long) i * page, (long) i * page + length,
                        in.segment(), offsets[i + 1], offsets[i + 1] + length), "page " + i);
            }
        }
    }

    @Test
    void aPageOutsideOfItsRegionIsRefused() throws IOException {
        try (RingPair ring = RingPair.make(OPTIONS, 0)) {
            MemoryRegion memory = memory(ring, 3 * 4096);
            ring.sender().offer(header(2 * 4096), memory, 0);
            ring.receiver().poll();
            Pages pages = new Pages(memory, new int[] {0, 2 * 4096 + 1}, 4096);
            assertThrows(IndexOutOfBoundsException.class, () -> ring.receiver().acceptScattered(pages, 0));
        }
    }

    @Test
    void readsThatFallShortGoOn() throws IOException {
        Spoiled[] reader = new Spoiled[1];
        try (RingPair ring = RingPair.make(OPTIONS, 0, real -> reader[0] = new Spoiled(real) {
            @Override
            long spoil(long address, long bytes) {
                return really(address, Math.min(bytes, 1 + calls * 777L));
            }
        })) {
            MemoryRegion out = memory(ring, LENGTH);
            MemoryRegion in = empty(ring, LENGTH);
            ring.sender().offer(header(LENGTH), out, 0);
            ring.receiver().poll();
            ring.receiver().accept(in, 0);
            receive(ring, 1);
            assertTrue(reader[0].calls > 10, reader[0].calls + " calls");
            assertEquals(-1, out.segment().mismatch(in.segment()));
        }
    }

    /** Results are negated error numbers of Linux. */
    @ParameterizedTest
    @ValueSource(longs = {-14, -1, -12, -38, 0, 1 << 20})
    void aReadThatFailsEndsTheConnectionAndSaysWhy(long result) throws IOException {
        Spoiled[] reader = new Spoiled[1];
        try (RingPair ring = RingPair.make(OPTIONS, 0, real -> reader[0] = new Spoiled(real) {
            @Override
            long spoil(long address, long bytes) {
                return calls == 1 ? really(address, bytes) : result;
            }
        })) {
            MemoryRegion out = memory(ring, LENGTH);
            MemoryRegion in = empty(ring, LENGTH);
            ring.sender().offer(header(LENGTH), out, 0);
            ring.receiver().poll();
            ring.receiver().accept(in, 0);
            ConnectionException end = Connected.failureOf(ring.receiver()::progress);
            assertEquals(2, reader[0].calls);
            assertFalse(end instanceof PeerClosedException);
            assertTrue(end.getMessage().contains("pid " + ProcessHandle.current().pid()), end.getMessage());
            assertTrue(end.getMessage().contains(SingleCopy.SETTING), end.getMessage());
            assertEquals(0, ring.receiver().framesCompleted());
            assertTrue(Connected.failureOf(ring.sender()::progress).getMessage().contains("lost"));
        }
    }

    @Test
    void aProcessThatIsGoneIsALostConnection() throws IOException {
        try (RingPair ring = RingPair.make(OPTIONS, 0, real -> new Spoiled(real) {
            @Override
            long spoil(long address, long bytes) {
                return -3; // ESRCH: no such process
            }
        })) {
            MemoryRegion memory = memory(ring, LENGTH);
            ring.sender().offer(header(LENGTH), memory, 0);
            ring.receiver().poll();
            ConnectionException end = assertThrows(ConnectionException.class, () -> ring.receiver().accept(memory, 0));
            assertTrue(end.getMessage().contains("lost"), end.getMessage());
        }
    }

    /**
     * The sender aborts while the receiver reads the sender's memory. The memory's content may change after the abort.
     */
    @Test
    void whatWasReadWhileTheSenderAbortedIsNotDelivered() throws IOException {
        RingPair[] pair = new RingPair[1];
        MemoryRegion[] out = new MemoryRegion[1];
        try (RingPair ring = RingPair.make(OPTIONS, 0, real -> new Spoiled(real) {
            @Override
            long spoil(long address, long bytes) {
                pair[0].sender().abort();
                out[0].segment().fill((byte) 0x55);
                return really(address, bytes);
            }
        })) {
            pair[0] = ring;
            out[0] = memory(ring, LEAST);
            MemoryRegion in = empty(ring, LEAST);
            ring.sender().offer(header(LEAST), out[0], 0);
            ring.receiver().poll();
            ConnectionException end = assertThrows(ConnectionException.class, () -> ring.receiver().accept(in, 0));
            assertEquals(0x55, in.segment().get(ValueLayout.JAVA_BYTE, 0), "it was too late");
            assertTrue(end.getMessage().contains("lost"), end.getMessage());
            assertEquals(0, ring.receiver().framesCompleted());
        }
    }

    @Test
    void anAbortIsSeenBeforeAnythingIsRead() throws IOException {
        try (RingPair ring = RingPair.make(OPTIONS, 0)) {
            MemoryRegion memory = memory(ring, LENGTH);
            ring.sender().offer(header(LENGTH), memory, 0);
            ring.sender().abort();
            ring.receiver().poll();
            assertTrue(assertThrows(ConnectionException.class, () -> ring.receiver().accept(memory, 0)).getMessage()
                    .contains("lost"));
        }
    }

    /**
     * The program reuses its memory after the sender's close, so a close copies all unread payloads. The close happens
     * before the first payload is read, or between two pieces of this payload.
     */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void payloadsThatNobodyHasReadArriveAfterTheSenderWent(boolean begun) throws IOException {
        try (RingPair ring = RingPair.make(OPTIONS, 0)) {
            MemoryRegion out = memory(ring, LENGTH);
            MemorySegment expected = arena.allocate(LENGTH).copyFrom(out.segment());
            MemoryRegion in = empty(ring, LENGTH);
            for (int i = 0; i < 3; i++) {
                ring.sender().offer(header(LENGTH), out, 0);
            }
            if (begun) {
                ring.receiver().poll();
                ring.receiver().accept(in, 0);
            }
            ring.sender().close();
            out.segment().fill((byte) 0x55);
            for (int i = 0; i < 3; i++) {
                if (!begun || i > 0) {
                    assertEquals(LENGTH, ring.receiver().poll().payloadBytes());
                    ring.receiver().accept(in, 0);
                }
                receive(ring, i + 1);
                assertEquals(-1, expected.mismatch(in.segment()), "payload " + i);
            }
            assertInstanceOf(PeerClosedException.class, Connected.failureOf(ring.receiver()::poll));
        }
    }

    /**
     * The sender copies a payload into the memory behind the ring, and changes its own memory while the receiver reads
     * the payload.
     */
    @Test
    void aPayloadThatIsMovedWhileItIsReadIsReadWhereItWent() throws IOException {
        RingPair[] pair = new RingPair[1];
        MemoryRegion[] out = new MemoryRegion[1];
        Spoiled[] reader = new Spoiled[1];
        try (RingPair ring = RingPair.make(OPTIONS, 0, real -> reader[0] = new Spoiled(real) {
            @Override
            long spoil(long address, long bytes) {
                if (calls == 2) {
                    pair[0].sender().settle();
                    assertEquals(1, pair[0].sender().framesCompleted());
                    out[0].segment().fill((byte) 0x55);
                }
                return really(address, bytes);
            }
        })) {
            pair[0] = ring;
            out[0] = memory(ring, LENGTH);
            MemorySegment expected = arena.allocate(LENGTH).copyFrom(out[0].segment());
            MemoryRegion in = empty(ring, LENGTH);
            ring.sender().offer(header(LENGTH), out[0], 0);
            ring.receiver().poll();
            ring.receiver().accept(in, 0);
            receive(ring, 1);
            assertEquals(2, reader[0].calls);
            assertEquals(-1, expected.mismatch(in.segment()));
            // The connection still works.
            ring.sender().offer(header(LENGTH), out[0], 0);
            ring.receiver().poll();
            ring.receiver().accept(in, 0);
            receive(ring, 2);
            assertEquals(-1, out[0].segment().mismatch(in.segment()));
            assertNull(ring.receiver().poll());
        }
    }

    /**
     * The memory behind the ring, to which a sender copies payloads, is reused. Otherwise a connection that often
     * copies payloads would need ever more memory.
     */
    @Test
    void theMemoryOfMovedPayloadsIsReusedWhenTheyAreRead() throws IOException {
        try (RingPair ring = RingPair.make(OPTIONS, 0)) {
            MemoryRegion out = memory(ring, LENGTH);
            MemoryRegion in = empty(ring, LENGTH);
            long[] places = new long[4];
            for (int frame = 0; frame < places.length; frame++) {
                ring.sender().offer(header(LENGTH), out, 0);
                ring.sender().settle();
                long line = RingLayout.DATA_OFFSET + frame * (FrameLayout.HEADER_BYTES + RingLayout.ALIGNMENT)
                        + FrameLayout.HEADER_BYTES;
                places[frame] = ring.ring().getLong(line + FrameLayout.MOVED_OFFSET);
                if (frame % 2 == 1) { // two payloads are unread when the receiver begins to read
                    for (int read = frame; read <= frame + 1; read++) {
                        ring.receiver().poll();
                        ring.receiver().accept(in, 0);
                        receive(ring, read);
                        assertEquals(-1, out.segment().mismatch(in.segment()));
                    }
                }
            }
            assertEquals(places[0] + LENGTH, places[1]);
            assertEquals(places[0], places[2]);
            assertEquals(places[1], places[3]);
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {-1, 1L << 40, Long.MAX_VALUE})
    void aPayloadThatWasMovedToWhereNothingIs(long place) throws IOException {
        try (RingPair ring = RingPair.make(OPTIONS, 0)) {
            MemoryRegion memory = memory(ring, LENGTH);
            ring.sender().offer(header(LENGTH), memory, 0);
            ring.ring().putLongRelease(RingLayout.DATA_OFFSET + 64 + FrameLayout.MOVED_OFFSET, place);
            ring.receiver().poll();
            assertTrue(assertThrows(ConnectionException.class, () -> ring.receiver().accept(memory, 0)).getMessage()
                    .contains("corrupted"));
        }
    }

    /**
     * Another process may write any address into a ring. The read of an invalid address fails, and the receiver reports
     * the failure.
     */
    @ParameterizedTest
    @ValueSource(longs = {0, -1, 1L << 47, Long.MIN_VALUE})
    void anAddressThatIsNone(long address) throws IOException {
        try (RingPair ring = RingPair.make(OPTIONS, 0)) {
            MemoryRegion memory = memory(ring, LENGTH);
            ring.sender().offer(header(LENGTH), memory, 0);
            ring.ring().putLong(RingLayout.DATA_OFFSET + 64, address);
            ring.receiver().poll();
            assertTrue(assertThrows(ConnectionException.class, () -> ring.receiver().accept(memory, 0)).getMessage()
                    .contains("EFAULT"));
        }
    }

    @Test
    void aShortPayloadThatWasLeftInPlaceIsCorruption() throws IOException {
        try (RingPair ring = RingPair.make(OPTIONS, 0)) {
            MemoryRegion memory = memory(ring, LENGTH);
            ring.sender().offer(header(LEAST), memory, 0);
            ring.ring().putLong(RingLayout.DATA_OFFSET + 8, LEAST - 1 | 1L << 62);
            assertTrue(assertThrows(ConnectionException.class, () -> ring.receiver().poll()).getMessage()
                    .contains("corrupted"));
        }
    }

    @Test
    void nothingIsLeftInPlaceWhereEitherSideDoesNotWantIt() throws IOException {
        ShmOptions off = OPTIONS.withSingleCopy(new SingleCopy(SingleCopy.Use.OFF, LEAST));
        try (RingPair ring = RingPair.make(off, 0)) {
            MemoryRegion memory = memory(ring, 2 * LEAST);
            ring.sender().offer(header(LEAST), memory, 0);
            assertEquals(1, ring.sender().framesCompleted());
            assertTrue(ring.receiver().storesWholeWords(1 << 20));
        }
        try (RingPair ring = RingPair.make(OPTIONS, 0)) {
            assertTrue(ring.receiver().storesWholeWords(LEAST - 1));
            assertFalse(ring.receiver().storesWholeWords(LEAST), "the kernel stores them as it likes");
        }
    }
}
