package org.millrace.plugin.net;

import java.time.Duration;

/**
 * How long the connections of one communicator wait, while it is torn down, for peers that take nothing of what its
 * kernels have posted.
 *
 * <p>
 * NCCL ends connections one after the other and does not say whether the communicator was aborted. If it was, all its
 * peers are stuck; so all its connections together wait once: the first that gives up tells the others not to wait.
 * What the peers still take meanwhile is sent all the same, as every connection goes on until it is ended itself.
 */
public final class DrainTimeout {

    private static final Duration TIMEOUT = Duration.ofSeconds(2);

    private volatile boolean over;

    /** For the next connection: how long nothing may move before it is given up. */
    public Duration remaining() {
        return over ? Duration.ZERO : TIMEOUT;
    }

    /** A connection was given up; returns whether it was the first. */
    public synchronized boolean expire() {
        boolean first = !over;
        over = true;
        return first;
    }

    /**
     * Connections are being made: whatever was torn down before was another communicator, of a table version that has
     * no context for each.
     */
    public void restart() {
        over = false;
    }
}
