package org.millrace.net.socket.rails;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.stream.RegionViews;
import org.millrace.net.socket.stream.SocketRegion;
import org.millrace.net.socket.stream.StreamSet;

/**
 * The receiving end of a connection over several rails. Pieces say what they are of, so each is put in its place on
 * whichever stream it comes, once; what arrived is acknowledged stream by stream.
 */
public final class RailReceiver implements FrameReceiver {

    private static final Logger LOG = LogManager.getLogger(RailReceiver.class);

    private final SocketNetwork network;
    private final StreamSet streams;
    private final Pieces pieces;
    private final ReceiveWindow frames;
    private final UnexpectedPieces stash;
    private final ReceiveStream[] lanes;
    private final RegionViews views = new RegionViews();
    private boolean headerShown;
    /** How many frames there were in all; -1 while no goodbye has come. */
    private long total = -1;
    /**
     * Those that were lost and not told of yet: which of several came first nobody can say when one pass finds them
     * all.
     */
    private final Set<Rail> lostRails = new LinkedHashSet<>();
    private IOException lostCause;

    /**
     * Takes connected streams over.
     *
     * @param rails          by stream: the rail that it belongs to
     * @param framesInFlight the sender's
     */
    public RailReceiver(SocketNetwork network, StreamSet streams, Rail[] rails, Pieces pieces, int framesInFlight) {
        this.network = network;
        this.streams = streams;
        this.pieces = pieces;
        frames = new ReceiveWindow(pieces, framesInFlight);
        // A place more for each lane: a piece may be in the middle of a lane that is lost, as is not known yet, and
        // come again on another.
        stash = new UnexpectedPieces(pieces.unaccepted() + rails.length);
        lanes = new ReceiveStream[rails.length];
        for (int lane = 0; lane < lanes.length; lane++) {
            lanes[lane] = new ReceiveStream(streams.channel(lane), rails[lane], frames, pieces, stash);
        }
    }

    @Override
    public FrameHeader poll() {
        streams.checkOpen();
        if (!frames.hasNext()) {
            long moved = move();
            if (!frames.hasNext()) {
                if (frames.completed() == total) {
                    throw streams.closedByPeer(howFar());
                }
                checkLanes(moved);
                return null;
            }
        }
        headerShown = true;
        return frames.next();
    }

    @Override
    public void accept(MemoryRegion region, long offset) {
        streams.checkOpen();
        if (!headerShown) {
            throw new IllegalStateException(
                    streams + ": no header is waiting for a destination; accept follows a poll that returned one");
        }
        int length = (int) frames.next().payloadBytes();
        long frame = frames.accepted();
        if (length == 0) {
            frames.accept(null, 0);
        } else {
            ByteBuffer view = views.view(SocketRegion.check(region, network, offset, length), offset);
            int start = SocketRegion.viewOffset(offset);
            frames.accept(view, start);
            for (int moved = stash.moveAll(frame, view, start, pieces); moved > 0; moved--) {
                frames.placed(frame);
            }
        }
        headerShown = false;
        frames.retireWhole();
    }

    @Override
    public int progress() {
        streams.checkOpen();
        long before = frames.completed();
        long moved = move() + frames.completed() - before;
        if (frames.completed() != total) {
            checkLanes(moved);
        }
        return (int) Math.min(moved, Integer.MAX_VALUE);
    }

    private long move() {
        long moved = 0;
        for (ReceiveStream lane : lanes) {
            if (lane.isOpen() && !lane.saidGoodbye()) {
                moved += receive(lane);
                frames.retireWhole();
            }
        }
        for (ReceiveStream lane : lanes) {
            if (lane.isOpen()) {
                lane.acknowledge();
            }
        }
        if (!lostRails.isEmpty()) {
            report();
        }
        return moved;
    }

    private long receive(ReceiveStream lane) {
        try {
            switch (lane.receive()) {
                case NO_MORE, WAITS -> {}
                case GOODBYE -> goodbye(lane);
                case GONE -> lose(lane, null);
                case NOT_PROTOCOL -> throw streams.notProtocol(lane.problem() + " (on " + lane.rail() + ")");
            }
        } catch (IOException e) {
            lose(lane, e);
        }
        return lane.takeMoved();
    }

    private void goodbye(ReceiveStream lane) {
        long said = lane.total();
        if (said < frames.accepted() || said - frames.completed() > frames.limit() || total >= 0 && said != total) {
            throw streams.notProtocol("a goodbye after " + said + " frames, where "
                    + (total >= 0 ? total + " were said before"
                            : frames.accepted() + " have a destination and " + frames.limit() + " may be under way")
                    + " (on " + lane.rail() + ")");
        }
        total = said;
    }

    private void lose(ReceiveStream lost, IOException cause) {
        lostRails.add(lost.rail());
        lostCause = cause;
        for (ReceiveStream lane : lanes) {
            if (lane.rail() == lost.rail() && lane.isOpen()) {
                lane.giveUp();
            }
        }
    }

    /** Tells of rails that were lost, if the connection goes on without them. */
    private void report() {
        String left = Arrays.stream(lanes)
                .filter(ReceiveStream::isOpen)
                .map(lane -> lane.rail().toString())
                .distinct()
                .collect(Collectors.joining(", "));
        if (!left.isEmpty()) {
            String why = lostCause == null ? "the peer's end of it is gone" : lostCause.getMessage();
            LOG.warn("{}: lost {} ({}); the connection goes on over {}", streams, lostNames(), why, left);
            lostRails.clear();
        }
    }

    /** Throws if frames are missing, and no lane is left that could bring them. */
    private void checkLanes(long moved) {
        for (ReceiveStream lane : lanes) {
            if (lane.isOpen() && !lane.saidGoodbye()) {
                return;
            }
        }
        if (moved == 0 && !frames.waitsForDestination()) {
            String last = lostRails.isEmpty() ? ""
                    : "on its last " + (lostRails.size() == 1 ? "rail, " : "rails, ") + lostNames() + ", ";
            throw streams.lost(lostCause, last + howFar());
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
        streams.close(this::sayGoodbye, () -> network.forget(this));
    }

    private void sayGoodbye() {
        try {
            for (ReceiveStream lane : lanes) {
                if (lane.isOpen()) {
                    lane.sayGoodbye();
                }
            }
        } catch (IOException gone) {
            // The peer is gone before us: nobody is left to be told.
        }
    }

    @Override
    public String toString() {
        return streams.toString();
    }
}
