package org.millrace.proxy;

import org.jspecify.annotations.Nullable;

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
