package org.millrace.net.socket;

import java.util.HashMap;
import java.util.Map;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.ProcessTrace;

/** Tells of the streams that a connection loses, and of those that are made again. One thread. */
public final class Outage {

    private static final Logger LOG = LogManager.getLogger(Outage.class);

    private final Object connection;
    private final Map<Object, Long> lostSince = new HashMap<>();
    private boolean waits;

    /** @param connection for messages */
    public Outage(Object connection) {
        this.connection = connection;
    }

    /**
     * A stream of a rail is lost, or the only one.
     *
     * @param left what the connection goes on over; null if it waits
     * @param owed pieces that are sent again; -1 if this end sends none
     */
    public void begins(Object rail, String why, @Nullable String left, int owed) {
        waits |= left == null;
        lostSince.putIfAbsent(rail, System.nanoTime());
        LOG.warn("{}: lost {} ({}){}; the connection {}", connection, rail, why,
                owed < 0 ? "" : ": " + owed + " of its pieces are sent again",
                left == null ? "waits until it is made again" : "goes on over " + left);
        if (left == null) {
            trace("lost " + rail + " (" + why + "), its last; waits until it is made again", 0);
        }
    }

    /** A stream of a rail is there again. */
    public void ended(Object rail) {
        Long since = lostSince.remove(rail);
        if (since != null) {
            long nanos = System.nanoTime() - since;
            if (waits) {
                trace(rail + " is made again after " + nanos / 1_000_000 + " ms", nanos);
            }
            LOG.log(waits ? Level.WARN : Level.INFO, "{}: {} is made again after {} ms", connection, rail,
                    nanos / 1_000_000);
            waits = false;
        }
    }

    private void trace(String what, long nanos) {
        ProcessTrace trace = ProcessTrace.current();
        if (trace != null) {
            trace.outage(connection.toString(), what, nanos);
        }
    }
}
