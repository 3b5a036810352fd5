package org.millrace.bootstrap;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProtocolException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Objects;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;
import org.millrace.bootstrap.Message.Received;
import org.millrace.bootstrap.Message.Recovery;
import org.millrace.net.ConnectionKey;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.TcpStreams;
import org.millrace.net.connection.TlsChannel;
import org.millrace.net.socket.Reconnector;
import org.millrace.net.socket.StreamRecovery;

/**
 * Non-blocking connection that carries the messages of the control plane. Between hosts, the connection may lose its
 * TCP stream and continue over a new stream. On a new stream, each side first sends the number of whole frames that it
 * has received. Used by one thread at a time.
 */
final class ControlConnection {

    /** Handler of received messages. */
    @FunctionalInterface
    interface Receiver {
        void receive(Message message) throws IOException;
    }

    /**
     * Number of unacknowledged frames after which this side sends an acknowledgement. This side also sends an
     * acknowledgement after {@code BYTES_UNTOLD} unacknowledged bytes.
     */
    private static final int FRAMES_UNTOLD = 64;
    private static final int BYTES_UNTOLD = 256 << 10;

    private final Selector selector;
    private SocketChannel channel;
    private SelectionKey key;
    private final String remote;
    private final InetAddress local;
    private final InetAddress source;
    private final ArrayDeque<ByteBuffer> outgoing = new ArrayDeque<>();
    private final ByteBuffer header = ByteBuffer.allocate(MessageCodec.HEADER_BYTES);
    private @Nullable ByteBuffer body;
    private int bodyLimit = MessageCodec.MAX_BODY_BEFORE_PROOF;
    /** Computes the authentication codes of the frames that this side sends; null until the handshake is complete. */
    private @Nullable FrameSeal outgoingSeal;
    private @Nullable FrameSeal incomingSeal;
    /** Identity of the peer; null until the peer has proved that it knows the secret. */
    private @Nullable RankIdentity peer;
    private boolean finishing;
    private boolean closed;
    /**
     * Sealed frames that the peer has not acknowledged, oldest first; null if the connection does not recover from a
     * lost stream.
     */
    private @Nullable ArrayDeque<ByteBuffer> kept;
    /** Number of the oldest frame in {@link #kept}. Frames are counted from 0 since the handshake. */
    private long firstKept;
    private long toldFrames;
    private int untoldBytes;
    /** Recovers a lost stream; null until the peer offers recovery, and always null without recovery. */
    private @Nullable StreamRecovery recovery;
    private Reconnector.@Nullable Outage outage;
    /**
     * Whether the connection cannot carry messages now. The connection then has no stream, or the peer has not yet sent
     * the number of received frames on the new stream.
     */
    private boolean isLost;
    private final ByteBuffer resumedFrom = ByteBuffer.allocate(Long.BYTES);

    /** Creates a connection over a connected channel. The connection owns the channel and closes it. */
    ControlConnection(SocketChannel channel, Selector selector) throws IOException {
        this.selector = selector;
        this.channel = channel;
        InetSocketAddress from = (InetSocketAddress) channel.getRemoteAddress();
        this.source = from.getAddress();
        this.remote = from.toString().replaceFirst("^[^/]*/", "");
        this.local = ((InetSocketAddress) channel.getLocalAddress()).getAddress();
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        TcpStreams.keepAlive(channel);
        this.key = register();
    }

    private SelectionKey register() throws IOException {
        return TlsChannel.selectable(channel).register(selector, SelectionKey.OP_READ);
    }

    InetAddress local() {
        return local;
    }

    /** Returns the peer's address. */
    InetAddress source() {
        return source;
    }

    /** Returns whether the peer has proved before TLS that it knows the secret. */
    boolean knowsSecret() {
        return channel instanceof TlsChannel tls && tls.isChallengePassed();
    }

    /** Returns whether the next received bytes belong to a TLS handshake. */
    boolean makesTlsHandshake() {
        return knowsSecret() && !mayWrite();
    }

    void attach(Object owner) {
        key.attach(owner);
    }

    /** Returns the peer's address and port. */
    String remote() {
        return remote;
    }

    /**
     * Trusts the peer, which has proved that it knows the secret. The peer may then send long messages, and its stated
     * identity is accepted.
     */
    void trust(RankIdentity who) {
        bodyLimit = MessageCodec.MAX_BODY;
        peer = who;
        TcpStreams.watch(channel, who.toString(), who.host());
    }

    /** Appends an authentication code to each frame that is sent from now on. */
    void sealOutgoing(FrameSeal seal) {
        outgoingSeal = seal;
    }

    /** Requires an authentication code after each frame that is received from now on. */
    void sealIncoming(FrameSeal seal) {
        incomingSeal = seal;
    }

    boolean isOpen() {
        return !closed;
    }

    /** Returns whether the peer is on another host. An interrupted network can end the stream only in this case. */
    boolean leavesHost() {
        return !local.equals(source);
    }

    /**
     * Sends the offer to recover lost streams of this connection, and keeps sent frames until the peer acknowledges
     * them. Rank 0 sends its offer first, and the peer answers with its own offer.
     */
    void offerRecovery(Reconnector by) {
        kept = new ArrayDeque<>();
        firstKept = Objects.requireNonNull(outgoingSeal).frames();
        send(MessageCodec.encode(new Recovery(by.offer())));
    }

    /**
     * Sets up the recovery of lost streams. Called when the peer's offer has arrived.
     *
     * @param key     rank 0's nonce, which identifies the connection on both sides
     * @param accepts whether the peer connects the new streams, and this side accepts them
     * @param offer   offer of the peer
     */
    void recoverBy(Reconnector by, byte[] key, boolean accepts, byte[] offer) throws IOException {
        ByteBuffer words = ByteBuffer.wrap(key);
        recovery = StreamRecovery.of(by, new ConnectionKey(words.getLong(), words.getLong()), accepts, offer, channel,
                selector::wakeup);
        outage = new Reconnector.Outage("control connection with " + peer, String.valueOf(peer));
    }

    void neverRecover() {
        kept = null;
    }

    /**
     * Handles the loss of the stream. Returns whether a new stream will replace it. An orderly close means that the
     * peer's process has ended, so the stream is not replaced.
     */
    boolean recovers(IOException why) {
        StreamRecovery by = recovery;
        if (by == null || closed || by.end() != null || why instanceof EOFException || why instanceof ProtocolException
                || why instanceof SSLException) {
            return false;
        }
        Objects.requireNonNull(outage).begins("its stream", String.valueOf(why.getMessage()), null, -1);
        dropStream();
        by.lost(0, true);
        return true;
    }

    private void dropStream() {
        isLost = true;
        outgoing.clear();
        header.clear();
        body = null;
        resumedFrom.clear();
        ConnectionState.closeQuietly(channel);
    }

    /**
     * Continues over a new stream, if the recovery has made a new stream.
     *
     * @throws IOException if the stream cannot be recovered, or the received data violates the protocol
     */
    void recover(Receiver receiver) throws IOException {
        StreamRecovery by = recovery;
        if (by == null || !by.hasNews()) {
            return;
        }
        by.readNews();
        if (by.isLostThere(0) && channel.isOpen()) {
            recovers(new IOException("the peer has lost it"));
        }
        StreamRecovery.Successor next = by.take(0);
        if (next != null) {
            Object owner = key.attachment();
            dropStream();
            channel = next.channel();
            key = register();
            key.attach(owner);
            trust(Objects.requireNonNull(peer));
            ByteBuffer answer = next.answer() == null ? ByteBuffer.allocate(0) : next.answer();
            outgoing.add(answer);
            outgoing.add(ByteBuffer.allocate(Long.BYTES).putLong(0, Objects.requireNonNull(incomingSeal).frames()));
            key.interestOpsOr(SelectionKey.OP_WRITE);
            serve(receiver);
        } else if (by.end() != null && !channel.isOpen()) {
            throw new IOException(by.end());
        }
    }

    /**
     * Queues all frames that the peer lacks. They are sent over the new stream.
     *
     * @param from number of frames that the peer has received
     */
    private void resume(long from) throws ProtocolException {
        received(from);
        if (from != firstKept) {
            throw new ProtocolException("lacks messages that it has acknowledged");
        }
        isLost = false;
        Objects.requireNonNull(kept).forEach(frame -> outgoing.add(frame.duplicate()));
        key.interestOpsOr(SelectionKey.OP_WRITE);
        Objects.requireNonNull(outage).ended("its stream");
    }

    private void received(long frames) throws ProtocolException {
        ArrayDeque<ByteBuffer> sent = kept;
        if (sent == null || frames > firstKept + sent.size()) {
            throw new ProtocolException("states that it has " + frames + " messages of this side, which sent fewer");
        }
        for (; firstKept < frames; firstKept++) {
            sent.remove();
        }
    }

    /**
     * Counts a received frame. After enough frames or bytes, sends an acknowledgement, so that the peer can drop the
     * acknowledged frames.
     *
     * @param bytes length of the frame's body
     */
    private void tellReceived(int bytes) {
        untoldBytes += bytes;
        long frames = Objects.requireNonNull(incomingSeal).frames();
        if (frames - toldFrames >= FRAMES_UNTOLD || untoldBytes >= BYTES_UNTOLD) {
            toldFrames = frames;
            untoldBytes = 0;
            send(MessageCodec.encode(new Received(frames)));
        }
    }

    /**
     * Queues a frame. The frame is written when the selector reports the channel as writable. Does nothing after
     * {@link #finish()} or {@link #close()}.
     */
    void send(ByteBuffer frame) {
        if (isOpen() && !finishing) {
            ByteBuffer whole = outgoingSeal == null ? frame.duplicate() : outgoingSeal.sealed(frame);
            if (kept != null) {
                kept.add(whole.duplicate());
            }
            if (!isLost) {
                outgoing.add(whole);
                key.interestOpsOr(SelectionKey.OP_WRITE);
            }
        }
    }

    /**
     * Ends this side's sending. The output is shut down once all queued frames are written. Data that the peer sends
     * before it closes can still be received.
     */
    void finish() {
        if (isOpen() && !finishing) {
            finishing = true;
            if (!isLost) {
                key.interestOpsOr(SelectionKey.OP_WRITE);
            }
        }
    }

    /**
     * Writes as much as the channel accepts, and passes each complete received message to the receiver.
     *
     * @throws EOFException if the peer has shut its output down
     * @throws IOException  if the connection is lost, or the received data violates the protocol
     *                      ({@link ProtocolException})
     */
    void serve(Receiver receiver) throws IOException {
        IOException unwritable = null;
        if (key.isWritable()) {
            try {
                write();
            } catch (IOException e) {
                // The exception of the write is thrown after the read, because the peer may have sent messages before
                // it closed the connection.
                unwritable = e;
            }
        }
        try {
            Message message;
            while (isOpen() && (message = next()) != null) {
                receiver.receive(message);
            }
        } catch (EOFException e) {
            // The operating system reports a reset only once. If the write received the report, the read sees only the
            // end of the stream, so the exception of the write is thrown.
            throw unwritable == null ? e : unwritable;
        }
        if (unwritable != null && isOpen()) {
            throw unwritable;
        }
        if (!outgoing.isEmpty() && isOpen() && mayWrite()) {
            key.interestOpsOr(SelectionKey.OP_WRITE);
        }
    }

    /**
     * Returns whether this side may write. Under TLS, messages wait until the handshake is complete. The handshake may
     * have to read before it can write.
     */
    private boolean mayWrite() {
        return !(channel instanceof TlsChannel tls) || tls.isEstablished();
    }

    private void write() throws IOException {
        while (!outgoing.isEmpty()) {
            channel.write(outgoing.peek());
            if (outgoing.peek().hasRemaining()) {
                if (!mayWrite()) {
                    key.interestOpsAnd(~SelectionKey.OP_WRITE);
                }
                return;
            }
            outgoing.poll();
        }
        key.interestOpsAnd(~SelectionKey.OP_WRITE);
        if (finishing && !isLost) {
            channel.shutdownOutput();
        }
    }

    /**
     * Returns the next message for the owner; null if no complete message has arrived. Handles acknowledgements itself.
     */
    private @Nullable Message next() throws IOException {
        Message message = nextOfAll();
        while (message instanceof Received told) {
            received(told.frames());
            message = nextOfAll();
        }
        return message;
    }

    private @Nullable Message nextOfAll() throws IOException {
        if (isLost) {
            if (!filled(resumedFrom)) {
                return null;
            }
            resume(resumedFrom.getLong(0));
        }
        if (body == null) {
            if (!filled(header)) {
                return null;
            }
            body = ByteBuffer.allocate(
                    MessageCodec.bodyLength(header, bodyLimit) + (incomingSeal == null ? 0 : FrameSeal.BYTES));
        }
        if (!filled(body)) {
            return null;
        }
        body.flip();
        if (incomingSeal != null) {
            open(incomingSeal, body);
        }
        Message message = MessageCodec.decode(header, body);
        int bytes = body.limit();
        header.clear();
        body = null;
        if (recovery != null) {
            tellReceived(bytes);
        }
        return message;
    }

    private void open(FrameSeal seal, ByteBuffer sealed) throws ProtocolException {
        byte[] code = new byte[FrameSeal.BYTES];
        int length = sealed.limit() - FrameSeal.BYTES;
        sealed.get(length, code).limit(length);
        if (!seal.fits(header.duplicate().rewind(), sealed.duplicate(), code)) {
            throw new ProtocolException("sent a message whose authentication code is wrong: the network changed, "
                    + "omitted or repeated it");
        }
    }

    private boolean filled(ByteBuffer buffer) throws IOException {
        while (buffer.hasRemaining()) {
            int count = channel.read(buffer);
            if (count < 0) {
                if (buffer == header && header.position() > 0) {
                    MessageCodec.bodyLength(header, bodyLimit); // throws if these bytes show another protocol
                }
                throw new EOFException("it closed its connection without a shutdown message");
            }
            if (count == 0) {
                return false;
            }
        }
        return true;
    }

    void close() {
        closed = true;
        if (recovery != null && outage != null) {
            recovery.close(finishing);
            outage.over();
        }
        try {
            channel.close();
        } catch (IOException e) {
            // An error needs no report, because the connection is no longer used. Queued frames are discarded.
            outgoing.clear();
        }
    }
}
