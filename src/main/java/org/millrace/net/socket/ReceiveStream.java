package org.millrace.net.socket;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.ConnectionState;

/**
 * One stream of a receiver, with the piece that has arrived in part, and the counts in the newest acknowledgement. Used
 * by one thread.
 */
final class ReceiveStream {

    /** Result of a call of {@link #receive}. */
    enum End {
        NO_MORE, WAITS, SHUTDOWN, GONE, NOT_PROTOCOL
    }

    /**
     * Maximum length in bytes of a piece that is read before its frame has a destination. The early acknowledgement of
     * such a piece lets the sender release the piece's memory.
     */
    private static final int SMALL_BYTES = 16 << 10;
    /** Maximum number of pieces that one call receives, so that the other streams are also read. */
    private static final int TURN_PIECES = 64;
    private static final int SCRATCH_BYTES = 64 << 10;
    private static final int NO_PLACE = -1;

    private final StreamSet connection;
    private final SocketChannel channel;
    private final StreamInput input;
    private final Rail rail;
    private final ReceiveWindow frames;
    private final Pieces pieces;
    private final UnexpectedPieces unexpected;
    private final StagedInput staged;
    /** Buffer for discarded data; null before its first use. */
    private @Nullable ByteBuffer scratch;
    private final ByteBuffer ack = ByteBuffer.allocateDirect((PieceFormat.Ack.LOST + 1) * PieceFormat.Ack.BYTES)
            .order(ByteOrder.LITTLE_ENDIAN);
    private boolean inPiece;
    private long frame;
    private int piece;
    private int length;
    private int done;
    private int place = NO_PLACE;
    private String problem;
    private long moved;
    private long count;
    private long bytes;
    private long toldCount;
    private long toldBytes;
    /** Whether the next call of {@link #acknowledge} must send an acknowledgement. */
    private boolean urgent;
    private boolean pieceUrgent;
    private long toldAccepted;
    private long toldAcceptedPieces;
    private boolean open = true;
    private boolean peerShutDown;
    private boolean deaf;
    /** Whether the latest read returned data. If so, more data may be available. */
    private boolean more;
    /** Whether the latest read left room in the buffer. If so, the stream is read again only in the next call. */
    private boolean dry;

    /** @param first whether this is one of the connection's first streams; false if it replaces a lost stream */
    ReceiveStream(SocketChannel channel, StreamInput input, Rail rail, ReceiveWindow frames, Pieces pieces,
            UnexpectedPieces unexpected, boolean first, StreamSet connection) {
        this.channel = channel;
        this.input = input;
        this.rail = rail;
        this.frames = frames;
        this.pieces = pieces;
        this.unexpected = unexpected;
        urgent = !first;
        staged = new StagedInput(PieceFormat.BYTES, connection.memory(first));
        this.connection = connection;
        ack.limit(0);
    }

    Rail rail() {
        return rail;
    }

    boolean isOpen() {
        return open;
    }

    boolean peerShutDown() {
        return peerShutDown;
    }

    /** Returns the connection's total number of frames, as stated in the shutdown message. */
    long total() {
        return PieceFormat.frame(staged.buffer(), staged.begin());
    }

    /** Returns the lost process that is named in the sender's shutdown message; null if the message names none. */
    @Nullable
    String lostPeer() {
        return staged.lostPeer();
    }

    String problem() {
        return problem;
    }

    /** Returns the number of bytes and pieces received since the last call of this method. */
    long takeMoved() {
        long bytes = moved;
        moved = 0;
        return bytes;
    }

    /**
     * Receives the available data. Stops at a piece that has no destination yet and that cannot be stored elsewhere.
     */
    End receive() throws IOException {
        more &= pieces.isWhole();
        for (int turn = 0; turn < TURN_PIECES; turn++) {
            if (!inPiece) {
                if (!staged.hasHeader()) {
                    End end = readAhead(PieceFormat.BYTES);
                    if (end != null) {
                        return end;
                    }
                }
                if (staged.isShutdown()) {
                    peerShutDown = true;
                    return End.SHUTDOWN;
                }
                if (PieceFormat.isAsk(staged.buffer(), staged.begin())) {
                    staged.skipHeader(0);
                    urgent = true;
                    continue;
                }
                if (PieceFormat.isSilent(staged.buffer(), staged.begin())) {
                    connection.reported(staged.silentLink());
                    staged.skipHeader(0);
                    continue;
                }
                problem = frames.problem(staged.buffer(), staged.begin());
                if (problem != null) {
                    return End.NOT_PROTOCOL;
                }
                begin();
            }
            End end = receivePayload();
            if (end != null) {
                return end;
            }
            if (pieces.isWhole() && !staged.hasHeader()) {
                return End.NO_MORE; // No more data is known to be available. The next call reads again.
            }
        }
        return End.NO_MORE;
    }

    /**
     * Reads once. Returns null if the required number of bytes is available afterwards, and otherwise the reason to
     * stop.
     */
    private @Nullable End readAhead(int bytes) throws IOException {
        if (dry) {
            dry = false;
            return End.NO_MORE;
        }
        int read = staged.fill(input, more);
        more = read > 0;
        if (read < 0) {
            return End.GONE;
        }
        moved += read;
        dry = read > 0 && staged.hasRoom();
        return staged.bytes() < bytes ? End.NO_MORE : null;
    }

    private void begin() {
        ByteBuffer from = staged.buffer();
        int at = staged.begin();
        frame = PieceFormat.frame(from, at);
        piece = PieceFormat.offset(from, at) / pieces.bytes();
        length = PieceFormat.length(from, at);
        done = 0;
        place = NO_PLACE;
        pieceUrgent = PieceFormat.isUrgent(from, at);
        frames.introduce(frame, from, at);
        staged.skipHeader(length);
        inPiece = true;
        moved++;
    }

    /** Continues to receive the payload of the current piece. Returns null when the payload is complete. */
    private @Nullable End receivePayload() throws IOException {
        if (length <= StagedInput.NUMBER_BYTES && staged.bytes() < length) {
            End end = readAhead(length);
            if (end != null) {
                return end;
            }
        }
        while (done < length) {
            ByteBuffer to;
            int at;
            int limit = length - done;
            // Checked before every read, because the piece may have arrived on another stream since the last read. If
            // so, the frame's owner may already use the destination.
            if (frames.isArrived(frame, piece)) {
                leavePlace();
                to = scratch == null ? scratch = ByteBuffer.allocateDirect(SCRATCH_BYTES) : scratch;
                at = 0;
                limit = Math.min(limit, SCRATCH_BYTES);
            } else if (place != NO_PLACE) {
                to = unexpected.buffer(place);
                at = done;
            } else if (frame < frames.accepted()) {
                to = frames.view(frame);
                at = frames.start(frame) + pieces.offset(piece) + done;
            } else if (!pieces.isWhole() && (length <= SMALL_BYTES || !frames.waitsForDestination())) {
                place = unexpected.take(frame, piece, length);
                if (place == NO_PLACE) {
                    problem = "more than " + pieces.unaccepted() + " pieces of frames that have no destination";
                    return End.NOT_PROTOCOL;
                }
                continue;
            } else {
                return End.WAITS;
            }
            int part = staged.takePayload(to, at, limit);
            if (part == 0) {
                dry = false;
                part = input.read(to.clear().limit(at + limit).position(at), more);
                more = part > 0;
                if (part < 0) {
                    return End.GONE;
                }
                if (part == 0) {
                    return End.NO_MORE;
                }
            }
            done += part;
            moved += part;
        }
        finish();
        return null;
    }

    /** Copies the data that the buffer already contains to the payload's destination, which has become known. */
    void takeStaged() {
        if (inPiece && place == NO_PLACE && frame < frames.accepted() && !frames.isArrived(frame, piece)
                && (length > StagedInput.NUMBER_BYTES || length <= staged.bytes())) {
            int part = staged.takePayload(frames.view(frame), frames.start(frame) + pieces.offset(piece) + done,
                    length - done);
            done += part;
            moved += part;
            if (done == length) {
                finish();
            }
        }
    }

    private void finish() {
        if (frames.isArrived(frame, piece)) {
            leavePlace();
        } else {
            frames.arrived(frame, piece);
            if (place == NO_PLACE) {
                frames.placed(frame);
            } else if (frame < frames.accepted()) {
                unexpected.moveTo(place, frames.view(frame), frames.start(frame) + pieces.offset(piece));
                frames.placed(frame);
            } else {
                unexpected.whole(place);
            }
        }
        place = NO_PLACE;
        inPiece = false;
        count++;
        bytes += PieceFormat.BYTES + length;
        urgent |= pieceUrgent;
    }

    private void leavePlace() {
        if (place != NO_PLACE) {
            unexpected.free(place);
            place = NO_PLACE;
        }
    }

    /** Sends the counts of arrived pieces and frames to the sender, if an acknowledgement is due. */
    void acknowledge() {
        if (deaf) {
            return;
        }
        try {
            if (ack.hasRemaining()) {
                channel.write(ack);
            }
            if (!ack.hasRemaining() && connection.hasSilence(channel)) {
                channel.write(ack.clear().limit(PieceFormat.Ack.encodeSilent(connection.takeSilence(), ack)));
            }
            if (!ack.hasRemaining() && isNews()) {
                PieceFormat.Ack.encode(PieceFormat.Ack.TYPE_ACK, count, frames.accepted(), frames.completed(),
                        ack.clear().limit(PieceFormat.Ack.BYTES), 0);
                urgent = false;
                toldCount = count;
                toldBytes = bytes;
                toldAccepted = frames.accepted();
                toldAcceptedPieces = frames.acceptedPieces();
                channel.write(ack);
            }
        } catch (IOException e) {
            // The sender has closed the stream. The data that it sent before the close is still received. A read
            // detects the stream's end.
            deaf = true;
        }
    }

    /**
     * Returns whether an acknowledgement is due. One reason is that the number of unreported destinations has reached a
     * quarter of the sender's limit. The sender therefore need not wait for reports of destinations.
     */
    private boolean isNews() {
        return urgent || count - toldCount >= pieces.acknowledgedAfter()
                || bytes - toldBytes >= pieces.acknowledgedBytes()
                || frames.accepted() - toldAccepted >= Math.max(pieces.window() / 4, 1)
                || frames.acceptedPieces() - toldAcceptedPieces >= pieces.unaccepted() / 4;
    }

    /**
     * Returns the shutdown message, after writing any remaining acknowledgement to the stream. Returns null if the
     * sender cannot receive the shutdown message.
     */
    @Nullable
    ByteBuffer shutdownMessage(@Nullable String lostPeer) {
        urgent |= count > toldCount;
        acknowledge();
        return deaf || ack.hasRemaining() ? null : ack.limit(PieceFormat.Ack.encodeShutdown(lostPeer, ack.clear()));
    }

    /**
     * Closes this end's output. The closed sender needs no more acknowledgements, and waits only for the end of its
     * input.
     */
    void endAcknowledgements() {
        deaf = true;
        try {
            channel.shutdownOutput();
        } catch (IOException gone) {
            // The stream is closed or reset, so the sender no longer waits for the end of its input.
        }
    }

    /** Closes a lost stream. A piece that has arrived in part will arrive again on another stream. */
    void giveUp() {
        open = false;
        leavePlace();
        inPiece = false;
        input.leave();
        ConnectionState.closeQuietly(channel);
    }
}
