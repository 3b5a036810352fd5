package org.millrace.device;

import org.jspecify.annotations.Nullable;

/**
 * The device's end of a connection. Blocks of any streams use it one after another, in the order of their issue. Blocks
 * may be issued before the connection is made.
 *
 * @param <P> {@link SendPort} or {@link ReceivePort}
 */
public final class DeviceEndpoint<P> {

    private final String name;
    /** Number of blocks issued so far. Device's thread only. */
    private long issued;
    /** Number of blocks that have finished. Device's thread only. */
    private long passed;
    private volatile @Nullable P port;

    public DeviceEndpoint(String name) {
        this.name = name;
    }

    public String name() {
        return name;
    }

    public void connect(P connected) {
        port = connected;
    }

    /** Reserves the place after all blocks that were issued before, and returns it. Device's thread only. */
    public long reserve() {
        return issued++;
    }

    public boolean admits(long place) {
        return passed == place && port != null;
    }

    public P port() {
        return port;
    }

    public void leave() {
        passed++;
    }

    @Override
    public String toString() {
        return port == null ? name + " is not connected yet" : port.toString();
    }
}
