package org.millrace.net.socket;

import java.util.HashMap;
import java.util.Map;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.ProcessTrace;
import org.millrace.trace.SilenceTrace;

/** Tells of the streams that a connection loses, and of those that are made again. */
public final class Outage {

    private static final Logger LOG = LogManager.getLogger(Outage.class);

    private final Object connection;
    private final String peer;
    private final Map<Object, Long> lostSince = new HashMap<>();
    private boolean waits;
    /** While it waits, what others see of that; null if there is no trace. */
    private @Nullable SilenceTrace cut;

    /**
     * Of one connection.
     *
     * @param connection for messages
     * @param peer       the process at its other end
     */
    public Outage(Object connection, String peer) {
        this.connection = connection;
        this.peer = peer;
    }

    /**
     * A stream of a rail is lost, or the only one.
     *
     * @param left what the connection goes on over; null if it waits
     * @param owed pieces that are sent again; -1 if this end sends none
     */
    public synchronized void begins(Object rail, String why, @Nullable String left, int owed) {
        lostSince.putIfAbsent(rail, System.nanoTime());
        LOG.warn("{}: lost {} ({}){}; the connection {}", connection, rail, why,
                owed < 0 ? "" : ": " + owed + " of its pieces are sent again",
                left == null ? "waits until it is made again" : "goes on over " + left);
        if (left == null) {
            waits = true;
            over();
            ProcessTrace trace = ProcessTrace.current();
            cut = trace == null ? null
                    : trace.cut(connection.toString(), peer,
                            "lost " + rail + " (" + why + "), its last; waits until it is made again");
        }
    }

    /** A stream of a rail is there again. */
    public synchronized void ended(Object rail) {
        Long since = lostSince.remove(rail);
        if (since != null) {
            long nanos = System.nanoTime() - since;
            ProcessTrace trace = ProcessTrace.current();
            if (waits && trace != null) {
                trace.outage(connection.toString(), rail + " is made again after " + nanos / 1_000_000 + " ms", nanos);
            }
            LOG.log(waits ? Level.WARN : Level.INFO, "{}: {} is made again after {} ms", connection, rail,
                    nanos / 1_000_000);
            waits = false;
            over();
        }
    }

    /** Nobody waits any more. */
    public synchronized void over() {
        if (cut != null) {
            cut.heard();
            cut = null;
        }
    }
}
