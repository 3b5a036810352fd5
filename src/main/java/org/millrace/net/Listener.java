package org.millrace.net;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Where peers connect to. One listener serves any number of connections. All methods are safe from any thread. */
public interface Listener extends AutoCloseable {

    /** Length of {@link #address()}: it must fit, with a key, into the 128 bytes of a handle of NCCL's. */
    int ADDRESS_BYTES = 68;
    /** Where in it the number of the listener's host is, an int, for links by pair; networks leave it 0. */
    int HOST_OFFSET = 64;

    /**
     * {@return what a peer needs to connect, {@value #ADDRESS_BYTES} bytes; this listener's secret is in it: give it to
     * peers only}
     */
    byte[] address();

    /**
     * {@return an address as little-endian numbers}
     *
     * @throws ConnectionException if it has another length
     */
    static ByteBuffer numbers(byte[] address) {
        if (address.length != ADDRESS_BYTES) {
            throw new ConnectionException(
                    "a listener's address has " + ADDRESS_BYTES + " bytes, not " + address.length);
        }
        return ByteBuffer.wrap(address).order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Waits for the peer that connects with a key.
     *
     * @param key the connection; each may be expected once
     * @return the receiving end in the making
     */
    Pending<FrameReceiver> expect(ConnectionKey key);

    /**
     * Lets clients in as they come, on the calling thread, until the listener is closed. Without it they wait in the
     * system's queue while no connection that is expected is polled, and those who are peers stand behind those who are
     * not.
     */
    default void attend() {
        // most are polled all the time
    }

    /** {@return how many clients were turned away so far} Any client that finds the port is counted. */
    default long dropped() {
        return 0;
    }

    /** Refuses further connections. Those that were made live on. */
    @Override
    void close();
}
