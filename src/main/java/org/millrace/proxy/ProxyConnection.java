package org.millrace.proxy;

import org.jspecify.annotations.Nullable;
import org.millrace.trace.AgentTrace;

/** One direction of one connection, driven by a {@link ProxyAgent}. */
public interface ProxyConnection {

    /**
     * Moves all data that can be moved without blocking.
     *
     * @return the amount of work done; 0 if nothing was moved
     * @throws org.millrace.MillraceException if the connection cannot continue
     */
    int progress();

    /**
     * {@return whether nothing is in flight: every announced step has been sent or received, and the connection may be
     * closed without loss}
     */
    boolean drained();

    /**
     * {@return whether data is lost if the peer leaves now} This is data that was posted for the peer and is not known
     * to have arrived, or data from the peer that the device has not received.
     */
    default boolean owesData() {
        return !drained();
    }

    /**
     * Notifies the connection that an agent begins to serve it. Called on the agent's thread, if the agent writes a
     * trace.
     *
     * @param agent the agent's trace, with the clock of all its timestamps
     */
    default void servedBy(AgentTrace agent) {
        // most connections have no timestamps
    }

    /**
     * Notifies the connection that its progress will not be called again. Called once by the agent, on the agent's
     * thread.
     *
     * @param failure the reason; null if the connection was removed on request
     */
    void stopped(@Nullable Throwable failure);

    /** {@return the name of this connection, for messages} */
    ConnectionName name();

    /**
     * {@return the last observed state of the connection's memory, for instance {@code "head 16, tail 18, size -1"}}
     */
    String lastSeen();

    /** Listener that is notified when a proxy has stopped. */
    @FunctionalInterface
    public interface StopListener {
        /**
         * Called once, on the agent's thread, after the proxy's last access to its memory.
         *
         * @param failure the reason; null if the connection was removed on request
         */
        void stopped(ProxyConnection connection, @Nullable Throwable failure);
    }
}
