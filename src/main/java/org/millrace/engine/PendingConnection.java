package org.millrace.engine;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.net.ConnectionException;
import org.millrace.net.Pending;
import org.millrace.net.connection.PeerText;
import org.millrace.engine.TransportConnections.PeerMessages;
import org.millrace.transport.EndRequest;
import org.millrace.transport.TransportEnd;

/**
 * This rank's end of a connection that is being made. It runs the phases of {@link TransportEnd}. A failure in any
 * phase frees the resources of all earlier phases.
 */
final class PendingConnection implements Pending<TransportConnection> {

    private static final int SENDER = 1;
    /** Connection index of the first peer group, larger than the indexes of connections between two ranks. */
    private static final long GROUPS = 1 << 8;

    private final EndRequest request;
    private final String transport;
    private final TransportEnd end;
    private final PeerMessages messages;
    private final BiConsumer<PendingConnection, TransportConnection> onMade;
    /** Ranks of the peers: one rank, or the other members of a peer group. */
    private final int[] others;
    /** Set-up messages of the peers, in the order of {@link #others}; an element is null until its message arrives. */
    private final byte @Nullable [][] theirs;
    private byte[] mine = {};
    private boolean proxyConnected;
    private boolean over;

    /** Runs the phases up to the set-up message, and sends this message to the peers. */
    PendingConnection(EndRequest request, String transport, TransportEnd end, PeerMessages messages,
            BiConsumer<PendingConnection, TransportConnection> onMade) {
        this.request = request;
        this.transport = transport;
        this.end = end;
        this.messages = messages;
        this.onMade = onMade;
        EndRequest.PeerGroup group = request.group();
        others = group == null ? new int[] {request.there().rank()}
                : group.members()
                        .stream()
                        .mapToInt(each -> each)
                        .filter(each -> each != request.here().rank())
                        .toArray();
        theirs = new byte[others.length][];
        try {
            end.proxySetup();
            mine = end.setup();
            if (mine.length > TransportEnd.MAX_SETUP_BYTES) {
                throw new MillraceException(
                        "its set-up has " + mine.length + " bytes; the limit is " + TransportEnd.MAX_SETUP_BYTES);
            }
            for (int other : others) {
                messages.send(other, tag(request.sends()), withName(mine));
            }
        } catch (RuntimeException | Error failure) {
            throw abandoned("cannot be set up", failure);
        }
    }

    /** {@return whether the set-up messages of all peers have arrived; from then on the ends connect} */
    public synchronized boolean peerIsSetUp() {
        boolean all = true;
        for (int i = 0; i < others.length; i++) {
            if (theirs[i] == null && !over) {
                // Between two ranks, each end receives the other end's message. In a peer group, all senders receive
                // each other's messages, and all receivers receive each other's messages.
                theirs[i] = messages.receive(others[i], tag(request.group() == null != request.sends()));
            }
            all &= theirs[i] != null;
        }
        return all;
    }

    /**
     * Returns the set-up data that this end needs to connect. Between two ranks, the data is the peer's set-up message.
     * In a peer group, the data consists of the messages of all ranks in rank order, including this rank's message.
     */
    private byte[] said() {
        if (request.group() == null) {
            return withoutName(others[0], theirs[0]);
        }
        ByteBuffer all = ByteBuffer.allocate(mine.length * (others.length + 1));
        int other = 0;
        for (int member : request.group().members()) {
            byte[] each = member == request.here().rank() ? mine : withoutName(member, theirs[other++]);
            if (each.length != mine.length) {
                throw new MillraceException("rank " + member + " sends " + each.length + " bytes of set-up, and rank "
                        + request.here().rank() + " " + mine.length + ": all ranks need the same release");
            }
            all.put(each);
        }
        return all.array();
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
            byte[] peer = said();
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

    /**
     * Returns a message without the transport's name. Throws an exception if the message has the name of another
     * transport, because an end can read the peer's message only if both ends have chosen the same transport.
     */
    private byte[] withoutName(int other, byte[] message) {
        byte[] name = transport.getBytes(StandardCharsets.UTF_8);
        int length = message.length == 0 ? 0 : Byte.toUnsignedInt(message[0]);
        if (length != name.length || message.length <= length
                || !Arrays.equals(name, Arrays.copyOfRange(message, 1, 1 + length))) {
            throw new MillraceException("rank " + other + " uses another transport for it, "
                    + PeerText.line(new String(message, Math.min(1, message.length),
                            Math.max(0, Math.min(length, message.length - 1)), StandardCharsets.UTF_8))
                    + ": a transport's canConnect must return the same on both ranks");
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
        // Two ranks of a peer group may also have connections outside the group. The tags of the group's connections
        // must differ from the tags of those connections.
        long index = request.group() == null ? request.index() : GROUPS + request.group().number();
        return index << Integer.SIZE | (long) request.channel() << 1 | (ofSender ? SENDER : 0);
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
