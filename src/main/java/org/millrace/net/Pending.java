package org.millrace.net;

import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A connection that is being established. No call blocks; the owner polls.
 *
 * @param <T> type of the connection, for instance a sender or a receiver
 */
public interface Pending<T> extends AutoCloseable {

    /**
     * Advances the establishment without waiting.
     *
     * @return the connection, which only one call returns; null while the connection is not established
     * @throws ConnectionException if the connection cannot be established
     */
    @Nullable
    T poll();

    /** {@return a sentence about the connection and the event that it awaits} */
    default String describe() {
        return this + " waits for its other end";
    }

    /** Cancels the establishment. A connection that {@link #poll} has returned is not affected. */
    @Override
    void close();

    /** {@return a pending result of a function for this connection, available once this connection is established} */
    default <R> Pending<R> map(Function<? super T, ? extends R> function) {
        Pending<T> pending = this;
        return new Pending<>() {
            @Override
            public @Nullable R poll() {
                T made = pending.poll();
                return made == null ? null : function.apply(made);
            }

            @Override
            public String describe() {
                return pending.describe();
            }

            @Override
            public void close() {
                pending.close();
            }
        };
    }
}
