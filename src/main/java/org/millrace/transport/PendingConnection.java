package org.millrace.transport;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.net.ConnectionException;
import org.millrace.net.Pending;
import org.millrace.transport.TransportConnections.PeerMessages;

/**
 * An end of a connection that is being made: it is taken through the phases of {@link TransportEnd}. What goes wrong in
 * any of them frees all that the ones before took.
 */
public final class PendingConnection implements Pending<TransportConnection> {

    private static final int SENDER = 1;

    private final EndRequest request;
    private final String transport;
    private final TransportEnd end;
    private final PeerMessages messages;
    private final BiConsumer<PendingConnection, TransportConnection> onMade;
    /** What the other end has set up. */
    private byte @Nullable [] theirs;
    private boolean proxyConnected;
    private boolean over;

    /** Runs the first phases, and tells the other end. */
    PendingConnection(EndRequest request, String transport, TransportEnd end, PeerMessages messages,
            BiConsumer<PendingConnection, TransportConnection> onMade) {
        this.request = request;
        this.transport = transport;
        this.end = end;
        this.messages = messages;
        this.onMade = onMade;
        try {
            end.proxySetup();
            byte[] mine = end.setup();
            if (mine.length > TransportEnd.MAX_SETUP_BYTES) {
                throw new MillraceException(
                        "its set-up says " + mine.length + " bytes; the limit is " + TransportEnd.MAX_SETUP_BYTES);
            }
            messages.send(request.there().rank(), tag(request.sends()), withName(mine));
        } catch (RuntimeException | Error failure) {
            throw abandoned("cannot be set up", failure);
        }
    }

    /** {@return whether the other end has said what it set up: from then on the two are connected} */
    public synchronized boolean peerIsSetUp() {
        if (theirs == null && !over) {
            theirs = messages.receive(request.there().rank(), tag(!request.sends()));
        }
        return theirs != null;
    }

    @Override
    public synchronized @Nullable TransportConnection poll() {
        if (over) {
            throw new IllegalStateException(this + ": was made or given up before");
        }
        if (!peerIsSetUp()) {
            return null;
        }
        try {
            byte[] peer = withoutName(theirs);
            proxyConnected = proxyConnected || end.proxyConnect(peer);
            if (!proxyConnected || !end.connect(peer)) {
                return null;
            }
            TransportConnection made = new TransportConnection(request.name(), transport, end);
            over = true;
            onMade.accept(this, made);
            return made;
        } catch (RuntimeException | Error failure) {
            throw abandoned("cannot be connected", failure);
        }
    }

    /** Both ends must have chosen alike before one looks at what the other's transport says. */
    private byte[] withoutName(byte[] message) {
        byte[] name = transport.getBytes(StandardCharsets.UTF_8);
        int length = message.length == 0 ? 0 : Byte.toUnsignedInt(message[0]);
        if (length != name.length || message.length <= length
                || !Arrays.equals(name, Arrays.copyOfRange(message, 1, 1 + length))) {
            throw new MillraceException("rank " + request.there().rank() + " uses another transport for it, "
                    + new String(message, Math.min(1, message.length),
                            Math.max(0, Math.min(length, message.length - 1)), StandardCharsets.UTF_8)
                    + ": a transport's canConnect must say the same on both ranks");
        }
        return Arrays.copyOfRange(message, 1 + length, message.length);
    }

    private byte[] withName(byte[] message) {
        byte[] name = transport.getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(1 + name.length + message.length)
                .put((byte) name.length)
                .put(name)
                .put(message)
                .array();
    }

    private long tag(boolean ofSender) {
        return (long) request.index() << Integer.SIZE | (long) request.channel() << 1 | (ofSender ? SENDER : 0);
    }

    private RuntimeException abandoned(String what, Throwable failure) {
        close();
        String message = this + " " + what + ": " + failure.getMessage();
        return failure instanceof ConnectionException ? new ConnectionException(message, failure)
                : new MillraceException(message, failure);
    }

    @Override
    public synchronized void close() {
        if (!over) {
            over = true;
            TransportConnection.free(request.name(), end);
        }
    }

    @Override
    public String toString() {
        return request.name() + " over " + transport;
    }
}
