package org.millrace.net.socket.rails;

import java.io.IOException;
import java.nio.channels.ClosedChannelException;
import java.util.Arrays;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Railed;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.stream.RegionViews;
import org.millrace.net.socket.stream.SocketRegion;
import org.millrace.net.socket.stream.StreamSet;
import org.millrace.net.socket.stripes.StripedSender;

/**
 * The sending end of a connection over several rails. A frame is cut into pieces, and each piece goes to the stream
 * that will deliver it first by what it delivered lately. A frame is complete when the receiver has acknowledged all
 * its pieces; until then its memory is kept, so that what a lost rail owed is sent again over the others.
 */
public final class RailSender implements FrameSender, Railed {

    private static final Logger LOG = LogManager.getLogger(RailSender.class);

    /**
     * How many calls of progress that moved nothing pass between two looks at streams that owe nothing; a power of two.
     */
    private static final int WATCH_INTERVAL = 256;

    private final SocketNetwork network;
    private final StreamSet streams;
    private final Pieces pieces;
    private final SendWindow frames;
    private final SendStream[] lanes;
    private final Reinjection overtaking;
    private final PieceQueue again;
    private final RegionViews views = new RegionViews();
    private final LongSupplier clock;
    private int idleCalls;

    /**
     * Takes connected streams over.
     *
     * @param rails by stream: the rail that it belongs to
     * @param clock nanoseconds
     */
    public RailSender(SocketNetwork network, StreamSet streams, Rail[] rails, Pieces pieces, int framesInFlight,
            LongSupplier clock) {
        this.network = network;
        this.streams = streams;
        this.pieces = pieces;
        this.clock = clock;
        frames = new SendWindow(pieces, framesInFlight);
        lanes = new SendStream[rails.length];
        for (int lane = 0; lane < lanes.length; lane++) {
            lanes[lane] = new SendStream(streams.channel(lane), rails[lane], frames, pieces);
        }
        overtaking = new Reinjection(lanes, frames);
        again = new PieceQueue(Integer.highestOneBit(lanes.length * 2 - 1) * SendStream.QUEUE);
    }

    @Override
    public boolean offer(FrameHeader header, MemoryRegion region, long offset) {
        streams.checkOpen();
        StripedSender.checkLength(header);
        if (frames.isFull()) {
            return false;
        }
        int length = (int) header.payloadBytes();
        if (length == 0) {
            frames.add(header, null, 0);
        } else {
            frames.add(header, views.view(SocketRegion.check(region, network, offset, length), offset),
                    SocketRegion.viewOffset(offset));
        }
        return true;
    }

    @Override
    public int progress() {
        streams.checkOpen();
        boolean look = (++idleCalls & WATCH_INTERVAL - 1) == 0;
        boolean full = frames.isFull();
        if (frames.isEmpty() && !look && !full && !isOwed()) {
            return 0;
        }
        long now = clock.getAsLong();
        long before = frames.completed();
        for (SendStream lane : lanes) {
            if (lane.isOpen() && (look || full || lane.owed() > 0 || lane.isCut())) {
                listen(lane, now);
            }
        }
        frames.retireWhole();
        giveOut(now);
        long moved = frames.completed() - before;
        for (SendStream lane : lanes) {
            if (lane.isOpen()) {
                moved += send(lane, now);
            }
        }
        if (look) {
            SendStream silent = overtaking.silent(now);
            if (silent != null) {
                lose(silent, "silent, and others delivered what it owed", null, now);
            }
        }
        return (int) Math.min(moved, Integer.MAX_VALUE);
    }

    private boolean isOwed() {
        for (SendStream lane : lanes) {
            if (lane.owed() > 0) {
                return true;
            }
        }
        return false;
    }

    private void listen(SendStream lane, long now) {
        try {
            switch (lane.readAcks(now)) {
                case THERE -> {}
                case SAID_GOODBYE -> throw goodbye(lane, now);
                case GONE -> lose(lane, "the peer's end of it is gone", null, now);
                case TALKS_NONSENSE ->
                    throw streams.notProtocol("an acknowledgement of what was never sent, or none, on " + lane.rail());
            }
        } catch (IOException e) {
            lose(lane, e.getMessage(), e, now);
        }
    }

    /**
     * A peer that leaves may have received everything: what it acknowledged before its goodbye, on whichever stream, is
     * counted first.
     */
    private ConnectionException goodbye(SendStream said, long now) {
        for (SendStream lane : lanes) {
            if (lane != said && lane.isOpen()) {
                try {
                    lane.readAcks(now);
                } catch (IOException gone) {
                    // The peer has left, and all that can still be known was read.
                }
            }
        }
        frames.retireWhole();
        return streams.closedByPeer(howFar());
    }

    private long send(SendStream lane, long now) {
        try {
            return lane.write(now);
        } catch (IOException e) {
            // A write to a peer that has closed fails like one to a peer that died: what it said last tells the two
            // apart.
            listen(lane, now);
            lose(lane, e.getMessage(), e, now);
            return 0;
        }
    }

    /**
     * Gives pieces to lanes: first those that a lost rail owed, then new ones; and to a lane that has nothing to do,
     * one that another lane is slow with.
     */
    private void giveOut(long now) {
        while (!again.isEmpty()) {
            if (frames.isArrived(again.frame(), again.piece())) {
                again.take();
                continue;
            }
            SendStream lane = fastest(again.length(), now);
            if (lane == null) {
                return;
            }
            lane.give(again.frame(), again.piece(), again.length(), now);
            again.take();
        }
        while (frames.hasFresh()) {
            long frame = frames.freshFrame();
            int piece = frames.freshPiece();
            int length = pieces.length(frames.length(frames.slot(frame)), piece);
            SendStream lane = fastest(length, now);
            if (lane == null) {
                return;
            }
            lane.give(frame, piece, length, now);
            frames.give();
        }
        overtaking.step(now);
    }

    /**
     * The lane that will deliver a piece first; null if that one has enough to do: the others would take even longer.
     */
    private SendStream fastest(int length, long now) {
        SendStream best = null;
        double least = Double.MAX_VALUE;
        for (SendStream lane : lanes) {
            if (lane.isOpen()) {
                double nanos = lane.nanosFor(length, now);
                if (nanos < least) {
                    least = nanos;
                    best = lane;
                }
            }
        }
        return best != null && best.hasRoom() ? best : null;
    }

    /** Gives a lane's rail up: what it owed is sent over the others. Throws if there are none. */
    private void lose(SendStream lost, String why, IOException cause, long now) {
        if (!lost.isOpen()) {
            return;
        }
        if (cause instanceof ClosedChannelException && !lost.isCut()) {
            throw streams.lost(cause, howFar());
        }
        Rail rail = lost.rail();
        int owed = 0;
        for (SendStream lane : lanes) {
            if (lane.rail() == rail && lane.isOpen()) {
                owed += lane.owed();
                lane.giveUp(again, now);
                lane.reset();
            }
        }
        if (railsLeft() == 0) {
            throw streams.lost(lost.isCut() ? new IOException("it was cut on purpose", cause) : cause,
                    "on its last rail, " + rail + ", " + howFar());
        }
        LOG.warn("{}: lost {} ({}): {} of its pieces are sent again; the connection goes on over {}", streams, rail,
                lost.isCut() ? "cut on purpose" : why, owed, remaining());
    }

    private String remaining() {
        return Arrays.stream(lanes)
                .filter(SendStream::isOpen)
                .map(lane -> lane.rail().toString())
                .distinct()
                .collect(Collectors.joining(", "));
    }

    /** How many rails are not lost. */
    int railsLeft() {
        return (int) Arrays.stream(lanes).filter(SendStream::isOpen).map(SendStream::rail).distinct().count();
    }

    @Override
    public int rails() {
        return lanes[lanes.length - 1].rail().number() + 1;
    }

    @Override
    public void cutRail(int rail) {
        for (SendStream lane : lanes) {
            if (lane.rail().number() == rail && lane.isOpen()) {
                lane.cut();
            }
        }
    }

    private String howFar() {
        return "after " + frames.completed() + " of " + frames.added() + " frames were acknowledged";
    }

    @Override
    public long framesCompleted() {
        return frames.completed();
    }

    @Override
    public void close() {
        streams.close(this::finish, () -> network.forget(this));
    }

    @Override
    public void abort() {
        streams.close(() -> {}, () -> network.forget(this));
    }

    private void finish() {
        try {
            progress();
            boolean flushed = frames.isGiven() && again.isEmpty();
            for (SendStream lane : lanes) {
                flushed &= !lane.isOpen() || lane.isFlushed();
            }
            for (SendStream lane : lanes) {
                if (flushed && lane.isOpen()) {
                    lane.sayGoodbye(frames.added());
                }
            }
        } catch (ConnectionException | IOException lost) {
            // The peer is gone before us; the owner did not want to know of it any more.
        }
    }

    @Override
    public String toString() {
        return streams.toString();
    }
}
