package org.millrace.net.socket;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ClosedChannelException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import javax.net.ssl.SSLException;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.Waiting;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.ConnectionState.ConnectionEnd;

/**
 * The sending end of a connection. A frame is divided into pieces, and each piece is sent on the stream that is
 * expected to deliver it first. The expectation follows from each stream's unacknowledged data and recent rate. The
 * memory of a frame, or a copy of it, is kept until the receiver has acknowledged all pieces of the frame.
 *
 * <p>
 * Unacknowledged pieces of a lost stream are sent again, over other streams or over the stream's successor. A
 * connection with one stream does not divide frames, and its acknowledgements are rare.
 */
final class SocketSender extends ConnectionEnd implements FrameSender, FrameSender.Railed {

    private static final Logger LOG = LogManager.getLogger(SocketSender.class);

    /**
     * Time to wait for acknowledgements on other streams, after the peer's shutdown message has arrived on one stream.
     */
    private static final long LAST_WORDS_NANOS = 1_000_000_000;
    /** Interval at which a closing sender checks whether the frames of lost streams were sent again. */
    private static final long CLOSE_STEP_NANOS = 1_000_000;

    /** Number of calls of {@link #progress} between two reads of acknowledgements; a power of two. For one stream. */
    private static final int ACKNOWLEDGEMENT_INTERVAL = 8;
    /**
     * Number of consecutive calls of {@link #progress} after which an acknowledgement of held frames is requested. None
     * of these calls assigns a fresh piece, that is, a piece that was never assigned to a stream.
     */
    private static final int ASK_AFTER = 64;

    private final StreamSet connection;
    private final @Nullable StreamRecovery recovery;
    private final Pieces pieces;
    private final SendWindow frames;
    private final SendStream[] streams;
    private final Reinjection reinjection;
    private final ShortPieces shortPieces;
    private final PieceQueue again;
    private final LongSupplier clock;
    private int calls;
    /** Value of {@link #calls} when a fresh piece was last assigned to a stream. */
    private int givenAt;
    /**
     * Whether a shutdown message of the peer has arrived on at least one stream. The next field is the arrival time of
     * the first such message.
     */
    private boolean hasLeft;
    private long leftAt;
    /** The lost process that the peer's shutdown message names; null if the message names none. */
    private @Nullable String lostPeer;
    /**
     * Number of frames that had been offered when a stream was last lost. Released frames with a smaller number must be
     * sent again before a close.
     */
    private long owedFrames;
    /** Exception that ended the last stream; null if the stream ended without an exception. */
    private @Nullable IOException lostCause;
    private @Nullable Rail lastRail;

    /**
     * Creates the sending end. The sender owns the streams from now on.
     *
     * @param rails the rail of each stream
     * @param clock clock in nanoseconds
     */
    public SocketSender(StreamSet connection, Rail[] rails, Pieces pieces, LongSupplier clock) {
        super(connection);
        this.connection = connection;
        recovery = connection.recovery();
        this.pieces = pieces;
        this.clock = clock;
        frames = new SendWindow(pieces);
        streams = new SendStream[rails.length];
        for (int stream = 0; stream < streams.length; stream++) {
            streams[stream] = newStream(stream, rails[stream], true);
        }
        reinjection = new Reinjection(streams, frames);
        shortPieces = new ShortPieces(streams);
        // With several streams the queue is twice as long, because two streams may have sent the same unacknowledged
        // piece.
        again = new PieceQueue(
                (pieces.isWhole() ? 1 : 2) * Integer.highestOneBit(streams.length * 2 - 1) * SendStream.queue(pieces));
    }

    private SendStream newStream(int stream, Rail rail, boolean first) {
        return new SendStream(connection.channel(stream), connection.input(stream), rail, frames, pieces, first,
                connection);
    }

    @Override
    public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        connection.checkOpen();
        int length = HeaderFormat.checkedLength(header);
        if (frames.isFull()) {
            return false;
        }
        if (length == 0) {
            frames.add(header, null, 0);
        } else {
            frames.add(header, connection.view(region, offset, length), SocketRegion.viewOffset(offset));
        }
        return true;
    }

    @Override
    public int progress() {
        connection.checkOpen();
        if (recovery != null && recovery.hasNews()) {
            recover(recovery);
        }
        boolean look = (++calls & StreamSet.WATCH_INTERVAL - 1) == 0;
        boolean full = frames.isFull();
        if (!look && !full && !hasLeft && !hasWork()) {
            return 0;
        }
        long now = clock.getAsLong();
        long before = frames.released();
        for (SendStream stream : streams) {
            if (stream.isOpen() && (look || full || stream.isCut() || mayHear(stream))) {
                listen(stream, now);
            }
        }
        if (hasLeft) {
            return readLostPeer(now, before);
        }
        frames.retireWhole();
        giveOut(now);
        if (frames.isAnyUnasked() && (frames.isHasty() || calls - givenAt > ASK_AFTER)) {
            streams[0].ask();
        }
        long moved = 0;
        for (SendStream stream : streams) {
            if (stream.isOpen()) {
                moved += send(stream, now);
            }
        }
        frames.retireWhole();
        moved += frames.released() - before;
        if (look) {
            tellOfSilence();
            SendStream silent = reinjection.silent(now);
            if (silent != null) {
                lose(silent, "silent, and others delivered what it owed", null, now);
            }
            for (int stream = 0; stream < streams.length; stream++) {
                IOException silence = streams[stream].isOpen() ? connection.silence(stream) : null;
                if (silence != null) {
                    lose(streams[stream], silence.getMessage(), silence, now);
                }
            }
        }
        return (int) Math.min(moved, Integer.MAX_VALUE);
    }

    private void tellOfSilence() {
        for (SendStream stream : streams) {
            if (stream.isOpen() && connection.hasSilence(stream.channel()) && stream.tell(connection)) {
                return;
            }
        }
    }

    /** Returns whether this end can send data, or can possibly read messages. */
    private boolean hasWork() {
        if (frames.hasFresh() || !again.isEmpty() || frames.isHasty() && frames.isAnyUnasked()) {
            return true;
        }
        for (SendStream stream : streams) {
            if (stream.isOpen() && (!stream.isFlushed() || stream.isCut() || mayHear(stream))) {
                return true;
            }
        }
        return false;
    }

    /**
     * Returns whether a stream possibly contains an acknowledgement that this end needs. With a single stream, this end
     * needs an acknowledgement only while frames are held or the staging buffer is full. At other times
     * acknowledgements stay unread.
     */
    private boolean mayHear(SendStream stream) {
        if (!stream.isGreeted()) {
            return true;
        }
        return pieces.isWhole()
                ? (calls & ACKNOWLEDGEMENT_INTERVAL - 1) == 0 && (frames.isAnyHeld() || !stream.hasStagingRoom())
                : stream.owed() > 0;
    }

    /** Begins to use restored streams, and closes streams that the receiver has lost. */
    private void recover(StreamRecovery from) {
        from.readNews();
        long now = clock.getAsLong();
        for (int stream = 0; stream < streams.length; stream++) {
            if (from.isLostThere(stream)) {
                lose(streams[stream], "the peer has lost it", null, now);
            }
            StreamRecovery.Successor next = from.take(stream);
            if (next != null) {
                SendStream before = streams[stream];
                if (before.isOpen()) {
                    giveUp(before, now);
                }
                connection.replace(stream, next.channel());
                streams[stream] = newStream(stream, before.rail(), false);
                reinjection.replaced(stream);
                connection.outage.ended(streams[stream].rail());
            }
        }
        String end = from.end();
        if (end != null && !isAnyOpen()) {
            if (from.isClosedThere()) {
                tell();
                throw connection.closedByPeer(howFar(), null);
            }
            throw connection.lost(lostCause, "on its last rail, " + lastRail + ", " + howFar() + "; " + end);
        }
    }

    private boolean isAnyOpen() {
        for (SendStream stream : streams) {
            if (stream.isOpen()) {
                return true;
            }
        }
        return false;
    }

    private void listen(SendStream stream, long now) {
        try {
            switch (stream.readAcks(now)) {
                case THERE -> {}
                case SHUT_DOWN -> {
                    leftAt = hasLeft ? leftAt : now;
                    hasLeft = true;
                    lostPeer = stream.lostPeer();
                }
                case GONE -> lose(stream, "the peer's end of it is gone", null, now);
                case PROTOCOL_ERROR -> throw connection
                        .notProtocol("an acknowledgement of data that was never sent, or none, on " + stream.rail());
            }
        } catch (IOException e) {
            lose(stream, e.getMessage(), e, now);
        }
    }

    /**
     * Handles a peer that has sent a shutdown message. The peer may have received all frames. Acknowledgements that the
     * peer sent before this message may still be in flight on other rails, and this end waits for them.
     */
    private int readLostPeer(long now, long before) {
        boolean more = false;
        for (SendStream stream : streams) {
            try {
                more |= stream.isOpen() && stream.readAcks(now) == SendStream.Peer.THERE;
            } catch (IOException gone) {
                // The stream has ended, and all its messages were read.
            }
        }
        frames.retireWhole();
        if (frames.isEmpty() || !more || now - leftAt > LAST_WORDS_NANOS) {
            // The delivered bytes are logged here, because the close of a failed connection does not log them.
            tell();
            throw connection.closedByPeer(howFar(), lostPeer);
        }
        return (int) (frames.released() - before);
    }

    private long send(SendStream stream, long now) {
        try {
            return stream.write(now);
        } catch (IOException e) {
            // A write to a closed peer fails in the same way as a write to an ended process. The peer's final messages
            // distinguish these two cases.
            listen(stream, now);
            lose(stream, e.getMessage(), e, now);
            return 0;
        }
    }

    /**
     * Assigns pieces to streams: first the unacknowledged pieces of lost streams, then pieces that were not assigned
     * yet. An idle stream may also send a piece of a slow stream.
     */
    private void giveOut(long now) {
        while (!again.isEmpty()) {
            if (frames.isArrived(again.frame(), again.piece())) {
                again.take();
                continue;
            }
            SendStream stream = fastest(again.length(), now);
            if (stream == null) {
                return;
            }
            stream.give(again.frame(), again.piece(), again.length(), now);
            again.take();
        }
        while (frames.hasFresh()) {
            long frame = frames.freshFrame();
            int piece = frames.freshPiece();
            int length = pieces.length(frames.length(frame), piece);
            SendStream stream = ShortPieces.isShort(length) ? shortPieces.choose(length, now) : fastest(length, now);
            if (stream == null) {
                return;
            }
            stream.give(frame, piece, length, now);
            givenAt = calls;
            frames.give();
        }
        reinjection.step(now);
    }

    /**
     * Returns the stream that is expected to deliver a piece first. Returns null if this stream has no room, even if
     * another stream has room. The other stream would deliver the piece later.
     */
    private SendStream fastest(int length, long now) {
        SendStream best = null;
        double least = Double.MAX_VALUE;
        for (SendStream stream : streams) {
            if (stream.isOpen()) {
                double nanos = stream.nanosFor(length, now);
                if (nanos < least) {
                    least = nanos;
                    best = stream;
                }
            }
        }
        return best != null && best.hasRoom() ? best : null;
    }

    /**
     * Closes a lost stream, and sends its unacknowledged pieces over other streams. Throws an exception if no stream is
     * left, and none will be restored.
     */
    private void lose(SendStream lost, String why, @Nullable IOException cause, long now) {
        if (!lost.isOpen()) {
            return;
        }
        if (cause instanceof ClosedChannelException && !lost.isCut()) {
            throw connection.lost(cause, howFar());
        }
        if (hasLeft) {
            // The peer has sent its shutdown message, so the end of a stream is no loss.
            return;
        }
        int owed = giveUp(lost, now);
        boolean last = !isAnyOpen();
        lostCause = lost.isCut() ? new IOException("it was cut on purpose", cause) : cause;
        lastRail = lost.rail();
        if (last && (recovery == null || cause instanceof SSLException)) {
            throw connection.lost(lostCause, "on its last rail, " + lastRail + ", " + howFar());
        }
        connection.outage.begins(lost.rail(), lost.isCut() ? "cut on purpose" : why, last ? null : remaining(), owed);
        if (recovery != null) {
            recovery.lost(indexOf(lost), last);
        }
    }

    private int giveUp(SendStream lost, long now) {
        int owed = lost.owed();
        owedFrames = frames.added();
        lost.giveUp(again, now);
        lost.reset();
        return owed;
    }

    private int indexOf(SendStream stream) {
        return Arrays.asList(streams).indexOf(stream);
    }

    private String remaining() {
        return Arrays.stream(streams)
                .filter(SendStream::isOpen)
                .map(stream -> stream.rail().toString())
                .distinct()
                .collect(Collectors.joining(", "));
    }

    /** Describes how many payload bytes each rail has delivered. */
    private String delivered() {
        Map<Rail, Long> bytes = new LinkedHashMap<>();
        for (SendStream stream : streams) {
            bytes.merge(stream.rail(), stream.deliveredBytes(), Long::sum);
        }
        return bytes.entrySet()
                .stream()
                .map(each -> each.getKey() + ": " + each.getValue())
                .collect(Collectors.joining(", "));
    }

    /** Returns the number of rails that have at least one open stream. */
    int railsLeft() {
        return (int) Arrays.stream(streams).filter(SendStream::isOpen).map(SendStream::rail).distinct().count();
    }

    @Override
    public int rails() {
        return streams[streams.length - 1].rail().number() + 1;
    }

    @Override
    public void cutRail(int rail) {
        for (SendStream stream : streams) {
            if (stream.rail().number() == rail && stream.isOpen()) {
                stream.cut();
            }
        }
    }

    private String howFar() {
        return "after " + frames.completed() + " of " + frames.added() + " frames were acknowledged";
    }

    @Override
    public boolean isProcessorBound() {
        return true;
    }

    @Override
    public void settle() {
        frames.hasten();
    }

    @Override
    public long framesCompleted() {
        return frames.released();
    }

    @Override
    public void close() {
        connection.close(this::finish);
    }

    @Override
    public void abort() {
        connection.close(connection.blamed() == null ? this::tell : this::finish);
    }

    private void tell() {
        LOG.info("{}: bytes delivered over {}", connection, delivered());
    }

    private void finish() {
        tell();
        try {
            progress();
            long start = System.nanoTime();
            while (frames.completed() < Math.min(owedFrames, frames.released()) && !isFlushed() && mayWait(start)) {
                // The owner has already been told that these frames were sent. Either a stream delivers them again, or
                // the connection is lost.
                Waiting.pause(CLOSE_STEP_NANOS);
                progress();
            }
            boolean flushed = isFlushed();
            for (int stream = 0; flushed && stream < streams.length; stream++) {
                if (streams[stream].isOpen()) {
                    ByteBuffer shutdown = ByteBuffer.allocate(PieceFormat.BYTES).order(ByteOrder.LITTLE_ENDIAN);
                    PieceFormat.encodeShutdown(frames.added(), connection.blamed(), shutdown, 0);
                    connection.sendLast(stream, shutdown);
                }
            }
            if (frames.completed() == frames.added()) {
                // This call closes restored streams. The call follows the shutdown message, so that the receiver does
                // not report an outage.
                connection.closesInOrder();
            }
        } catch (ConnectionException lost) {
            // The peer was closed first. The owner makes no more calls that could throw this exception.
        }
    }

    private boolean mayWait(long start) {
        return recovery == null ? System.nanoTime() - start < Reconnector.CLOSING_NANOS : recovery.mayWait();
    }

    /** Returns whether a stream is open, and all pieces have been passed to the operating system. */
    private boolean isFlushed() {
        boolean flushed = isAnyOpen() && frames.isGiven() && again.isEmpty();
        for (SendStream stream : streams) {
            flushed &= !stream.isOpen() || stream.isFlushed();
        }
        return flushed;
    }
}
