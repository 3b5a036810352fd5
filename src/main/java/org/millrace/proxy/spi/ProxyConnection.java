package org.millrace.proxy.spi;

import org.jspecify.annotations.Nullable;
import org.millrace.proxy.ProxyAgent;
import org.millrace.trace.AgentTrace;

/** One direction of one connection. A {@link ProxyAgent} calls it on the agent's thread. */
public interface ProxyConnection {

    /**
     * Makes as much progress as is possible without blocking.
     *
     * @return the amount of work done; 0 if there was nothing to do
     * @throws org.millrace.MillraceException if the connection cannot continue
     */
    int progress();

    /**
     * {@return whether nothing is in flight: every announced step was sent or received, and no data is lost if the
     * connection is closed}
     */
    boolean drained();

    /**
     * Completes the transfers in flight without the peer, if possible. Called when the connection's memory is about to
     * be freed, and called again until the connection is drained.
     */
    default void settle() {
        // By default, a connection cannot complete transfers without its peer.
    }

    /**
     * {@return whether data would be lost if the peer closed the connection now} Data would be lost in two cases.
     * First, this side's device has posted data that has possibly not arrived at the peer. Second, this side's device
     * has not received all data from the peer.
     */
    default boolean owesData() {
        return !drained();
    }

    /**
     * Notifies the connection that a traced agent begins to serve it. Called on the agent's thread, and only if the
     * agent writes a trace.
     *
     * @param agent trace of the agent; it contains the clock for the timestamps of the agent's connections
     */
    default void servedBy(AgentTrace agent) {
        // A connection without a trace needs no clock.
    }

    /**
     * Notifies the connection that {@link #progress} is not called again. Called once, on the agent's thread.
     *
     * @param failure reason why the calls stop; null if the connection was removed on request
     */
    void stopped(@Nullable Throwable failure);

    /** {@return this connection's name in messages} */
    ConnectionName name();

    /**
     * {@return text for messages: the last observed state of the connection's memory, for instance
     * {@code "head 16, tail 18, size -1"}}
     */
    String lastSeen();

    /** Listener that is called when a proxy stops. */
    @FunctionalInterface
    public interface StopListener {
        /**
         * Receives the notice that a proxy has stopped. Called once, on the agent's thread, after the proxy's last
         * access to the connection's memory.
         *
         * @param failure reason why the proxy stopped; null if the connection was removed on request
         */
        void stopped(ProxyConnection connection, @Nullable Throwable failure);
    }
}
