package org.millrace.plugin;

import java.util.function.BooleanSupplier;

/**
 * This process's end of a connection that was lost.
 *
 * @param peer     the process at the other end
 * @param text     which connection, what happened to it, and what was last seen of it
 * @param orderly  whether the peer ended the connection on purpose; false if it was killed, or its host is gone
 * @param owesData whether the device has posted data that the peer has not got: looks at the connection's memory
 * @param release  ends the waits of kernels, if that is possible, before the process ends; called again and again
 */
record LostEnd(String peer, String text, boolean orderly, BooleanSupplier owesData, Runnable release) {

    private static final String GIN = "GIN";

    /** A connection whose kernels' waits nobody can end. */
    public LostEnd(String peer, String text, boolean orderly, BooleanSupplier owesData) {
        this(peer, text, orderly, owesData, () -> {});
    }

    /** All connections of a communicator's GIN: the first failure poisons it. */
    public static LostEnd ofGin(String text, BooleanSupplier owesData, Runnable release) {
        return new LostEnd(GIN, text, false, owesData, release);
    }

    String line() {
        return peer.equals(GIN) ? "GIN has failed, and kernels wait for what never comes: " + text
                : "lost the peer " + peer + ", which this process waits for: " + text;
    }
}
