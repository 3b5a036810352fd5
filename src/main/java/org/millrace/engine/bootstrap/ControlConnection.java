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
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.TcpStreams;
import org.millrace.net.connection.TlsChannel;

/** One connection that carries messages and never blocks. Used by one thread at a time. */
final class ControlConnection {

    /** What to do with a message. */
    @FunctionalInterface
    interface Receiver {
        void receive(Message message) throws IOException;
    }

    private final SocketChannel channel;
    private final SelectionKey key;
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
    private boolean finishing;

    /** Takes over a connected channel, which this closes. */
    ControlConnection(SocketChannel channel, Selector selector) throws IOException {
        this.channel = channel;
        InetSocketAddress from = (InetSocketAddress) channel.getRemoteAddress();
        this.source = from.getAddress();
        this.remote = from.toString().replaceFirst("^[^/]*/", "");
        this.local = ((InetSocketAddress) channel.getLocalAddress()).getAddress();
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        TcpStreams.keepAlive(channel);
        this.key = TlsChannel.selectable(channel).register(selector, SelectionKey.OP_READ);
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
        return channel.isOpen();
    }

    /**
     * Queues a frame; it is written when the selector says that there is room. Does nothing after {@link #finish()} or
     * {@link #close()}.
     */
    void send(ByteBuffer frame) {
        if (isOpen() && !finishing) {
            outgoing.add(outgoingSeal == null ? frame.duplicate() : outgoingSeal.sealed(frame));
            key.interestOpsOr(SelectionKey.OP_WRITE);
        }
    }

    /**
     * Nothing more will be sent. The output is shut down once everything is written; what the other end sends until it
     * closes can still be received.
     */
    void finish() {
        if (isOpen() && !finishing) {
            finishing = true;
            key.interestOpsOr(SelectionKey.OP_WRITE);
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
        if (finishing) {
            channel.shutdownOutput();
        }
    }

    /** The next message; null if it is not there in whole. */
    private @Nullable Message next() throws IOException {
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
        header.clear();
        body = null;
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
        try {
            channel.close();
        } catch (IOException e) {
            // the connection is given up; there is nobody to tell and nothing to save
            outgoing.clear();
        }
    }
}
