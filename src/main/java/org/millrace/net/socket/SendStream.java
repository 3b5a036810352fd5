package org.millrace.net.socket;

import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.LostPeerName;
import org.millrace.net.connection.SilentLink;

/**
 * One stream of a sender: the pieces assigned to the stream, the sent pieces, and the receiver's acknowledgements. Used
 * by one thread.
 */
final class SendStream {

    /** State of the peer, as reported by {@link #readAcks}. */
    enum Peer {
        THERE, SHUT_DOWN, GONE, PROTOCOL_ERROR
    }

    /** Maximum number of unacknowledged pieces of a stream, if there are several streams. No network needs more. */
    private static final int QUEUE = 1024;

    /** Number of pieces assigned to a stream in advance. Pieces that are not assigned may use a faster stream later. */
    private static final int AHEAD = 8;

    /** Maximum length of a short piece. The time of a short piece shows little about the speed of its stream. */
    static final int SHORT_BYTES = 16 << 10;
    private static final int PADDING_BYTES = 64 << 10;
    private static final int ACKS = 64;
    /** Reciprocal of the weight that the newest short piece's time has in the average. */
    private static final int NEWEST_SHORT_SHARE = 8;

    private final SocketChannel channel;
    private final StreamInput input;
    private final Rail rail;
    private final SendWindow frames;
    private final Pieces pieces;
    private final DeliveryRate rate;
    private final int queue;
    private final int ahead;
    private final PieceQueue given;
    private final PieceQueue sent;
    private final StagedOutput staged;
    /** End position of each sent piece's bytes in {@link #staged}. The index is the same as in {@link #sent}. */
    private final long[] stagedEnds;
    /** Number of sent pieces whose staged bytes were all passed to the operating system. */
    private long written;
    /** Zeros that replace data of a frame that no longer exists; null before the first use. */
    private @Nullable ByteBuffer padding;
    private final ByteBuffer acks =
            ByteBuffer.allocateDirect(ACKS * PieceFormat.Ack.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    /**
     * Buffer over the user's memory. The bytes of a payload from {@code directAt} to {@code directEnd} are sent from
     * this buffer, without a copy to the staging buffer.
     */
    private ByteBuffer direct;
    private int directAt;
    private int directEnd;
    private long directFrame;
    private long owedBytes;
    /**
     * Moving average of the time between the sending of a short piece and its acknowledgement, in nanoseconds; 0 before
     * the first acknowledgement of a short piece.
     */
    private long shortNanos;
    private long deliveredBytes;
    private boolean open = true;
    private boolean cut;
    /**
     * Whether an acknowledgement has arrived on this stream. Before this acknowledgement, a replacement stream sends
     * nothing, because the first acknowledgement shows which data is missing.
     */
    private boolean greeted;
    private boolean peerShutDown;
    /** Words of the peer's message about a process that the peer has lost. */
    private final long[] lost = new long[LostPeerName.COUNT];
    private final StreamSet connection;
    private int lostWords;

    /** @param first whether this is one of the connection's first streams; false if it replaces a lost stream */
    SendStream(SocketChannel channel, StreamInput input, Rail rail, SendWindow frames, Pieces pieces, boolean first,
            StreamSet connection) {
        this.connection = connection;
        this.channel = channel;
        this.input = input;
        this.rail = rail;
        this.frames = frames;
        this.pieces = pieces;
        greeted = first;
        rate = new DeliveryRate(pieces.bytes());
        queue = queue(pieces);
        ahead = pieces.isWhole() ? pieces.window() : AHEAD;
        given = new PieceQueue(queue);
        sent = new PieceQueue(queue);
        stagedEnds = new long[queue];
        staged = new StagedOutput(pieces.stagedBytes(), connection.memory(first));
    }

    /** Returns the capacity of each of the two queues, for assigned and for sent pieces; a power of two. */
    static int queue(Pieces pieces) {
        return pieces.isWhole() ? Integer.highestOneBit(pieces.window() * 2 - 1) : QUEUE;
    }

    boolean isGreeted() {
        return greeted;
    }

    boolean hasStagingRoom() {
        return staged.hasRoom();
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

    /**
     * Resets the TCP connection. The peer detects the reset immediately, even if the operating system still holds
     * unsent data.
     */
    void reset() {
        try {
            channel.setOption(StandardSocketOptions.SO_LINGER, 0);
        } catch (IOException gone) {
            // The stream is already closed or reset, as intended.
        }
        input.leave();
        ConnectionState.closeQuietly(channel);
    }

    /** Resets the TCP connection, and records that the reset was deliberate. */
    void cut() {
        cut = true;
        reset();
    }

    boolean isCut() {
        return cut;
    }

    /** Returns the number of pieces that are assigned to this stream and not acknowledged. */
    int owed() {
        return given.size() + sent.size();
    }

    /**
     * Returns the number of acknowledged payload bytes. The number includes bytes that another stream delivered first.
     */
    long deliveredBytes() {
        return deliveredBytes;
    }

    boolean hasRoom() {
        return greeted && given.size() < ahead && given.size() + sent.size() < queue;
    }

    /** Estimates the time until this stream would have delivered a piece that is assigned now, in nanoseconds. */
    double nanosFor(int length, long now) {
        return rate.nanosFor(owedBytes + length + (owed() + 1L) * PieceFormat.BYTES, owed() > 0, now);
    }

    /** Returns the average time of recent short pieces in nanoseconds; 0 if no short piece was acknowledged. */
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

    /** Returns the sent pieces without an acknowledgement. */
    PieceQueue sent() {
        return sent;
    }

    /** Moves the oldest assigned and unsent piece of this stream to another stream. Such a piece must exist. */
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

    /** Sends assigned pieces until the operating system accepts no more data. */
    long write(long now) throws IOException {
        long moved = 0;
        while (true) {
            while (!staged.isSent()) {
                ByteBuffer bytes = staged.unsent();
                int length = bytes.remaining();
                int count = channel.write(bytes);
                staged.moved(count);
                moved += count;
                if (count < length) {
                    noteWritten();
                    return moved;
                }
            }
            noteWritten();
            if (directAt < directEnd) {
                moved += writeDirect();
                if (directAt < directEnd) {
                    return moved;
                }
            }
            if (!stage(now)) {
                return moved;
            }
        }
    }

    private void noteWritten() {
        while (written < sent.added() && stagedEnds[(int) written & queue - 1] <= staged.sent()) {
            frames.copySent(sent.frame(written));
            written++;
        }
    }

    private int writeDirect() throws IOException {
        ByteBuffer from = direct;
        if (directFrame < frames.completed()) {
            // Another stream delivered the piece first, and the frame's owner may change the frame's memory again. The
            // receiver expects the remaining bytes of the piece on this stream, and discards them.
            ByteBuffer zeros = padding == null ? padding = ByteBuffer.allocateDirect(PADDING_BYTES) : padding;
            from = zeros.clear().limit(Math.min(directEnd - directAt, zeros.capacity()));
        } else {
            from.limit(directEnd).position(directAt);
        }
        int count = channel.write(from);
        directAt += count;
        return count;
    }

    /**
     * Moves assigned pieces to the staging buffer. Returns false if no piece was moved: either no piece is assigned, or
     * the buffer is full until the next acknowledgement.
     */
    private boolean stage(long now) {
        boolean any = false;
        while (!given.isEmpty() && directAt == directEnd) {
            long frame = given.frame();
            int piece = given.piece();
            int length = given.length();
            if (frames.isArrived(frame, piece)) {
                owedBytes -= length;
                given.take();
                continue;
            }
            int copied = staged.copies(length);
            if (copied < 0) {
                break;
            }
            given.take();
            any = true;
            int offset = pieces.offset(piece);
            ByteBuffer from = frames.source(frame);
            int start = frames.start(frame) + offset;
            int at = staged.add(PieceFormat.BYTES + copied);
            if (copied > 0) {
                staged.buffer().clear().put(at + PieceFormat.BYTES, from.clear(), start, copied);
            }
            if (copied == frames.length(frame)) {
                frames.copied(frame, staged.buffer(), at + PieceFormat.BYTES);
            } else {
                frames.sentInPlace(frame);
            }
            PieceFormat.encode(frames.asks(frame) ? HeaderFormat.TYPE_URGENT_PIECE : HeaderFormat.TYPE_PIECE,
                    frames.header(frame), frame, offset, length, staged.buffer().clear(), at);
            if (copied < length) {
                direct = from;
                directAt = start + copied;
                directEnd = start + length;
                directFrame = frame;
            }
            stagedEnds[(int) sent.added() & queue - 1] = staged.end();
            sent.add(frame, piece, length, now);
        }
        return any;
    }

    /**
     * Reports to the peer that a link is silent, or that data arrives over the link again. Returns false if the report
     * must be repeated later.
     */
    boolean tell(StreamSet of) {
        boolean has = greeted && isFlushed() && staged.copies(0) >= 0;
        if (has) {
            HeaderFormat.encodeSilent(of.takeSilence(), staged.buffer().clear(), staged.add(PieceFormat.BYTES));
        }
        return has;
    }

    /** Requests an acknowledgement of all data sent so far, if the staging buffer has room for the request. */
    void ask() {
        if (greeted && isFlushed() && staged.copies(0) >= 0) {
            HeaderFormat.encodeAsk(staged.buffer().clear(), staged.add(PieceFormat.BYTES));
            frames.asked();
        }
    }

    /** Reads the receiver's messages, and records the arrived pieces in the window of frames. */
    Peer readAcks(long now) throws IOException {
        if (peerShutDown) {
            return Peer.SHUT_DOWN;
        }
        int read = 0;
        do {
            // The acknowledgements of a connection with one stream are few and rarely read. This read therefore follows
            // no poll: a poll of all streams of the thread would cost more than the read.
            read = pieces.isWhole() ? channel.read(acks) : input.read(acks, read > 0);
            int at = 0;
            int end = acks.position();
            for (; end - at >= PieceFormat.Ack.BYTES; at += PieceFormat.Ack.BYTES) {
                if (PieceFormat.Ack.is(PieceFormat.Ack.TYPE_SHUTDOWN, acks, at)) {
                    peerShutDown = true;
                    return Peer.SHUT_DOWN;
                }
                if (PieceFormat.Ack.is(PieceFormat.Ack.TYPE_LOST, acks, at) && lostWords < LostPeerName.COUNT) {
                    PieceFormat.Ack.copyLost(acks, at, lost, lostWords);
                    lostWords += PieceFormat.Ack.LOST_WORDS;
                } else if (PieceFormat.Ack.is(PieceFormat.Ack.TYPE_SILENT, acks, at)
                        && lostWords == LostPeerName.COUNT) {
                    connection.reported(SilentLink.of(lost));
                    Arrays.fill(lost, 0);
                    lostWords = 0;
                } else if (!PieceFormat.Ack.is(PieceFormat.Ack.TYPE_ACK, acks, at)
                        || !acknowledge(PieceFormat.Ack.pieces(acks, at), PieceFormat.Ack.accepted(acks, at),
                                PieceFormat.Ack.whole(acks, at), now)) {
                    return Peer.PROTOCOL_ERROR;
                }
            }
            acks.flip().position(at);
            acks.compact();
        } while (read == ACKS * PieceFormat.Ack.BYTES);
        return read < 0 ? Peer.GONE : Peer.THERE;
    }

    /** Returns the lost process that is named in the receiver's shutdown message; null if the message names none. */
    @Nullable
    String lostPeer() {
        return LostPeerName.name(lost);
    }

    /** Records an acknowledgement. Returns false if its counts are impossible. */
    private boolean acknowledge(long count, long accepted, long whole, long now) {
        if (count < sent.taken() || count > sent.added() || accepted < 0 || accepted > frames.added()
                || !frames.whole(whole)) {
            return false;
        }
        greeted = true;
        if (sent.taken() < count) {
            staged.acknowledged(stagedEnds[(int) (count - 1) & queue - 1]);
            written = Math.max(written, count);
            long bytes = 0;
            boolean allShort = true;
            while (sent.taken() < count) {
                bytes += sent.length();
                if (sent.length() > SHORT_BYTES) {
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

    /** Returns whether all assigned pieces have been passed to the operating system. */
    boolean isFlushed() {
        return given.isEmpty() && staged.isSent() && directAt == directEnd;
    }

    /** Ends the use of a lost stream, and moves its unacknowledged pieces to a queue for other streams. */
    void giveUp(PieceQueue elsewhere, long now) {
        open = false;
        moveMissing(sent, elsewhere, now);
        moveMissing(given, elsewhere, now);
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

    /**
     * The rate of a stream, computed from recent acknowledgements: acknowledged bytes divided by the time in which the
     * stream had unacknowledged data. While a stream with unacknowledged data delivers nothing, each estimate is lower
     * than the previous estimate.
     *
     * <p>
     * Short pieces are not counted. Each short piece takes a round trip, independent of its length, so a stream with
     * many short pieces would appear slow for long pieces. Used by one thread.
     */
    static final class DeliveryRate {

        /** Number of delivered pieces after which an older measurement has half its weight. */
        private static final int HORIZON_PIECES = 32;
        /**
         * Initial rate of every stream: 1 GB/s. The value matters little, because a few measured pieces outweigh it.
         */
        private static final double FIRST_NANOS_PER_BYTE = 1;

        /**
         * Maximum time counted for one delivery, in nanoseconds. A longer time has another cause than the rail's rate.
         * With this limit, the estimate returns to the rail's rate soon after that cause has ended.
         */
        private static final long LONGEST_NANOS = 100_000_000;

        private final long horizonBytes;
        private double bytes;
        private double nanos;
        private long since;

        DeliveryRate(int pieceBytes) {
            horizonBytes = (long) HORIZON_PIECES * pieceBytes;
            bytes = pieceBytes;
            nanos = pieceBytes * FIRST_NANOS_PER_BYTE;
        }

        /** Records that the stream has unacknowledged data from now on. */
        void begin(long now) {
            since = now;
        }

        /** Records the acknowledgement of short pieces. The times of short pieces do not count. */
        void deliveredShort(long now) {
            since = now;
        }

        /** Records the acknowledgement of a number of bytes. */
        void delivered(long count, long now) {
            bytes += count;
            nanos += Math.clamp(now - since, 1, LONGEST_NANOS);
            since = now;
            if (bytes > horizonBytes) {
                bytes /= 2;
                nanos /= 2;
            }
        }

        /**
         * Returns the time since the last delivery, in nanoseconds. If the last delivery acknowledged all data, returns
         * the time since the first data was sent after that delivery.
         */
        long silence(long now) {
            return now - since;
        }

        /** Estimates the time that the stream would need to deliver a number of bytes, in nanoseconds. */
        double nanosFor(long count, boolean owes, long now) {
            return count * (nanos + (owes ? now - since : 0)) / bytes;
        }
    }
}
