package org.millrace.proxy;

/** Learns that a proxy has stopped. */
@FunctionalInterface
public interface StopListener {
    /**
     * Called once, on the agent's thread, after the proxy's last access to its memory.
     *
     * @param connection the proxy
     * @param failure    why, or null if it was asked to stop
     */
    void stopped(ProxyConnection connection, Throwable failure);
}
