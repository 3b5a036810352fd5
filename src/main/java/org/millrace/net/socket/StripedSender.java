package org.millrace.net.socket;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;

/**
 * The sending end of a connection over TCP. {@link #offer} only notes a frame; {@link #progress} sends all that was
 * noted, small frames together in one write.
 */
final class StripedSender implements FrameSender {

    private final StreamSet streams;
    private final Stripes stripes;
    private final FrameWindow window;
    private final FrameWindow.Cursor[] cursors;
    private final StagedOutput staged;
    /** For each frame in the window: the position in the staged bytes behind its header. */
    private final long[] stagedEnds;
    private final ShutdownWatch watch = new ShutdownWatch();
    private int idleCalls;

    public StripedSender(StreamSet streams, Stripes stripes, int framesInFlight) {
        this.streams = streams;
        this.stripes = stripes;
        window = new FrameWindow(framesInFlight);
        staged = new StagedOutput(framesInFlight);
        stagedEnds = new long[window.capacity()];
        cursors = new FrameWindow.Cursor[streams.count()];
        for (int stream = 0; stream < cursors.length; stream++) {
            cursors[stream] = new FrameWindow.Cursor(window, stripes, stream);
        }
    }

    @Override
    public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
        streams.checkOpen();
        int length = HeaderFormat.checkedLength(header);
        if (window.isFull()) {
            return false;
        }
        ByteBuffer view = null;
        int start = 0;
        if (length > 0) {
            view = streams.view(region, offset, length);
            start = SocketRegion.viewOffset(offset);
        }
        int copied = staged.add(header, view, start, stripes.end(length, 0), window.free());
        stagedEnds[window.slot(window.added())] = staged.end();
        window.add(view, start, length, copied);
        return true;
    }

    @Override
    public int progress() {
        streams.checkOpen();
        long moved = 0;
        try {
            if (!window.isEmpty()) {
                moved = sendStream0();
                for (int stream = 1; stream < cursors.length; stream++) {
                    moved += sendPart(stream);
                }
                while (window.oldestWhole() && stagedEnds[window.slot(window.completed())] <= staged.sent()) {
                    window.retireOldest();
                }
            }
            if (moved == 0 && (++idleCalls & StreamSet.WATCH_INTERVAL - 1) == 0) {
                lookAtPeer();
            }
        } catch (IOException e) {
            throw failed(e);
        }
        return (int) Math.min(moved, Integer.MAX_VALUE);
    }

    /** Sends headers and payloads in their order, until all is sent or the kernel takes no more. */
    private long sendStream0() throws IOException {
        SocketChannel channel = streams.channel(0);
        FrameWindow.Cursor cursor = cursors[0];
        long moved = 0;
        while (true) {
            ByteBuffer part = cursor.next();
            long barrier = part == null ? staged.end() : stagedEnds[window.slot(cursor.frame())];
            if (staged.sent() < barrier) {
                ByteBuffer bytes = staged.until(barrier);
                int length = bytes.remaining();
                int written = channel.write(bytes);
                staged.moved(written);
                moved += written;
                if (written < length) {
                    return moved;
                }
            }
            if (part == null) {
                return moved;
            }
            int length = part.remaining();
            int written = channel.write(part);
            cursor.moved(written);
            moved += written;
            if (written < length) {
                return moved;
            }
        }
    }

    private int sendPart(int stream) throws IOException {
        ByteBuffer part = cursors[stream].next();
        if (part == null) {
            return 0;
        }
        int written = streams.channel(stream).write(part);
        cursors[stream].moved(written);
        return written;
    }

    private void lookAtPeer() throws IOException {
        switch (watch.look(streams.channel(0))) {
            case THERE -> {}
            case SHUT_DOWN -> throw streams.closedByPeer(howFar(), watch.lostPeer());
            case GONE -> throw streams.lost(null, howFar());
            case TALKS_NONSENSE -> throw streams.notProtocol(watch.problem());
        }
    }

    /** A write to a peer that has closed fails like one to a peer that died: what it said last tells the two apart. */
    private ConnectionException failed(IOException cause) {
        try {
            if (watch.look(streams.channel(0)) == ShutdownWatch.Peer.SHUT_DOWN) {
                return streams.closedByPeer(howFar(), watch.lostPeer());
            }
        } catch (SSLException refused) {
            return streams.lost(refused, howFar()); // it says why the peer has gone
        } catch (IOException alsoLost) {
            cause.addSuppressed(alsoLost);
        }
        return streams.lost(cause, howFar());
    }

    private String howFar() {
        return "after " + window.completed() + " of " + window.added() + " frames were sent";
    }

    @Override
    public long framesCompleted() {
        return window.completed();
    }

    @Override
    public void close() {
        streams.close(this::finish);
    }

    @Override
    public void abort() {
        streams.close(streams.blamed() == null ? () -> {} : this::finish);
    }

    private void finish() {
        try {
            progress();
            if (window.isEmpty()) {
                streams.sendShutdown();
            }
        } catch (ConnectionException lost) {
            // The peer is gone before us; the owner did not want to know of it any more.
        }
    }

    @Override
    public String peer() {
        return streams.peer();
    }

    @Override
    public void blame(String lostPeer) {
        streams.blame(lostPeer);
    }

    @Override
    public String toString() {
        return streams.toString();
    }

    /** Listens, on the sending side, for the one thing that a receiver ever sends: a shutdown message. */
    private static final class ShutdownWatch {

        /** What is known of the peer. */
        enum Peer {
            THERE, SHUT_DOWN, GONE, TALKS_NONSENSE
        }

        private final ByteBuffer buffer = ByteBuffer.allocateDirect(HeaderFormat.BYTES).order(ByteOrder.LITTLE_ENDIAN);

        /** Reads once what has come from the peer. */
        Peer look(SocketChannel channel) throws IOException {
            int read = channel.read(buffer);
            if (!buffer.hasRemaining()) {
                return HeaderFormat.isShutdown(buffer, 0) ? Peer.SHUT_DOWN : Peer.TALKS_NONSENSE;
            }
            return read < 0 ? Peer.GONE : Peer.THERE;
        }

        /** Whom the peer that sent a shutdown message has lost. */
        @Nullable
        String lostPeer() {
            return HeaderFormat.lostPeer(buffer, 0);
        }

        /** What the nonsense was. */
        String problem() {
            return HeaderFormat.isData(buffer, 0) ? "a receiver sends no data, but its header came"
                    : HeaderFormat.problem(HeaderFormat.TYPE_DATA, buffer, 0);
        }
    }
}
