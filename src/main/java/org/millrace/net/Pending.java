package org.millrace.net;

import org.jspecify.annotations.Nullable;

/**
 * A connection that is being made. No call blocks: its user polls.
 *
 * @param <T> what the connection will be: a sender or a receiver
 */
public interface Pending<T> extends AutoCloseable {

    /**
     * Goes on with what can be done without waiting.
     *
     * @return the connection, once; null while it is not made yet
     * @throws ConnectionException if it cannot be made
     */
    @Nullable
    T poll();

    /** Gives up, if the connection was not returned yet. */
    @Override
    void close();
}
