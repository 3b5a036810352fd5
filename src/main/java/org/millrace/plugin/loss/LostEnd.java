package org.millrace.plugin.loss;

import java.util.function.BooleanSupplier;

/**
 * This process's end of a connection that was lost.
 *
 * @param peer     the process at the other end
 * @param text     which connection, what happened to it, and what was last seen of it
 * @param goodbye  whether the peer ended the connection on purpose; false if it was killed, or its host is gone
 * @param owesData whether the device has posted data that the peer has not got: looks at the connection's memory
 */
public record LostEnd(String peer, String text, boolean goodbye, BooleanSupplier owesData) {
}
