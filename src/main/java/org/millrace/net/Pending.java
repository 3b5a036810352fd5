package org.millrace.net;

import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A connection that is being established. No call blocks; its user polls.
 *
 * @param <T> type of the connection: a sender or a receiver
 */
public interface Pending<T> extends AutoCloseable {

    /**
     * Continues without waiting.
     *
     * @return the connection, once; null while it is not established
     * @throws ConnectionException if it cannot be established
     */
    @Nullable
    T poll();

    /** Gives up if the connection was not returned yet. */
    @Override
    void close();

    /** {@return a pending object that applies the function to this connection, once established} */
    default <R> Pending<R> map(Function<? super T, ? extends R> function) {
        Pending<T> pending = this;
        return new Pending<>() {
            @Override
            public @Nullable R poll() {
                T made = pending.poll();
                return made == null ? null : function.apply(made);
            }

            @Override
            public void close() {
                pending.close();
            }
        };
    }
}
