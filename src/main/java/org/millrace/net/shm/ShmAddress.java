package org.millrace.net.shm;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.millrace.net.ConnectionException;
import org.millrace.net.Listener;
import org.millrace.net.connection.HelloFormat;

/**
 * Where a listener is, as peers pass it on, little-endian.
 *
 * <pre>
 *   0          8         10     12       20          28      36         52     64
 *   +----------+---------+------+--------+-----------+-------+----------+------+
 *   | network  | version | 0    | id     | host      | 0     | secret   | 0    |
 *   | 8 chars  | u16     |      | i64    | i64       |       | 16 bytes |      |
 *   +----------+---------+------+--------+-----------+-------+----------+------+
 * </pre>
 *
 * @param id     of the listener: its socket's name begins with it
 * @param host   see {@link SharedMemory#thisHost}
 * @param secret {@value #SECRET_BYTES} bytes that a peer must know
 */
public record ShmAddress(long id, long host, byte[] secret) {

    /** Length of a secret. */
    public static final int SECRET_BYTES = HelloFormat.SECRET_BYTES;

    private static final byte[] NETWORK = {'s', 'h', 'm', 0, 0, 0, 0, 0};
    private static final int VERSION_OFFSET = 8;
    private static final int ID_OFFSET = 12;
    private static final int HOST_OFFSET = 20;
    private static final int SECRET_OFFSET = 36;

    /** Copies the secret. */
    public ShmAddress {
        if (secret.length != SECRET_BYTES) {
            throw new IllegalArgumentException("a secret has " + SECRET_BYTES + " bytes, not " + secret.length);
        }
        secret = secret.clone();
    }

    public static ShmAddress here(long id, byte[] secret) {
        return new ShmAddress(id, SharedMemory.thisHost(), secret);
    }

    /** {@return a copy of the secret} */
    @Override
    public byte[] secret() {
        return secret.clone();
    }

    /** The address in {@link Listener#ADDRESS_BYTES} bytes. */
    public byte[] encode() {
        ByteBuffer bytes = ByteBuffer.allocate(Listener.ADDRESS_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        bytes.put(0, NETWORK);
        bytes.putShort(VERSION_OFFSET, (short) RingLayout.VERSION);
        bytes.putLong(ID_OFFSET, id);
        bytes.putLong(HOST_OFFSET, host);
        bytes.put(SECRET_OFFSET, secret);
        return bytes.array();
    }

    /**
     * Reads what {@link #encode} gave.
     *
     * @throws ConnectionException if the bytes are no address of this network
     */
    public static ShmAddress decode(byte[] address) {
        if (address.length != Listener.ADDRESS_BYTES) {
            throw new ConnectionException(
                    "a listener's address has " + Listener.ADDRESS_BYTES + " bytes, not " + address.length);
        }
        if (!Arrays.equals(address, 0, NETWORK.length, NETWORK, 0, NETWORK.length)) {
            throw new ConnectionException(
                    "not an address of the network 'shm'. Both ends of a connection must use the same network");
        }
        ByteBuffer bytes = ByteBuffer.wrap(address).order(ByteOrder.LITTLE_ENDIAN);
        int version = Short.toUnsignedInt(bytes.getShort(VERSION_OFFSET));
        if (version != RingLayout.VERSION) {
            throw new ConnectionException("the listener's address is of version " + version
                    + ", this side speaks version " + RingLayout.VERSION + ": use the same Millrace in all processes");
        }
        return new ShmAddress(bytes.getLong(ID_OFFSET), bytes.getLong(HOST_OFFSET),
                Arrays.copyOfRange(address, SECRET_OFFSET, SECRET_OFFSET + SECRET_BYTES));
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ShmAddress that && Arrays.equals(encode(), that.encode());
    }

    @Override
    public int hashCode() {
        return Long.hashCode(id);
    }

    /** The secret is left out. */
    @Override
    public String toString() {
        return "shm:" + Long.toHexString(id) + "@" + Long.toHexString(host);
    }
}
