package org.millrace.net.socket;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.MemoryRegion;

/**
 * The receiving end of a connection over TCP. Stream 0 is read ahead while headers are awaited, so that {@link #poll}
 * costs one read at most, and none when the read before it emptied the stream: a small frame costs one system call. A
 * stream is only read when something of a known frame is due on it.
 */
final class StripedReceiver implements FrameReceiver {

    private final StreamSet streams;
    private final Stripes stripes;
    private final FrameWindow window;
    private final FrameWindow.Cursor[] cursors;
    private final StagedInput staged = new StagedInput(HeaderFormat.BYTES);
    private final FrameHeader header = new FrameHeader();
    /** The header was shown, and its payload has no destination yet. */
    private boolean headerShown;
    /** The last read brought less than there was room for: what came later is left to the next call. */
    private boolean readDry;
    /** The last payload has just become whole: its stream may have more. */
    private boolean more;

    public StripedReceiver(StreamSet streams, Stripes stripes, int framesInFlight) {
        this.streams = streams;
        this.stripes = stripes;
        window = new FrameWindow(framesInFlight);
        cursors = new FrameWindow.Cursor[streams.count()];
        for (int stream = 0; stream < cursors.length; stream++) {
            cursors[stream] = new FrameWindow.Cursor(window, stripes, stream);
        }
    }

    @Override
    public @Nullable FrameHeader poll() {
        streams.checkOpen();
        if (headerShown) {
            return header;
        }
        if (window.isFull() || cursors[0].next() != null) {
            return null;
        }
        if (!staged.hasHeader()) {
            if (readDry) {
                readDry = false;
                return null;
            }
            readAhead();
            if (!staged.hasHeader()) {
                return null;
            }
        }
        if (!staged.isDataHeader()) {
            endOfFrames();
            return null;
        }
        staged.takeHeader(header);
        headerShown = true;
        return header;
    }

    private void readAhead() {
        try {
            // What arrived on the other streams before this one ended is received first.
            int read = staged.fill(streams.input(0), more);
            more = false;
            readDry = read > 0 && staged.hasRoom();
            if (read < 0 && progress() == 0) {
                throw streams.lost(null, howFar());
            }
        } catch (IOException e) {
            throw streams.lost(e, howFar());
        }
    }

    /**
     * A shutdown message comes behind the last header, but parts of the last payloads may still be under way on other
     * streams: it counts when they are here.
     */
    private void endOfFrames() {
        if (!staged.isShutdown()) {
            throw streams.notProtocol(staged.headerProblem());
        }
        if (window.isEmpty()) {
            throw streams.closedByPeer(howFar(), staged.lostPeer());
        }
    }

    @Override
    public void accept(@Nullable MemoryRegion region, long offset) {
        streams.checkAccept(headerShown);
        int length = (int) header.payloadBytes();
        if (length == 0) {
            window.add(null, 0, 0, 0);
        } else {
            ByteBuffer view = streams.view(region, offset, length);
            int start = SocketRegion.viewOffset(offset);
            window.add(view, start, length, staged.takePayload(view, start, stripes.end(length, 0)));
        }
        headerShown = false;
        retireWhole();
    }

    @Override
    public int progress() {
        streams.checkOpen();
        more = false;
        if (window.isEmpty()) {
            return 0;
        }
        long moved = 0;
        try {
            for (int stream = 0; stream < cursors.length; stream++) {
                moved += receivePart(stream);
            }
        } catch (IOException e) {
            throw streams.lost(e, howFar());
        }
        retireWhole();
        more = moved > 0;
        return (int) Math.min(moved, Integer.MAX_VALUE);
    }

    private int receivePart(int stream) throws IOException {
        ByteBuffer part = cursors[stream].next();
        if (part == null) {
            return 0;
        }
        int read = streams.input(stream).read(part);
        if (read < 0) {
            throw streams.lost(null, howFar());
        }
        cursors[stream].moved(read);
        return read;
    }

    private void retireWhole() {
        while (window.oldestWhole()) {
            window.retireOldest();
        }
    }

    private String howFar() {
        return "after " + window.completed() + " whole frames and " + (window.added() - window.completed()) + " begun";
    }

    @Override
    public long framesCompleted() {
        return window.completed();
    }

    @Override
    public void close() {
        streams.close(streams::sendShutdown);
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
}
