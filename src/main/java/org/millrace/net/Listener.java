package org.millrace.net;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Endpoint for incoming connections of peers. One listener serves any number of connections. All methods are safe from
 * any thread.
 */
public interface Listener extends AutoCloseable {

    /** Length of {@link #address()} in bytes. It must fit, with a key, into the 128 bytes of an NCCL handle. */
    int ADDRESS_BYTES = 68;
    /**
     * Offset in the address of the number of the listener's host, an int. Links by pair use it; networks leave it 0.
     */
    int HOST_OFFSET = 64;

    /**
     * {@return the address that a peer needs to connect, {@value #ADDRESS_BYTES} bytes. It contains this listener's
     * secret, so only peers may receive it}
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
     * @param key key of the connection; each key may be expected once
     * @return the pending receiving end
     */
    Pending<FrameReceiver> expect(ConnectionKey key);

    /**
     * Admits clients on the calling thread as they arrive, until the listener is closed. Without it, clients stay in
     * the system's queue while no expected connection is polled. Peers then wait behind clients that are not peers.
     */
    default void attend() {
        // most listeners are polled all the time
    }

    /** {@return number of clients refused so far} Each client that reaches the port counts. */
    default long dropped() {
        return 0;
    }

    /** Refuses further connections. Established connections continue. */
    @Override
    void close();
}
