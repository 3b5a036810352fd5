package org.millrace.net.socket;

import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.LastWords;

/**
 * One stream of a sender of several rails: the pieces that it was given, those that it has sent, and what the receiver
 * says of them. One thread.
 */
final class SendStream {

    /** What {@link #readAcks} found, beside acknowledgements. */
    enum Peer {
        THERE, SHUT_DOWN, GONE, TALKS_NONSENSE
    }

    /** Pieces of a stream that are not acknowledged: more than any network needs. */
    static final int QUEUE = 1024;

    /** Pieces that are given ahead: those that are not may still go to the stream that turns out to be faster. */
    private static final int AHEAD = 8;

    private static final int STAGED_BYTES = 64 << 10;
    /** A piece of up to this many bytes is copied behind its header, so that one write sends several. */
    static final int COPIED_BYTES = 16 << 10;
    /** Of a longer one so many bytes are copied: a header alone would be a packet of its own. */
    private static final int BEGINNING_BYTES = 8 << 10;
    private static final int ACKS = 64;
    /** A short piece's time counts for so much of what is known of them. */
    private static final int NEWEST_SHORT_SHARE = 8;

    private final SocketChannel channel;
    private final StreamInput input;
    private final Rail rail;
    private final SendWindow frames;
    private final Pieces pieces;
    private final DeliveryRate rate;
    private final PieceQueue given = new PieceQueue(QUEUE);
    private final PieceQueue sent = new PieceQueue(QUEUE);
    private final ByteBuffer staged = ByteBuffer.allocateDirect(STAGED_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private final ByteBuffer padding = ByteBuffer.allocateDirect(STAGED_BYTES);
    private final ByteBuffer acks =
            ByteBuffer.allocateDirect(ACKS * PieceFormat.Ack.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    /** The payload that goes straight from its memory, if any is left of it. */
    private ByteBuffer direct;
    private int directAt;
    private int directEnd;
    private long directFrame;
    private long owedBytes;
    /** How long short pieces took lately, from the moment at which they were written; 0 if there were none. */
    private long shortNanos;
    private long deliveredBytes;
    private boolean open = true;
    private boolean cut;
    private boolean peerShutDown;
    /** What the peer says of a process that it has lost itself. */
    private final long[] lost = new long[LastWords.COUNT];
    private int lostWords;

    SendStream(SocketChannel channel, StreamInput input, Rail rail, SendWindow frames, Pieces pieces) {
        this.channel = channel;
        this.input = input;
        this.rail = rail;
        this.frames = frames;
        this.pieces = pieces;
        rate = new DeliveryRate(pieces.bytes());
        staged.limit(0);
    }

    Rail rail() {
        return rail;
    }

    SocketChannel channel() {
        return channel;
    }

    boolean isOpen() {
        return open;
    }

    /** Resets the stream, so that the peer sees it at once though the kernel may hold bytes for it. */
    void reset() {
        try {
            channel.setOption(StandardSocketOptions.SO_LINGER, 0);
        } catch (IOException gone) {
            // It is closed or reset already, which is what is wanted.
        }
        input.leave();
        ConnectionState.closeQuietly(channel);
    }

    /** Resets the stream on purpose. */
    void cut() {
        cut = true;
        reset();
    }

    boolean isCut() {
        return cut;
    }

    /** Pieces that were given and are not acknowledged. */
    int owed() {
        return given.size() + sent.size();
    }

    /** Bytes of payloads that were acknowledged, those that another stream brought before among them. */
    long deliveredBytes() {
        return deliveredBytes;
    }

    boolean hasRoom() {
        return given.size() < AHEAD && sent.size() < QUEUE - AHEAD;
    }

    /**
     * When this stream would have delivered a piece of so many bytes if it were given one now: nanoseconds from now.
     */
    double nanosFor(int length, long now) {
        return rate.nanosFor(owedBytes + length + (owed() + 1L) * PieceFormat.BYTES, owed() > 0, now);
    }

    /** How long short pieces took lately; 0 if none was sent. */
    long shortNanos() {
        return shortNanos;
    }

    void give(long frame, int piece, int length, long now) {
        if (owed() == 0) {
            rate.begin(now);
        }
        given.add(frame, piece, length, now);
        owedBytes += length;
    }

    /** The pieces that were sent and are not acknowledged. */
    PieceQueue sent() {
        return sent;
    }

    /** Takes back the oldest piece that was given and not sent; there must be one. */
    void passOn(SendStream other, long now) {
        other.give(given.frame(), given.piece(), given.length(), now);
        owedBytes -= given.length();
        given.take();
    }

    boolean hasUnsent() {
        return !given.isEmpty();
    }

    int unsentLength() {
        return given.length();
    }

    long silence(long now) {
        return owed() == 0 ? 0 : rate.silence(now);
    }

    /** Sends what was given, until the kernel takes no more. */
    long write(long now) throws IOException {
        long moved = 0;
        while (true) {
            if (staged.hasRemaining()) {
                moved += channel.write(staged);
                if (staged.hasRemaining()) {
                    return moved;
                }
            }
            if (directAt < directEnd) {
                moved += writeDirect();
                if (directAt < directEnd) {
                    return moved;
                }
            }
            if (given.isEmpty()) {
                return moved;
            }
            stage(now);
        }
    }

    private int writeDirect() throws IOException {
        ByteBuffer from = direct;
        if (directFrame < frames.completed()) {
            // Another stream was faster, and the memory is its owner's again. The receiver expects the rest of the
            // piece,
            // and throws it away.
            from = padding.clear().limit(Math.min(directEnd - directAt, padding.capacity()));
        } else {
            from.limit(directEnd).position(directAt);
        }
        int written = channel.write(from);
        directAt += written;
        return written;
    }

    private void stage(long now) {
        staged.clear();
        int end = 0;
        while (!given.isEmpty() && end + PieceFormat.BYTES + COPIED_BYTES <= STAGED_BYTES && directAt == directEnd) {
            long frame = given.frame();
            int piece = given.piece();
            int length = given.length();
            given.take();
            if (frames.isArrived(frame, piece)) {
                owedBytes -= length;
                continue;
            }
            int offset = pieces.offset(piece);
            PieceFormat.encode(frames.header(frame), frame, offset, length, staged, end);
            end += PieceFormat.BYTES;
            int copied = length <= COPIED_BYTES ? length : BEGINNING_BYTES;
            int start = frames.start(frame) + offset;
            if (copied > 0) {
                staged.put(end, frames.view(frame).clear(), start, copied);
                end += copied;
            }
            if (copied < length) {
                direct = frames.view(frame);
                directAt = start + copied;
                directEnd = start + length;
                directFrame = frame;
            }
            sent.add(frame, piece, length, now);
        }
        staged.limit(end);
    }

    /** Reads what the receiver said, and notes in the frames what arrived. */
    Peer readAcks(long now) throws IOException {
        if (peerShutDown) {
            return Peer.SHUT_DOWN;
        }
        int read = 0;
        do {
            read = input.read(acks, read > 0);
            int at = 0;
            int end = acks.position();
            for (; end - at >= PieceFormat.Ack.BYTES; at += PieceFormat.Ack.BYTES) {
                if (PieceFormat.Ack.is(PieceFormat.Ack.TYPE_SHUTDOWN, acks, at)) {
                    peerShutDown = true;
                    return Peer.SHUT_DOWN;
                }
                if (PieceFormat.Ack.is(PieceFormat.Ack.TYPE_LOST, acks, at) && lostWords < LastWords.COUNT) {
                    PieceFormat.Ack.copyLost(acks, at, lost, lostWords);
                    lostWords += PieceFormat.Ack.LOST_WORDS;
                } else if (!PieceFormat.Ack.is(PieceFormat.Ack.TYPE_ACK, acks, at)
                        || !acknowledge(PieceFormat.Ack.pieces(acks, at), PieceFormat.Ack.accepted(acks, at), now)) {
                    return Peer.TALKS_NONSENSE;
                }
            }
            acks.flip().position(at);
            acks.compact();
        } while (read > 0 && acks.position() == 0 && owed() > 0);
        return read < 0 ? Peer.GONE : Peer.THERE;
    }

    /** Whom the peer that sent a shutdown message has lost; null if nobody. */
    @Nullable
    String lostPeer() {
        return LastWords.name(lost);
    }

    /** False if this cannot be true. */
    private boolean acknowledge(long count, long accepted, long now) {
        if (count < sent.taken() || count > sent.added() || accepted < 0 || accepted > frames.added()) {
            return false;
        }
        if (sent.taken() < count) {
            long bytes = 0;
            boolean allShort = true;
            while (sent.taken() < count) {
                bytes += sent.length();
                if (sent.length() > COPIED_BYTES) {
                    allShort = false;
                } else {
                    long took = Math.max(now - sent.time(), 1);
                    shortNanos += shortNanos == 0 ? took : (took - shortNanos) / NEWEST_SHORT_SHARE;
                }
                frames.arrived(sent.frame(), sent.piece());
                sent.take();
            }
            owedBytes -= bytes;
            deliveredBytes += bytes;
            if (allShort) {
                rate.deliveredShort(now);
            } else {
                rate.delivered(bytes, now);
            }
        }
        frames.accepted(accepted);
        return true;
    }

    /** Whether everything that was given is with the kernel. */
    boolean isFlushed() {
        return given.isEmpty() && !staged.hasRemaining() && directAt == directEnd;
    }

    /**
     * Says that there were so many frames in all, and which process was lost if there is one to blame, as far as that
     * needs no waiting; what was given must have been sent.
     */
    void sendShutdown(long total, @Nullable String lostPeer) throws IOException {
        staged.clear();
        PieceFormat.encodeShutdown(total, lostPeer, staged, 0);
        staged.limit(PieceFormat.BYTES);
        channel.write(staged);
    }

    /** Gives up: what is owed goes to a queue of pieces that are to be sent elsewhere. */
    void giveUp(PieceQueue elsewhere, long now) {
        open = false;
        moveMissing(sent, elsewhere, now);
        moveMissing(given, elsewhere, now);
        staged.limit(0).position(0);
        directAt = directEnd;
        owedBytes = 0;
    }

    private void moveMissing(PieceQueue from, PieceQueue to, long now) {
        for (; !from.isEmpty(); from.take()) {
            if (!frames.isArrived(from.frame(), from.piece())) {
                to.add(from.frame(), from.piece(), from.length(), now);
            }
        }
    }
}
