package org.millrace.net.socket;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;

/**
 * The receiving end of a connection over several rails. Pieces say what they are of, so each is put in its place once,
 * on any stream; what arrived is acknowledged stream by stream.
 */
final class RailReceiver implements FrameReceiver {

    private static final Logger LOG = LogManager.getLogger(RailReceiver.class);

    private final StreamSet connection;
    private final Pieces pieces;
    private final ReceiveWindow frames;
    private final UnexpectedPieces unexpected;
    private final ReceiveStream[] streams;
    private boolean headerShown;
    /** How many frames there were in all; -1 while no shutdown message has come. */
    private long total = -1;
    /** Whom the peer that said it has lost itself; null if nobody. */
    private @Nullable String lostPeer;
    /**
     * Rails that were lost and are not in the log yet: when one pass finds several, their order is not known.
     */
    private final Set<Rail> lostRails = new LinkedHashSet<>();
    private IOException lostCause;

    /**
     * Takes connected streams over.
     *
     * @param rails          by stream: the rail that it belongs to
     * @param framesInFlight the sender's
     */
    public RailReceiver(StreamSet connection, Rail[] rails, Pieces pieces, int framesInFlight) {
        this.connection = connection;
        this.pieces = pieces;
        frames = new ReceiveWindow(pieces, framesInFlight);
        // A place more for each stream: a piece may be in the middle of a stream that is lost, as is not known yet, and
        // come again on another.
        unexpected = new UnexpectedPieces(pieces.unaccepted() + rails.length);
        streams = new ReceiveStream[rails.length];
        for (int stream = 0; stream < streams.length; stream++) {
            streams[stream] = new ReceiveStream(connection.channel(stream), connection.input(stream), rails[stream],
                    frames, pieces, unexpected);
        }
    }

    @Override
    public @Nullable FrameHeader poll() {
        connection.checkOpen();
        if (!frames.hasNext()) {
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
        frames.retireWhole();
    }

    @Override
    public int progress() {
        connection.checkOpen();
        long before = frames.completed();
        long moved = move() + frames.completed() - before;
        if (frames.completed() != total) {
            checkStreams(moved);
        }
        return (int) Math.min(moved, Integer.MAX_VALUE);
    }

    private long move() {
        long moved = 0;
        for (ReceiveStream stream : streams) {
            if (stream.isOpen() && !stream.peerShutDown()) {
                moved += receive(stream);
                frames.retireWhole();
            }
        }
        for (ReceiveStream stream : streams) {
            if (stream.isOpen()) {
                stream.acknowledge();
            }
        }
        if (!lostRails.isEmpty()) {
            report();
        }
        return moved;
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
        if (said < frames.accepted() || said - frames.completed() > frames.limit() || total >= 0 && said != total) {
            throw connection.notProtocol("a shutdown message after " + said + " frames, where "
                    + (total >= 0 ? total + " were said before"
                            : frames.accepted() + " have a destination and " + frames.limit() + " may be under way")
                    + " (on " + stream.rail() + ")");
        }
        total = said;
        lostPeer = stream.lostPeer();
    }

    private void lose(ReceiveStream lost, IOException cause) {
        lostRails.add(lost.rail());
        lostCause = cause;
        for (ReceiveStream stream : streams) {
            if (stream.rail() == lost.rail() && stream.isOpen()) {
                stream.giveUp();
            }
        }
    }

    /** Tells of rails that were lost, if the connection goes on without them. */
    private void report() {
        String left = Arrays.stream(streams)
                .filter(ReceiveStream::isOpen)
                .map(stream -> stream.rail().toString())
                .distinct()
                .collect(Collectors.joining(", "));
        if (!left.isEmpty()) {
            String why = lostCause == null ? "the peer's end of it is gone" : lostCause.getMessage();
            LOG.warn("{}: lost {} ({}); the connection goes on over {}", connection, lostNames(), why, left);
            lostRails.clear();
        }
    }

    /** Throws if frames are missing, and no stream is left that could bring them. */
    private void checkStreams(long moved) {
        for (ReceiveStream stream : streams) {
            if (stream.isOpen() && !stream.peerShutDown()) {
                return;
            }
        }
        if (moved == 0 && !frames.waitsForDestination()) {
            String last = lostRails.isEmpty() ? ""
                    : "on its last " + (lostRails.size() == 1 ? "rail, " : "rails, ") + lostNames() + ", ";
            throw connection.lost(lostCause, last + howFar());
        }
    }

    private String lostNames() {
        return lostRails.stream().map(Rail::toString).collect(Collectors.joining(" and "));
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
        try {
            for (ReceiveStream stream : streams) {
                if (stream.isOpen()) {
                    stream.sendShutdown(connection.blamed());
                }
            }
        } catch (IOException gone) {
            // The peer is gone before us.
        }
    }

    @Override
    public void blame(String culprit) {
        connection.blame(culprit);
    }

    @Override
    public String peer() {
        return connection.peer();
    }

    @Override
    public String toString() {
        return connection.toString();
    }
}
