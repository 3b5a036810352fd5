package org.millrace.net;

import java.util.function.Function;
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

    /** {@return the same, of which something else is made once it is there} */
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
