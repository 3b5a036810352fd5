package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.BitSet;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.OpenResources;

/** A peer that knows the secret, and sends pieces or acknowledgements that no Millrace end would send. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HostilePiecesTest {

    private static final int PIECE = 4096;
    private static final int WINDOW = 4;
    private static final Pieces PIECES = Pieces.of(2 * PIECE, WINDOW);

    private final Arena arena = Arena.ofShared();
    private final OpenResources open = new OpenResources("network under test");
    private final MemoryRegion memory = SocketRegion.register(open, arena.allocate(16 * PIECE), new BitSet());
    private final SocketChannel[] peer = new SocketChannel[2];
    private final SocketChannel[] ours = new SocketChannel[2];
    private final Rail[] rails = {new Rail(0, "first"), new Rail(1, "second")};
    private SocketReceiver receiver;

    @BeforeEach
    void connect() throws IOException {
        for (int i = 0; i < 2; i++) {
            SocketChannel[] pair = RelayedRails.pair();
            peer[i] = pair[0];
            ours[i] = pair[1];
        }
        receiver =
                new SocketReceiver(new StreamSet(open, "connection under test", "the peer", ours, null), rails, PIECES);
    }

    @AfterEach
    void close() {
        receiver.close();
        Arrays.asList(peer).forEach(ConnectionState::closeQuietly);
        open.close();
        arena.close();
    }

    private static ByteBuffer piece(int payload, long frame, int offset, int length) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(payload);
        ByteBuffer bytes = ByteBuffer.allocate(PieceFormat.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        PieceFormat.encode(HeaderFormat.TYPE_PIECE, header, frame, offset, length, bytes, 0);
        return bytes;
    }

    private void send(int rail, ByteBuffer bytes) throws IOException {
        while (bytes.hasRemaining()) {
            peer[rail].write(bytes);
        }
    }

    private void assertRefused(String problem) {
        ConnectionException end = Connected.failureOf(() -> assertNull(receiver.poll()));
        assertTrue(end.getMessage().contains("connection under test: received bytes that are not a frame")
                && end.getMessage().contains(problem), end.getMessage());
        assertEquals(end, Connected.failureOf(receiver::progress));
        assertFalse(ours[0].isOpen() || ours[1].isOpen());
        for (long i = 0; i < memory.segment().byteSize(); i++) {
            assertEquals(0, memory.segment().get(ValueLayout.JAVA_BYTE, i));
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"10000|0|-4096|4096|at -4096", "10000|0|12288|4096|at 12288", "10000|0|4095|4096|at 4095",
                    "10000|0|4096|4095|of 4095 bytes", "10000|0|8192|4096|of 4096 bytes at 8192",
                    "4096|0|4096|0|at 4096", "0|0|0|1|of 1 bytes", "10000|0|0|-1|of -1 bytes",
                    "10000|4|0|4096|of frame 4, but those under way are 0 to 3", "10000|-1|0|4096|of frame -1",
                    "10000|9223372036854775807|0|4096|of frame 9223372036854775807",
                    "10000|0|2147479552|4096|at 2147479552"})
    void aPieceThatCannotBeIsRefused(int payload, long frame, int offset, int length, String problem)
            throws IOException {
        send(1, piece(payload, frame, offset, length));
        assertRefused(problem);
    }

    @Test
    void piecesThatContradictEachOtherAreRefused() throws IOException {
        send(0, piece(10_000, 0, 0, PIECE));
        while (receiver.poll() == null) {
            Thread.onSpinWait();
        }
        send(1, piece(9_999, 0, PIECE, PIECE));
        ConnectionException end = Connected.failureOf(receiver::progress);
        assertTrue(end.getMessage().contains("9999 bytes, an earlier one of frame 0 stated 10000")
                && end.getMessage().contains("rail 1 (second)"), end.getMessage());
    }

    @Test
    void aHeaderOfAnotherKindIsRefused() throws IOException {
        send(0, piece(10_000, 0, 0, PIECE).putInt(4, 1));
        assertRefused("type and flags are 2 to 6, but 0x00000001");
    }

    @Test
    void aPayloadOfMoreThanIsAllowedIsRefused() throws IOException {
        ByteBuffer bytes = piece(10_000, 0, 0, PIECE);
        bytes.putLong(8, 1L << 32);
        send(0, bytes);
        assertRefused("a header states 4294967296");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {"-1|a shutdown message after -1 frames",
                    "5|a shutdown message after 5 frames, where 0 have a destination and 4 may be under way"})
    void aShutdownThatCannotBeIsRefused(long total, String problem) throws IOException {
        ByteBuffer bytes = ByteBuffer.allocate(PieceFormat.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        PieceFormat.encodeShutdown(total, null, bytes, 0);
        send(0, bytes);
        assertRefused(problem);
    }

    @Test
    void aPieceThatComesTwiceIsWrittenOnce() throws IOException {
        ByteBuffer ones = ByteBuffer.allocate(PIECE);
        ByteBuffer twos = ByteBuffer.allocate(PIECE);
        java.util.Arrays.fill(ones.array(), (byte) 1);
        java.util.Arrays.fill(twos.array(), (byte) 2);
        send(0, piece(PIECE, 0, 0, PIECE));
        send(0, ones);
        while (receiver.poll() == null) {
            Thread.onSpinWait();
        }
        receiver.accept(memory, 0);
        while (receiver.framesCompleted() < 1) {
            receiver.progress();
        }
        send(1, piece(PIECE, 0, 0, PIECE));
        send(1, twos);
        ByteBuffer shutdown = ByteBuffer.allocate(PieceFormat.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        PieceFormat.encodeShutdown(1, null, shutdown, 0);
        send(1, shutdown);
        assertInstanceOf(PeerClosedException.class, Connected.failureOf(() -> assertNull(receiver.poll())));
        assertEquals(1, receiver.framesCompleted());
        assertEquals(1, memory.segment().get(ValueLayout.JAVA_BYTE, PIECE - 1));
    }

    @ParameterizedTest
    @CsvSource({"1, 0, 0, 0", "-1, 0, 0, 0", "0, 1, 0, 0", "0, -1, 0, 0", "0, 0, 1, 0", "0, 0, -1, 0", "0, 0, 0, 1"})
    void anAcknowledgementOfWhatWasNeverSentEndsTheConnection(long pieces, long accepted, long whole, int magic)
            throws IOException {
        SocketSender sender = new SocketSender(new StreamSet(open, "sender under test", "the peer", ours, null), rails,
                PIECES, System::nanoTime);
        ByteBuffer ack = ByteBuffer.allocate(PieceFormat.Ack.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        PieceFormat.Ack.encode(PieceFormat.Ack.TYPE_ACK, pieces, accepted, whole, ack, 0);
        ack.putInt(0, ack.getInt(0) + magic);
        send(1, ack);
        ConnectionException end = Connected.failureOf(sender::progress);
        assertTrue(end.getMessage().contains("never sent") && end.getMessage().contains("rail 1 (second)"),
                end.getMessage());
    }
}
