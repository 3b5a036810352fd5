package org.millrace.net.socket;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.stream.Collectors;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.ConnectionState.ConnectionEnd;

/**
 * The receiving end of a connection. Each piece names its frame, so a piece may arrive on any stream, and is stored
 * only once. The pieces are acknowledged on the stream that delivered them.
 *
 * <p>
 * While the connection waits for a header, the data of one stream is read ahead, up to the first payload that has no
 * destination. A call of {@link #poll} needs at most one read, and none if the previous read emptied the stream. A
 * small frame therefore costs one system call.
 */
final class SocketReceiver extends ConnectionEnd implements FrameReceiver, FrameSender.Railed {

    private final StreamSet connection;
    private final @Nullable StreamRecovery recovery;
    private final Pieces pieces;
    private final ReceiveWindow frames;
    private final UnexpectedPieces unexpected;
    private final ReceiveStream[] streams;
    private boolean headerShown;
    /**
     * Number of consecutive calls of {@link #progress} that did not try to read, because {@link #poll} normally reads
     * the next header.
     */
    private int callsWithoutPoll;
    private int passes;
    /** Total number of the connection's frames, as stated in the shutdown message; -1 before that message. */
    private long total = -1;
    /** The lost process that the peer's shutdown message names; null if the message names none. */
    private @Nullable String lostPeer;
    /** Exception that ended the last stream; null if the stream ended without an exception. */
    private @Nullable IOException lostCause;
    /**
     * Rails of the streams lost most recently. If one call detects the loss of several streams, the order of the losses
     * is unknown. The set then contains the rails of all these streams.
     */
    private final Set<Rail> lastRails = new LinkedHashSet<>();

    /**
     * Creates the receiving end. The receiver owns the streams from now on.
     *
     * @param rails the rail of each stream
     */
    public SocketReceiver(StreamSet connection, Rail[] rails, Pieces pieces) {
        super(connection);
        this.connection = connection;
        recovery = connection.recovery();
        this.pieces = pieces;
        frames = new ReceiveWindow(pieces);
        // Each stream needs one further buffer: a lost stream may leave an incomplete piece in a buffer. Before the
        // loss is detected, the same piece may arrive on another stream.
        unexpected = new UnexpectedPieces(pieces.isWhole() ? 0 : pieces.unaccepted() + rails.length, pieces.bytes(),
                connection.memory(true));
        streams = new ReceiveStream[rails.length];
        for (int stream = 0; stream < streams.length; stream++) {
            streams[stream] = newStream(stream, rails[stream], true);
        }
    }

    private ReceiveStream newStream(int stream, Rail rail, boolean first) {
        return new ReceiveStream(connection.channel(stream), connection.input(stream), rail, frames, pieces, unexpected,
                first, connection);
    }

    @Override
    public @Nullable FrameHeader poll() {
        connection.checkOpen();
        callsWithoutPoll = 0;
        if (!frames.hasNext()) {
            if (pieces.isWhole() && frames.isReceiving()) {
                // The payload in front of the next header is incomplete. progress() receives it.
                return null;
            }
            long moved = move();
            if (!frames.hasNext()) {
                if (frames.completed() == total) {
                    throw connection.closedByPeer(howFar(), lostPeer);
                }
                checkStreams(moved);
                return null;
            }
        }
        headerShown = true;
        return frames.next();
    }

    @Override
    public void accept(@Nullable MemoryRegion region, long offset) {
        connection.checkAccept(headerShown);
        int length = (int) frames.next().payloadBytes();
        long frame = frames.accepted();
        if (length == 0) {
            frames.accept(null, 0);
        } else {
            ByteBuffer view = connection.view(region, offset, length);
            int start = SocketRegion.viewOffset(offset);
            frames.accept(view, start);
            for (int moved = unexpected.moveAll(frame, view, start, pieces); moved > 0; moved--) {
                frames.placed(frame);
            }
        }
        headerShown = false;
        for (ReceiveStream stream : streams) {
            stream.takeStaged();
        }
        frames.retireWhole();
    }

    @Override
    public int progress() {
        connection.checkOpen();
        if (pieces.isWhole() && !frames.isReceiving() && ++callsWithoutPoll < StreamSet.WATCH_INTERVAL) {
            settle();
            // Normally poll() reads the next header. After some calls without poll(), progress() reads it, because the
            // sender may have requested an acknowledgement.
            return 0;
        }
        callsWithoutPoll = 0;
        long before = frames.completed();
        long moved = move() + frames.completed() - before;
        if (frames.completed() != total) {
            checkStreams(moved);
        }
        return (int) Math.min(moved, Integer.MAX_VALUE);
    }

    private long move() {
        long moved = 0;
        // Acknowledgements are sent before this call reads, so they cover only data that earlier calls read. The owner
        // could use that data before this write.
        settle();
        if ((++passes & StreamSet.WATCH_INTERVAL - 1) == 0) {
            loseSilent();
        }
        for (ReceiveStream stream : streams) {
            if (stream.isOpen() && !stream.peerShutDown()) {
                moved += receive(stream);
                frames.retireWhole();
            }
        }
        if (!lastRails.isEmpty() && isAnyOpen()) {
            lastRails.clear();
        }
        return moved;
    }

    /**
     * Closes streams on which nothing has arrived for too long. The operating system does not detect the loss of the
     * peer's host while an acknowledgement is in flight.
     */
    private void loseSilent() {
        for (int stream = 0; stream < streams.length; stream++) {
            boolean waits = streams[stream].isOpen() && !streams[stream].peerShutDown();
            IOException silence = waits ? connection.silence(stream) : null;
            if (silence != null) {
                lose(streams[stream], silence);
            }
        }
    }

    private boolean isAnyOpen() {
        for (ReceiveStream stream : streams) {
            if (stream.isOpen()) {
                return true;
            }
        }
        return false;
    }

    /** Begins to use restored streams, and sends acknowledgements. */
    private void settle() {
        if (recovery != null && recovery.hasNews()) {
            recover(recovery);
        }
        for (ReceiveStream stream : streams) {
            if (stream.isOpen()) {
                stream.acknowledge();
            }
        }
    }

    private void recover(StreamRecovery from) {
        from.readNews();
        for (int stream = 0; stream < streams.length; stream++) {
            StreamRecovery.Successor next = from.take(stream);
            if (next != null) {
                // No more data of the previous stream is read: the answer, written below, tells the sender how much has
                // arrived.
                streams[stream].giveUp();
                connection.replace(stream, next.channel());
                streams[stream] = newStream(stream, streams[stream].rail(), false);
                try {
                    next.channel().write(next.answer());
                } catch (IOException e) {
                    lose(streams[stream], e);
                    continue;
                }
                connection.outage.ended(streams[stream].rail());
            }
        }
    }

    private long receive(ReceiveStream stream) {
        try {
            switch (stream.receive()) {
                case NO_MORE, WAITS -> {}
                case SHUTDOWN -> shutdown(stream);
                case GONE -> lose(stream, null);
                case NOT_PROTOCOL -> throw connection.notProtocol(stream.problem() + " (on " + stream.rail() + ")");
            }
        } catch (IOException e) {
            lose(stream, e);
        }
        return stream.takeMoved();
    }

    private void shutdown(ReceiveStream stream) {
        long said = stream.total();
        if (said < frames.accepted() || said - frames.completed() > pieces.window() || total >= 0 && said != total) {
            throw connection.notProtocol("a shutdown message after " + said + " frames, where "
                    + (total >= 0 ? total + " were announced before"
                            : frames.accepted() + " have a destination and " + pieces.window() + " may be under way")
                    + " (on " + stream.rail() + ")");
        }
        total = said;
        lostPeer = stream.lostPeer();
        stream.endAcknowledgements();
    }

    private void lose(ReceiveStream lost, @Nullable IOException cause) {
        if (cause instanceof ClosedChannelException) {
            throw connection.lost(cause, howFar());
        }
        lost.giveUp();
        lostCause = cause;
        lastRails.add(lost.rail());
        readLostPeer();
        boolean last = !isAnyOpen();
        if (last && cause instanceof SSLException) {
            // TLS has rejected the data, because it was changed on its way.
            throw connection.lost(cause, "on its last rail, " + lost.rail() + ", " + howFar());
        }
        if (total >= 0 || last && recovery == null) {
            // Either all frames have arrived, or no stream will deliver the missing frames.
            return;
        }
        connection.outage.begins(lost.rail(),
                cause == null ? "the peer's end of it is gone" : String.valueOf(cause.getMessage()),
                last ? null : remaining(), -1);
        if (recovery != null) {
            recovery.lost(Arrays.asList(streams).indexOf(lost), last);
        }
    }

    /**
     * Reads the remaining data of the other streams after a shutdown message. A closing sender sends this message on
     * all its streams. Then the sender closes restored streams that it has not used. This receiver must not report the
     * close of these streams as an outage.
     */
    private void readLostPeer() {
        for (ReceiveStream stream : streams) {
            boolean moves = true;
            while (moves && stream.isOpen() && !stream.peerShutDown()) {
                moves = receive(stream) > 0;
            }
        }
    }

    private String remaining() {
        return Arrays.stream(streams)
                .filter(ReceiveStream::isOpen)
                .map(stream -> stream.rail().toString())
                .distinct()
                .collect(Collectors.joining(", "));
    }

    /** Throws an exception if frames are missing and neither a present nor a restored stream can deliver them. */
    private void checkStreams(long moved) {
        for (ReceiveStream stream : streams) {
            if (stream.isOpen() && !stream.peerShutDown()) {
                return;
            }
        }
        if (moved == 0 && !frames.waitsForDestination()) {
            String end = recovery == null || total >= 0 ? "" : recovery.end();
            if (end != null && recovery != null && recovery.isClosedThere()
                    && frames.accepted() == frames.completed()) {
                throw connection.closedByPeer(howFar(), null);
            }
            if (end != null) {
                String last = lastRails.isEmpty() ? ""
                        : "on its last " + (lastRails.size() == 1 ? "rail, " : "rails, ") + lostNames() + ", ";
                throw connection.lost(lostCause, last + howFar() + (end.isEmpty() ? "" : "; " + end));
            }
        }
    }

    private String lostNames() {
        return lastRails.stream().map(Rail::toString).collect(Collectors.joining(" and "));
    }

    @Override
    public int rails() {
        return streams[streams.length - 1].rail().number() + 1;
    }

    @Override
    public void cutRail(int rail) {
        for (ReceiveStream stream : streams) {
            if (stream.rail().number() == rail && stream.isOpen()) {
                lose(stream, new IOException("it was cut on purpose"));
            }
        }
    }

    private String howFar() {
        return "after " + frames.completed() + " whole frames and " + (frames.accepted() - frames.completed())
                + " begun";
    }

    @Override
    public long framesCompleted() {
        return frames.completed();
    }

    @Override
    public void close() {
        connection.close(this::sendShutdown);
    }

    private void sendShutdown() {
        connection.closesInOrder();
        for (int stream = 0; stream < streams.length; stream++) {
            ByteBuffer words = streams[stream].isOpen() ? streams[stream].shutdownMessage(connection.blamed()) : null;
            if (words != null) {
                connection.sendLast(stream, words);
            }
        }
    }
}
