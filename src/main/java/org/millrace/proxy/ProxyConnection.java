package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.trace.AgentTrace;

/** One direction of one connection, driven by a {@link ProxyAgent}. */
public interface ProxyConnection {

    /**
     * Moves what can be moved without waiting.
     *
     * @return how much was done; 0 if nothing
     * @throws org.millrace.MillraceException if the connection cannot go on
     */
    int progress();

    /**
     * {@return whether nothing is under way: every step that was announced has been sent, or received, and the
     * connection may be closed without losing anything}
     */
    boolean drained();

    /**
     * {@return whether a peer that leaves now leaves data behind: data that was posted for it and is not known to have
     * arrived, or data of its own that the device has not got}
     */
    default boolean owesData() {
        return !drained();
    }

    /**
     * An agent begins to serve the connection. Called on its thread, if it writes down what it does.
     *
     * @param agent what it writes down, with the clock that dates everything
     */
    default void servedBy(AgentTrace agent) {
        // most have nothing to date
    }

    /**
     * The proxy will not be asked for progress again. Called once by the agent, on its thread.
     *
     * @param failure why; null if it was asked to stop
     */
    void stopped(@Nullable Throwable failure);

    /** {@return which connection this is, for messages} */
    ConnectionName name();

    /** {@return what was last seen of the connection's memory, for instance {@code "head 16, tail 18, size -1"}} */
    String lastSeen();

    /** Learns that a proxy has stopped. */
    @FunctionalInterface
    public interface StopListener {
        /**
         * Called once, on the agent's thread, after the proxy's last access to its memory.
         *
         * @param failure why; null if it was asked to stop
         */
        void stopped(ProxyConnection connection, @Nullable Throwable failure);
    }
}
