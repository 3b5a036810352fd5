package org.millrace.net.link;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;

@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class FaultyNetworkTest {

    private static final int BYTES = 100;

    private final Arena arena = Arena.ofShared();
    private final SocketNetwork sound = new SocketNetwork(SocketOptions.defaults());
    private final MemoryRegion in = sound.register(arena.allocate(BYTES));
    private FaultyNetwork faulty;
    private MemoryRegion out;

    private Connected connect(String faults) {
        return connect(faults, SocketOptions.defaults());
    }

    private Connected connect(String faults, SocketOptions options) {
        faulty = new FaultyNetwork(new SocketNetwork(options), Fault.parse(faults));
        out = faulty.register(arena.allocate(BYTES));
        out.segment().fill((byte) 0x55);
        return Connected.make(faulty, sound);
    }

    @AfterEach
    void close() {
        faulty.close();
        sound.close();
        arena.close();
    }

    /** Sends a frame. Returns the index of the first wrong bit of its payload; -1 if all bits are right. */
    private long wrongBit(Connected ends, long number) {
        long done = ends.receiver().framesCompleted() + 1;
        assertTrue(ends.sender().offer(header(number), out, 0));
        assertEquals(number, ends.nextHeader().word(0));
        ends.receiver().accept(in, 0);
        ends.until(() -> ends.receiver().framesCompleted() == done);
        long at = MemorySegment.mismatch(out.segment(), 0, BYTES, in.segment(), 0, BYTES);
        return at < 0 ? -1 : at * 8 + Integer.numberOfTrailingZeros(0x55 ^ in.segment().get(ValueLayout.JAVA_BYTE, at));
    }

    private static FrameHeader header(long number) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(BYTES);
        header.word(0, number);
        return header;
    }

    @Test
    void flipInvertsOneBitOnceAndNotTheSendersMemory() {
        try (Connected ends = connect("flip:frame=2,bit=795")) {
            assertEquals(-1, wrongBit(ends, 1));
            assertEquals(0, faulty.faultsInjected());
            assertEquals(795, wrongBit(ends, 2));
            assertEquals(-1, wrongBit(ends, 3));
            assertEquals(1, faulty.faultsInjected());
            assertEquals(0x55, out.segment().get(ValueLayout.JAVA_BYTE, 99));
        }
    }

    @Test
    void flipPassesOverPayloadsThatHaveNoSuchBit() {
        try (Connected ends = connect("flip:frame=1,bit=800")) {
            assertEquals(-1, wrongBit(ends, 1));
            assertEquals(0, faulty.faultsInjected());
        }
    }

    @Test
    void garbageReplacesTheWordsAndNotThePayload() {
        try (Connected ends = connect("garbage:frame=1")) {
            ends.sender().offer(header(1), out, 0);
            FrameHeader header = ends.nextHeader();
            assertNotEquals(1, header.word(0));
            assertEquals(BYTES, header.payloadBytes());
            assertEquals(1, faulty.faultsInjected());
        }
    }

    @Test
    void cutLosesTheConnectionAfterTheFrame() {
        try (Connected ends = connect("cut:frame=2")) {
            assertEquals(-1, wrongBit(ends, 1));
            ends.sender().offer(header(2), out, 0);
            ConnectionException here = Connected.failureOf(ends.sender()::progress);
            assertTrue(here.getMessage().contains("cut on purpose"), here.getMessage());
            assertThrows(ConnectionException.class, ends.sender()::progress);
            while (ends.receiver().poll() == null) {
                Thread.onSpinWait();
            }
            ends.receiver().accept(in, 0);
            ConnectionException there = Connected.failureOf(ends.receiver()::poll);
            assertFalse(there instanceof PeerClosedException, there.getMessage());
            assertEquals(2, ends.receiver().framesCompleted());
            assertEquals(1, faulty.faultsInjected());
        }
    }

    @Test
    void cuttingRailsLosesNothing() {
        SocketOptions twoRails = SocketOptions.defaults()
                .withRails(List.of(InetAddress.ofLiteral("127.0.0.1"), InetAddress.ofLiteral("127.0.0.2")));
        try (Connected ends = connect("cut:frame=2,rail=1;cut:frame=4,rail=0", twoRails)) {
            assertEquals(-1, wrongBit(ends, 1));
            assertEquals(0, faulty.faultsInjected());
            assertEquals(-1, wrongBit(ends, 2));
            assertEquals(1, faulty.faultsInjected());
            assertEquals(-1, wrongBit(ends, 3));
            assertEquals(-1, wrongBit(ends, 4));
            assertEquals(2, faulty.faultsInjected());
            assertEquals(-1, wrongBit(ends, 5));
        }
    }

    @Test
    void aRailThatAConnectionHasNotIsNotCut() {
        try (Connected ends = connect("cut:frame=1,rail=1")) {
            assertEquals(-1, wrongBit(ends, 1));
            assertEquals(0, faulty.faultsInjected());
        }
    }

    @Test
    void delayHoldsAFrameBackForSoManyPolls() {
        try (Connected ends = connect("delay:frame=1,polls=1000")) {
            assertTrue(ends.sender().offer(header(1), out, 0));
            assertFalse(ends.sender().offer(header(2), out, 0));
            for (int i = 0; i < 999; i++) {
                ends.sender().progress();
                assertNull(ends.receiver().poll());
            }
            assertEquals(1, ends.nextHeader().word(0));
            assertEquals(1, faulty.faultsInjected());
        }
    }

    @Test
    void aFaultMayConcernOneConnectionOnly() {
        try (Connected first = connect("garbage:frame=1,connection=2");
                Connected second = Connected.make(faulty, sound)) {
            first.sender().offer(header(1), out, 0);
            assertEquals(1, first.nextHeader().word(0));
            second.sender().offer(header(1), out, 0);
            assertNotEquals(1, second.nextHeader().word(0));
        }
    }
}
