package org.millrace.engine.bootstrap;

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
import org.millrace.engine.bootstrap.Message.Received;
import org.millrace.engine.bootstrap.Message.Recovery;
import org.millrace.net.ConnectionKey;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.TcpStreams;
import org.millrace.net.connection.TlsChannel;
import org.millrace.net.socket.Reconnector;
import org.millrace.net.socket.StreamRecovery;

/**
 * One connection that carries messages and never blocks. Between hosts it may lose its stream, and goes on where it was
 * over another one: each side says first how many whole frames of the other it has. Used by one thread at a time.
 */
final class ControlConnection {

    /** What to do with a message. */
    @FunctionalInterface
    interface Receiver {
        void receive(Message message) throws IOException;
    }

    /** Frames or bytes of the other side that have come, after which it is told. */
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
    /** From the handshake on; null before. */
    private @Nullable FrameSeal outgoingSeal;
    private @Nullable FrameSeal incomingSeal;
    /** Once it is known. */
    private @Nullable RankIdentity peer;
    private boolean finishing;
    private boolean closed;
    /** Sealed frames that the other side may not have; null if no stream takes a lost one's place. */
    private @Nullable ArrayDeque<ByteBuffer> kept;
    /** The number of the first of those. */
    private long firstKept;
    private long toldFrames;
    private int untoldBytes;
    /** Makes a lost stream again; null if nobody does. */
    private @Nullable StreamRecovery recovery;
    private Reconnector.@Nullable Outage outage;
    /** There is no stream, or one of which it is not known yet from where on to send. */
    private boolean isLost;
    private final ByteBuffer resumedFrom = ByteBuffer.allocate(Long.BYTES);

    /** Takes over a connected channel, which this closes. */
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

    /** The address that it came from. */
    InetAddress source() {
        return source;
    }

    /** Whether the other end has shown that it knows the secret before TLS began. */
    boolean knowsSecret() {
        return channel instanceof TlsChannel tls && tls.isChallengePassed();
    }

    /** Whether what it says next belongs to a handshake of TLS. */
    boolean makesTlsHandshake() {
        return knowsSecret() && !mayWrite();
    }

    /** Lets the selector's keys lead to the owner of the connection. */
    void attach(Object owner) {
        key.attach(owner);
    }

    /** The other end's address and port. */
    String remote() {
        return remote;
    }

    /** The other end has shown that it knows the secret: it may send long messages, and has the name that it says. */
    void trust(RankIdentity who) {
        bodyLimit = MessageCodec.MAX_BODY;
        peer = who;
        TcpStreams.watch(channel, who.toString(), who.host());
    }

    /** Every frame that is sent from now on has its authentication code behind it. */
    void sealOutgoing(FrameSeal seal) {
        outgoingSeal = seal;
    }

    /** Every frame that comes from now on must have its authentication code behind it. */
    void sealIncoming(FrameSeal seal) {
        incomingSeal = seal;
    }

    boolean isOpen() {
        return !closed;
    }

    /** Whether the other end is on another host: the way there may be cut. */
    boolean leavesHost() {
        return !local.equals(source);
    }

    /** Offers to make the stream again when it is lost, from rank 0, or answers that. */
    void offerRecovery(Reconnector by) {
        kept = new ArrayDeque<>();
        firstKept = Objects.requireNonNull(outgoingSeal).frames();
        send(MessageCodec.encode(new Recovery(by.offer())));
    }

    /**
     * The other end has offered, or answered, that.
     *
     * @param accepts whether the other end connects
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
     * The stream is lost; whether another one will take its place. A process that has ended closes its own in order.
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
     * Takes a stream that was made again, if there is one.
     *
     * @throws IOException if there will be none, or what came over it is not of this protocol
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

    /** The other side has so many frames of this one: the rest is sent again. */
    private void resume(long from) throws ProtocolException {
        received(from);
        if (from != firstKept) {
            throw new ProtocolException("lacks messages that it said it has");
        }
        isLost = false;
        Objects.requireNonNull(kept).forEach(frame -> outgoing.add(frame.duplicate()));
        key.interestOpsOr(SelectionKey.OP_WRITE);
        Objects.requireNonNull(outage).ended("its stream");
    }

    private void received(long frames) throws ProtocolException {
        ArrayDeque<ByteBuffer> sent = kept;
        if (sent == null || frames > firstKept + sent.size()) {
            throw new ProtocolException("says that it has " + frames + " messages of this side, which sent fewer");
        }
        for (; firstKept < frames; firstKept++) {
            sent.remove();
        }
    }

    /** The other side need not keep what has come. */
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
     * Queues a frame; it is written when the selector says that there is room. Does nothing after {@link #finish()} or
     * {@link #close()}.
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
     * Nothing more will be sent. The output is shut down once everything is written; what the other end sends until it
     * closes can still be received.
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
     * Writes what there is room for, and hands over every whole message that has come.
     *
     * @throws EOFException if the other end has shut its output down
     * @throws IOException  if the connection is lost, or what came is not of this protocol ({@link ProtocolException})
     */
    void serve(Receiver receiver) throws IOException {
        IOException unwritable = null;
        if (key.isWritable()) {
            try {
                write();
            } catch (IOException e) {
                unwritable = e; // what the other end said before it went is still to be read
            }
        }
        try {
            Message message;
            while (isOpen() && (message = next()) != null) {
                receiver.receive(message);
            }
        } catch (EOFException e) {
            // the kernel reports a reset only once: if the write was told, all that is left to read is an end
            throw unwritable == null ? e : unwritable;
        }
        if (unwritable != null && isOpen()) {
            throw unwritable;
        }
        if (!outgoing.isEmpty() && isOpen() && mayWrite()) {
            key.interestOpsOr(SelectionKey.OP_WRITE);
        }
    }

    /** Under TLS, what is to be said waits for the handshake, in which it is this side's turn to listen. */
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

    /** The next message for the owner; null if it is not there in whole. Acknowledgements are handled here. */
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
            throw new ProtocolException("sent a message whose authentication code is wrong: something between changed, "
                    + "left out or repeated what it said");
        }
    }

    private boolean filled(ByteBuffer buffer) throws IOException {
        while (buffer.hasRemaining()) {
            int count = channel.read(buffer);
            if (count < 0) {
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
            // the connection is given up; there is nobody to tell and nothing to save
            outgoing.clear();
        }
    }
}
