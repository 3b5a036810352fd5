package org.millrace.device;

import org.jspecify.annotations.Nullable;

/**
 * A connection's end on the device, which blocks use one after another in the order in which they were issued, on any
 * streams. It may be issued for before the connection is made.
 *
 * @param <P> {@link SendPort} or {@link ReceivePort}
 */
public final class DeviceEndpoint<P> {

    private final String name;
    /** Blocks issued so far. The device's thread alone. */
    private long issued;
    /** Blocks that are through. The device's thread alone. */
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

    /** Takes a place behind those who were issued before, and returns it. On the device's thread. */
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
