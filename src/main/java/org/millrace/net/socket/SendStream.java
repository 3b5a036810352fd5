package org.millrace.net.socket;

import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.LastWords;
import org.millrace.net.connection.SilentLink;

/**
 * One stream of a sender: the pieces that it was given, those that it has sent, and what the receiver says of them. One
 * thread.
 */
final class SendStream {

    /** What {@link #readAcks} found, beside acknowledgements. */
    enum Peer {
        THERE, SHUT_DOWN, GONE, TALKS_NONSENSE
    }

    /** Pieces of one of several streams that are not acknowledged: more than any network needs. */
    private static final int QUEUE = 1024;

    /** Pieces that are given ahead: those that are not may still go to the stream that turns out to be faster. */
    private static final int AHEAD = 8;

    /** Pieces of up to this many bytes say little of how fast a stream is. */
    static final int SHORT_BYTES = 16 << 10;
    private static final int PADDING_BYTES = 64 << 10;
    private static final int ACKS = 64;
    /** A short piece's time counts for so much of what is known of them. */
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
    /** By place in the queue of sent pieces: where their staged bytes end. */
    private final long[] stagedEnds;
    /** Pieces of whose staged bytes the kernel has all. */
    private long written;
    /** Made when it is first needed. */
    private @Nullable ByteBuffer padding;
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
    /** Whether the receiver has said what it has, as it does first on a stream that takes the place of a lost one. */
    private boolean greeted;
    private boolean peerShutDown;
    /** What the peer says of a process that it has lost itself. */
    private final long[] lost = new long[LastWords.COUNT];
    private final StreamSet connection;
    private int lostWords;

    /** @param first whether no stream was before in this one's place */
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

    /** How many pieces a stream can be given, and how many it can have sent; a power of two. */
    static int queue(Pieces pieces) {
        return pieces.isWhole() ? Integer.highestOneBit(pieces.window() * 2 - 1) : QUEUE;
    }

    boolean isGreeted() {
        return greeted;
    }

    /** Whether what was copied has room for more. */
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
        return greeted && given.size() < ahead && given.size() + sent.size() < queue;
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
            // Another stream was faster, and the memory is its owner's again. The receiver expects the rest of the
            // piece, and throws it away.
            ByteBuffer zeros = padding == null ? padding = ByteBuffer.allocateDirect(PADDING_BYTES) : padding;
            from = zeros.clear().limit(Math.min(directEnd - directAt, zeros.capacity()));
        } else {
            from.limit(directEnd).position(directAt);
        }
        int count = channel.write(from);
        directAt += count;
        return count;
    }

    /** Adds pieces that were given to what is staged; false if there is none, or no room before an acknowledgement. */
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

    /** Tells the peer of a silent link, or of none; false if there is no room yet. */
    boolean tell(StreamSet of) {
        boolean has = greeted && isFlushed() && staged.copies(0) >= 0;
        if (has) {
            HeaderFormat.encodeSilent(of.takeSilence(), staged.buffer().clear(), staged.add(PieceFormat.BYTES));
        }
        return has;
    }

    /** Asks for an acknowledgement of all that was sent, if there is room to. */
    void ask() {
        if (greeted && isFlushed() && staged.copies(0) >= 0) {
            HeaderFormat.encodeAsk(staged.buffer().clear(), staged.add(PieceFormat.BYTES));
            frames.asked();
        }
    }

    /** Reads what the receiver said, and notes in the frames what arrived. */
    Peer readAcks(long now) throws IOException {
        if (peerShutDown) {
            return Peer.SHUT_DOWN;
        }
        int read = 0;
        do {
            // One stream's are few, and looked for rarely: a look at all streams would cost more.
            read = pieces.isWhole() ? channel.read(acks) : input.read(acks, read > 0);
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
                } else if (PieceFormat.Ack.is(PieceFormat.Ack.TYPE_SILENT, acks, at) && lostWords == LastWords.COUNT) {
                    connection.reported(SilentLink.of(lost));
                    Arrays.fill(lost, 0);
                    lostWords = 0;
                } else if (!PieceFormat.Ack.is(PieceFormat.Ack.TYPE_ACK, acks, at)
                        || !acknowledge(PieceFormat.Ack.pieces(acks, at), PieceFormat.Ack.accepted(acks, at),
                                PieceFormat.Ack.whole(acks, at), now)) {
                    return Peer.TALKS_NONSENSE;
                }
            }
            acks.flip().position(at);
            acks.compact();
        } while (read == ACKS * PieceFormat.Ack.BYTES);
        return read < 0 ? Peer.GONE : Peer.THERE;
    }

    /** Whom the peer that sent a shutdown message has lost; null if nobody. */
    @Nullable
    String lostPeer() {
        return LastWords.name(lost);
    }

    /** False if this cannot be true. */
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

    /** Whether everything that was given is with the kernel. */
    boolean isFlushed() {
        return given.isEmpty() && staged.isSent() && directAt == directEnd;
    }

    /** Gives up: what is owed goes to a queue of pieces that are to be sent elsewhere. */
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
     * How fast a stream delivers, by the acknowledgements that came lately: bytes against the time in which any were
     * owed. A stream that owes and is silent grows slower with every look. Short pieces do not count: however few bytes
     * they have, a round trip is what they take, and a stream that carries many of them would look slow to long ones.
     * One thread.
     */
    static final class DeliveryRate {

        /** What was measured counts half when so many pieces more were delivered. */
        private static final int HORIZON_PIECES = 32;
        /**
         * Before anything is known, all streams are equal; the number matters little, as a few pieces outweigh it: 1
         * GB/s.
         */
        private static final double FIRST_NANOS_PER_BYTE = 1;

        /**
         * A piece that took longer was held up by something else than its rail's speed, which counts as soon as that
         * ends.
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

        /** Notes that the stream owed nothing and owes something from now on. */
        void begin(long now) {
            since = now;
        }

        /** Notes that pieces were acknowledged whose time says nothing of bytes. */
        void deliveredShort(long now) {
            since = now;
        }

        /** Notes that so many bytes were acknowledged. */
        void delivered(long count, long now) {
            bytes += count;
            nanos += Math.clamp(now - since, 1, LONGEST_NANOS);
            since = now;
            if (bytes > horizonBytes) {
                bytes /= 2;
                nanos /= 2;
            }
        }

        /** How long ago the stream delivered something, or began to owe. */
        long silence(long now) {
            return now - since;
        }

        /** How long the stream will take for so many bytes, nanoseconds. */
        double nanosFor(long count, boolean owes, long now) {
            return count * (nanos + (owes ? now - since : 0)) / bytes;
        }
    }
}
