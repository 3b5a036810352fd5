package org.millrace.net.socket.handshake;

import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.millrace.net.ConnectionException;
import org.millrace.net.Listener;
import org.millrace.net.base.Excerpt;

/**
 * A listener's address as peers pass it on, little-endian but for the internet address itself.
 *
 * <pre>
 *   0          8          10       12       14       16         20                 36              52        64
 *   +----------+----------+--------+--------+--------+----------+------------------+---------------+---------+
 *   | network  | version  | port   | family | rails  | scope id | internet address | secret        | 0       |
 *   | 8 chars  | u16      | u16    | 4 or 6 | u16    | u32      | 16, IPv4: first 4| 16 bytes      |         |
 *   +----------+----------+--------+--------+--------+----------+------------------+---------------+---------+
 * </pre>
 *
 * <p>
 * A listener with several rails has as many addresses, of which this is the first; it tells the others to those who ask
 * ({@link RailList}).
 */
public final class AddressFormat {

    /** Length of a listener's secret. */
    static final int SECRET_BYTES = 16;

    private static final byte[] NETWORK = {'s', 'o', 'c', 'k', 'e', 't', 0, 0};
    private static final int VERSION_OFFSET = 8;
    private static final int PORT_OFFSET = 10;
    private static final int FAMILY_OFFSET = 12;
    private static final int RAILS_OFFSET = 14;
    private static final int SCOPE_OFFSET = 16;
    private static final int HOST_OFFSET = 20;
    private static final int SECRET_OFFSET = 36;
    private static final int IPV4 = 4;
    private static final int IPV6 = 6;

    private AddressFormat() {}

    public static byte[] encode(InetSocketAddress address, byte[] secret, int rails) {
        ByteBuffer bytes = ByteBuffer.allocate(Listener.ADDRESS_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        byte[] host = address.getAddress().getAddress();
        bytes.put(0, NETWORK);
        bytes.putShort(VERSION_OFFSET, (short) StreamHello.VERSION);
        bytes.putShort(PORT_OFFSET, (short) address.getPort());
        bytes.putShort(FAMILY_OFFSET, (short) (host.length == 4 ? IPV4 : IPV6));
        bytes.putShort(RAILS_OFFSET, (short) rails);
        bytes.putInt(SCOPE_OFFSET, address.getAddress() instanceof Inet6Address six ? six.getScopeId() : 0);
        bytes.put(HOST_OFFSET, host);
        bytes.put(SECRET_OFFSET, secret);
        return bytes.array();
    }

    /** Where a listener is; throws if the bytes are no address of this network. */
    static InetSocketAddress decode(byte[] address) {
        if (address.length != Listener.ADDRESS_BYTES) {
            throw new ConnectionException(
                    "a listener's address has " + Listener.ADDRESS_BYTES + " bytes, not " + address.length);
        }
        ByteBuffer bytes = ByteBuffer.wrap(address).order(ByteOrder.LITTLE_ENDIAN);
        if (bytes.slice(0, NETWORK.length).mismatch(ByteBuffer.wrap(NETWORK)) >= 0) {
            throw new ConnectionException("not an address of the network 'socket': it begins with '"
                    + Excerpt.of(bytes.slice(0, NETWORK.length))
                    + "'. Both ends of a connection must use the same network");
        }
        int version = Short.toUnsignedInt(bytes.getShort(VERSION_OFFSET));
        if (version != StreamHello.VERSION) {
            throw new ConnectionException("the listener's address is of version " + version
                    + ", this side speaks version " + StreamHello.VERSION + ": use the same Millrace on all hosts");
        }
        int family = bytes.getShort(FAMILY_OFFSET);
        if (family != IPV4 && family != IPV6) {
            throw new ConnectionException("the listener's address is damaged: family " + family + " where " + IPV4
                    + " or " + IPV6 + " is expected");
        }
        byte[] host = new byte[family == IPV4 ? 4 : 16];
        bytes.get(HOST_OFFSET, host);
        try {
            int scope = bytes.getInt(SCOPE_OFFSET);
            InetAddress internet = family == IPV6 && scope != 0 ? Inet6Address.getByAddress(null, host, scope)
                    : InetAddress.getByAddress(host);
            return new InetSocketAddress(internet, Short.toUnsignedInt(bytes.getShort(PORT_OFFSET)));
        } catch (UnknownHostException e) {
            throw new ConnectionException("the listener's address is damaged", e);
        }
    }

    /** How many addresses the listener has. */
    static int rails(byte[] address) {
        return Short.toUnsignedInt(ByteBuffer.wrap(address).order(ByteOrder.LITTLE_ENDIAN).getShort(RAILS_OFFSET));
    }

    static byte[] secret(byte[] address) {
        byte[] secret = new byte[SECRET_BYTES];
        System.arraycopy(address, SECRET_OFFSET, secret, 0, SECRET_BYTES);
        return secret;
    }
}
