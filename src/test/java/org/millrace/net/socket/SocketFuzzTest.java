package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.function.Predicate;
import java.util.function.ToIntFunction;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.fuzz.Fuzz;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.OpenResources;

/** Mutated data over TCP: hellos of strangers and of members, frames, pieces. */
@Tag("slow")
class SocketFuzzTest {

    private static final int WINDOW = 4;
    private static final int DATA = 16 << 10;
    private static final byte GUARD = 0x77;
    private static final int PASSES = 24;

    @TempDir
    Path directory;

    private static byte[] join(byte[]... parts) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (byte[] part : parts) {
            all.writeBytes(part);
        }
        return all.toByteArray();
    }

    /** Strangers without the secret are never accepted as the peer. Afterwards the peer can still connect. */
    @Test
    void strangersAtADataPort() throws Exception {
        SocketOptions options = SocketOptions.defaults().withAddresses("lo", null, null);
        try (SocketNetwork network = new SocketNetwork(options); Listener listener = network.listen()) {
            ConnectionKey key = Connected.newKey();
            SocketAccept expected = (SocketAccept) listener.expect(key);
            byte[] guess = new byte[16];
            InetSocketAddress address = AddressFormat.SOCKET.decode(listener.address());
            List<byte[]> recorded = List.of(
                    join(new StreamHello(1000, 1, 0, 1, 0, 1, 16).encode(guess, key, null).array(),
                            RawPeer.header(0, 0).array()),
                    new StreamHello(1000, 1, 0, 1, 0, 1, 16).encode(guess, key, null).array(),
                    new StreamHello(1, 0, 0, 0, 0, 1, 16).encode(guess, key, null).array());
            Fuzz.run("strangers at a data port", 1_000, recorded, input -> {
                try (SocketChannel stranger = SocketChannel.open(address)) {
                    stranger.setOption(StandardSocketOptions.SO_LINGER, 0);
                    stranger.write(ByteBuffer.wrap(input));
                    for (int pass = 0; pass < 3; pass++) {
                        assertNull(expected.poll(), "a stranger was let in");
                        assertFalse(expected.isAnswered(), "a stranger was let in, if it says that it knows");
                    }
                } catch (IOException reset) {
                    assertNotNull(reset.getMessage());
                }
            });
            byte[] secret = AddressFormat.secret(listener.address());
            try (SocketChannel peer = SocketChannel.open(address)) {
                peer.write(new StreamHello(1000, 1, 0, 1, 0, 1, 16).encode(secret, key, null));
                RawPeer.accepted(expected, Channels.newOutputStream(peer)).close();
            }
        }
    }

    private interface Receivers {
        FrameReceiver of(StreamSet streams);
    }

    /**
     * Adds payloads to an input that consists only of headers. Inputs have no payloads, so that each mutation changes a
     * header. The payload has the length in its header, or is empty if this length is invalid.
     */
    private static byte[] withPayloads(byte[] headers, int headerBytes, ToIntFunction<ByteBuffer> length) {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        for (int at = 0; at < headers.length; at += headerBytes) {
            byte[] header = Arrays.copyOfRange(headers, at, Math.min(at + headerBytes, headers.length));
            all.writeBytes(header);
            if (header.length == headerBytes) {
                int bytes = length.applyAsInt(ByteBuffer.wrap(header).order(ByteOrder.LITTLE_ENDIAN));
                all.writeBytes(new byte[bytes < 0 || bytes > DATA ? 0 : bytes]);
            }
        }
        return all.toByteArray();
    }

    /**
     * @param mayBegin tests whether a stream may begin with a given header; an input that begins with another header
     *                 must be refused
     */
    private void receive(List<byte[]> recorded, String surface, int headerBytes, ToIntFunction<ByteBuffer> lengthAt,
            Predicate<ByteBuffer> mayBegin, Receivers receivers) throws Exception {
        try (ServerSocketChannel server = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
            UnixDomainSocketAddress path = UnixDomainSocketAddress.of(directory.resolve("pair"));
            server.bind(path);
            Fuzz.run(surface, 3_000, recorded, input -> {
                OpenResources open = new OpenResources("network under test");
                try (SocketChannel peer = SocketChannel.open(path);
                        SocketChannel ours = server.accept();
                        Arena arena = Arena.ofConfined()) {
                    ours.configureBlocking(false);
                    MemorySegment guarded = arena.allocate(3 * DATA, 64).fill(GUARD);
                    MemoryRegion memory = SocketRegion.register(open, guarded.asSlice(DATA, DATA), new BitSet());
                    FrameReceiver receiver = receivers
                            .of(new StreamSet(open, "under test", "the peer", new SocketChannel[] {ours}, null));
                    peer.configureBlocking(false);
                    peer.write(ByteBuffer.wrap(withPayloads(input, headerBytes, lengthAt)));
                    peer.shutdownOutput();
                    String end = take(receiver, memory);
                    assertTrue(end.contains("are not a frame") || input.length < headerBytes
                            || mayBegin.test(ByteBuffer.wrap(input).order(ByteOrder.LITTLE_ENDIAN)), end);
                    for (int at = 0; at < DATA; at += 8) {
                        assertEquals(0x7777777777777777L, guarded.get(ValueLayout.JAVA_LONG, at), "before");
                        assertEquals(0x7777777777777777L, guarded.get(ValueLayout.JAVA_LONG, 2L * DATA + at), "behind");
                    }
                    receiver.close();
                }
                open.close();
            });
        }
    }

    /** Receives frames from the arrived data. Returns a text about the outcome. */
    private static String take(FrameReceiver receiver, MemoryRegion memory) {
        try {
            for (int pass = 0; pass < PASSES; pass++) {
                FrameHeader header = receiver.poll();
                if (header != null) {
                    assertTrue(header.payloadBytes() <= HeaderFormat.MAX_PAYLOAD_BYTES, "no frame is so long");
                    if (header.payloadBytes() > DATA) {
                        assertThrows(IndexOutOfBoundsException.class, () -> receiver.accept(memory, 0));
                        return "longer than the destination";
                    }
                    receiver.accept(memory, 0);
                }
                receiver.progress();
            }
            return "open";
        } catch (ConnectionException refused) {
            assertTrue(refused.getMessage().contains("under test"), refused.getMessage());
            return refused.getMessage();
        }
    }

    @Test
    void frames() throws Exception {
        List<byte[]> recorded = List.of(
                join(RawPeer.header(0, 0).array(), RawPeer.header(1, 24).array(), RawPeer.header(2, 8192).array(),
                        RawPeer.shutdown(3)),
                join(RawPeer.header(0, DATA).array(), RawPeer.shutdown(1)), RawPeer.header(0, 100).array(),
                RawPeer.header(0, 2 * DATA).array());
        Pieces pieces = Pieces.whole(WINDOW);
        receive(recorded, "frames", RecordedPieces.HEADER_BYTES, RecordedPieces::length,
                header -> RecordedPieces.mayBegin(header, pieces, pieces.window()),
                streams -> new SocketReceiver(streams, new Rail[] {new Rail(0, "first")}, pieces));
    }

    @Test
    void pieces() throws Exception {
        Pieces pieces = Pieces.of(8192, WINDOW);
        List<byte[]> recorded = RecordedPieces.of(pieces);
        Rail[] rails = {new Rail(0, "first")};
        receive(recorded, "pieces", RecordedPieces.HEADER_BYTES, RecordedPieces::length,
                header -> RecordedPieces.mayBegin(header, pieces, WINDOW),
                streams -> new SocketReceiver(streams, rails, pieces));
    }
}
