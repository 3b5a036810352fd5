package org.millrace.device;

import org.jspecify.annotations.Nullable;

/**
 * The device's end of a connection. The blocks of all streams use the endpoint one after another, in the order in which
 * the blocks were created. Blocks may be created before the connection exists.
 *
 * @param <P> {@link SendPort} or {@link ReceivePort}
 */
public final class DeviceEndpoint<P> {

    private final String name;
    /** Number of places that blocks have reserved so far in the order of use. Device's thread only. */
    private long issued;
    /** Number of blocks that have finished with this connection. Device's thread only. */
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

    /**
     * Reserves the next place in the order of blocks that use this connection. Returns the number of the place.
     * Device's thread only.
     */
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
