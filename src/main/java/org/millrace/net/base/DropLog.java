package org.millrace.net.base;

import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.net.socket.handshake.IncomingStream;
import org.millrace.net.socket.handshake.SocketListener;

/** A listener's log of those it dropped: a few lines in a while, however many strangers knock. One thread at a time. */
public final class DropLog {

    private static final Logger LOG = LogManager.getLogger(SocketListener.class);
    private static final int LINES_PER_INTERVAL = 10;
    private static final long INTERVAL_NANOS = 10_000_000_000L;

    private final String listener;
    private long intervalStart = System.nanoTime();
    private int lines;
    private long suppressed;
    private long dropped;

    public DropLog(String listener) {
        this.listener = listener;
    }

    public void dropped(IncomingStream stream, String why) {
        dropped++;
        long now = System.nanoTime();
        if (now - intervalStart > INTERVAL_NANOS) {
            intervalStart = now;
            lines = 0;
        }
        if (lines == LINES_PER_INTERVAL) {
            suppressed++;
            return;
        }
        lines++;
        LOG.warn("{} dropped a connection from {}: {}{}", listener, stream, why,
                suppressed == 0 ? "" : " (" + suppressed + " more were dropped unsaid)");
        suppressed = 0;
    }

    public long count() {
        return dropped;
    }
}
