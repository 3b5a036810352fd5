package org.millrace.net;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Endpoint at which connections of peers arrive. One listener serves any number of connections. All methods are safe
 * from any thread.
 */
public interface Listener extends AutoCloseable {

    /**
     * Length of {@link #address()} in bytes. An address and a key together must fit into NCCL's handle of 128 bytes.
     */
    int ADDRESS_BYTES = 68;
    /**
     * Offset of the number of the listener's host in an address. The number is an {@code int}. Emulated links between
     * pairs of hosts use the number. Without emulated links, the number is 0.
     */
    int HOST_OFFSET = 64;

    /**
     * {@return the address that a peer needs to connect, {@value #ADDRESS_BYTES} bytes} The address contains this
     * listener's secret, so only peers may receive it.
     */
    byte[] address();

    /**
     * {@return a buffer that reads the numbers in an address, in little-endian order}
     *
     * @throws ConnectionException if the address has another length than {@link #ADDRESS_BYTES}
     */
    static ByteBuffer numbers(byte[] address) {
        if (address.length != ADDRESS_BYTES) {
            throw new ConnectionException(
                    "a listener's address has " + ADDRESS_BYTES + " bytes, not " + address.length);
        }
        return ByteBuffer.wrap(address).order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Expects a connection with a key.
     *
     * @param key key of the connection; each key may be expected once
     * @return the pending receiving end
     */
    Pending<FrameReceiver> expect(ConnectionKey key);

    /**
     * Admits clients on the calling thread as they arrive, until the listener is closed. Without this call, clients are
     * admitted only while an expected connection is polled, and remain in the system's queue at other times. In that
     * queue, peers wait behind clients that are not peers.
     */
    default void attend() {
        // This default method does nothing, because most listeners are polled continuously, and admit clients in these
        // polls.
    }

    /** {@return number of refused clients so far} Every refused client counts, even a client that is not a peer. */
    default long dropped() {
        return 0;
    }

    /** Refuses further connections. Established connections continue. */
    @Override
    void close();
}
