package org.millrace.net.auto;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import org.millrace.net.ConnectionException;
import org.millrace.net.Listener;
import org.millrace.net.shm.SharedMemory;
import org.millrace.net.shm.ShmAddress;

/**
 * An address of two networks, little-endian: that of the socket network, which leaves what follows its secret 0, and
 * there what is needed to find the listener through shared memory.
 *
 * <pre>
 *   0                                  52       60       64
 *   +----------------------------------+--------+--------+
 *   | socket network's address         | host   | magic  |
 *   | its secret included              | i64    | u32    |
 *   +----------------------------------+--------+--------+
 * </pre>
 *
 * <p>
 * The host is 0 if the listener has no shared memory. Id and secret of the shared-memory listener are not in it: both
 * sides compute them from the hash of the socket network's address, which cannot be guessed either, as it holds a
 * secret.
 *
 * @param socket the address for the socket network
 * @param host   see {@link SharedMemory#thisHost}; 0 for none
 * @param ucx    whether its process has a card that UCX drives: then the magic is another one
 */
record AutoAddress(byte[] socket, long host, boolean ucx) {

    private static final int HOST_OFFSET = 52;
    private static final int MAGIC_OFFSET = 60;
    private static final int MAGIC = 0x6f747541;
    private static final int MAGIC_UCX = 0x75747541;

    byte[] encode() {
        byte[] bytes = socket.clone();
        ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        if (buffer.getLong(HOST_OFFSET) != 0 || buffer.getInt(MAGIC_OFFSET) != 0) {
            throw new IllegalStateException(
                    "the socket network's addresses use bytes from " + HOST_OFFSET + " on, which are taken here");
        }
        buffer.putLong(HOST_OFFSET, host).putInt(MAGIC_OFFSET, ucx ? MAGIC_UCX : MAGIC);
        return bytes;
    }

    static AutoAddress decode(byte[] address) {
        if (address.length != Listener.ADDRESS_BYTES) {
            throw new ConnectionException(
                    "a listener's address has " + Listener.ADDRESS_BYTES + " bytes, not " + address.length);
        }
        ByteBuffer buffer = ByteBuffer.wrap(address).order(ByteOrder.LITTLE_ENDIAN);
        int magic = buffer.getInt(MAGIC_OFFSET);
        if (magic != MAGIC && magic != MAGIC_UCX) {
            throw new ConnectionException(
                    "not an address of the network 'auto'. Both ends of a connection must use the same network");
        }
        return new AutoAddress(Arrays.copyOf(Arrays.copyOf(address, HOST_OFFSET), address.length),
                buffer.getLong(HOST_OFFSET), magic == MAGIC_UCX);
    }

    boolean isOnThisHost() {
        return host == SharedMemory.thisHost();
    }

    /** Where the shared-memory listener of this address is. */
    ShmAddress shm() {
        try {
            ByteBuffer hash =
                    ByteBuffer.wrap(MessageDigest.getInstance("SHA-256").digest(Arrays.copyOf(socket, HOST_OFFSET)));
            byte[] secret = new byte[ShmAddress.SECRET_BYTES];
            long id = hash.getLong();
            hash.get(secret);
            return new ShmAddress(id, host, secret);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every JDK has SHA-256", e);
        }
    }
}
