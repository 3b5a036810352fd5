package org.millrace.net.socket;

import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.millrace.net.ConnectionException;
import org.millrace.net.Listener;
import org.millrace.net.connection.HelloFormat;

/**
 * The address of a listener as peers exchange it. Numbers are little-endian; the internet address has its usual byte
 * order.
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
 * A listener with several rails has one address for each rail, and this format contains the first address. The listener
 * sends a list of all its addresses to each client that requests the list. The list follows the listener's reply:
 *
 * <pre>
 *   0        4        8        10       12         16                 32
 *   +--------+--------+--------+--------+----------+------------------+---  -  ---+
 *   | count  | 0      | port   | family | scope id | internet address | 7 more,   |
 *   | u32    |        | u16    | 4 or 6 | u32      | 16, IPv4: first 4| or 0      |
 *   +--------+--------+--------+--------+----------+------------------+---  -  ---+
 * </pre>
 *
 * @param network name of the kind of network, at most 8 characters
 * @param version version of all formats on the network's connections
 */
public record AddressFormat(String network, int version) {

    /** Format of the addresses of TCP networks. */
    public static final AddressFormat SOCKET = new AddressFormat("socket", StreamHello.VERSION);

    private static final int NAME_BYTES = 8;
    private static final int VERSION_OFFSET = 8;
    private static final int PORT_OFFSET = 10;
    private static final int RAILS_OFFSET = 14;
    private static final int HOST_OFFSET = 20;
    private static final int SECRET_OFFSET = 36;

    private static final int LIST_OFFSET = 8;
    private static final int ENTRY_BYTES = 24;
    private static final int ENTRY_HOST_OFFSET = 8;
    /** Length of a list in bytes; the same for any number of addresses. */
    static final int LIST_BYTES = LIST_OFFSET + SocketOptions.MAX_RAILS * ENTRY_BYTES;

    /** Distance in bytes from the port to the family, both in an address and in an entry of a list. */
    private static final int PORT_TO_FAMILY = 2;
    /** Distance in bytes from the scope id to the internet address. */
    private static final int SCOPE_TO_HOST = 4;
    private static final int IPV4 = 4;
    private static final int IPV6 = 6;

    public byte[] encode(InetSocketAddress address, byte[] secret, int rails) {
        ByteBuffer bytes = ByteBuffer.allocate(Listener.ADDRESS_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        bytes.put(0, name());
        bytes.putShort(VERSION_OFFSET, (short) version);
        bytes.putShort(RAILS_OFFSET, (short) rails);
        encode(address, bytes, PORT_OFFSET, HOST_OFFSET);
        bytes.put(SECRET_OFFSET, secret);
        return bytes.array();
    }

    private byte[] name() {
        return Arrays.copyOf(network.getBytes(StandardCharsets.US_ASCII), NAME_BYTES);
    }

    private static void encode(InetSocketAddress address, ByteBuffer to, int portAt, int hostAt) {
        byte[] host = address.getAddress().getAddress();
        to.putShort(portAt, (short) address.getPort());
        to.putShort(portAt + PORT_TO_FAMILY, (short) (host.length == 4 ? IPV4 : IPV6));
        to.putInt(hostAt - SCOPE_TO_HOST, address.getAddress() instanceof Inet6Address six ? six.getScopeId() : 0);
        to.put(hostAt, host);
    }

    /** Returns a listener's socket address. Throws an exception if the bytes are not an address of this network. */
    public InetSocketAddress decode(byte[] address) {
        ByteBuffer bytes = Listener.numbers(address);
        if (bytes.slice(0, NAME_BYTES).mismatch(ByteBuffer.wrap(name())) >= 0) {
            throw new ConnectionException("not an address of the network '" + network + "': it begins with '"
                    + HelloFormat.excerpt(bytes.slice(0, NAME_BYTES))
                    + "'. Both ends of a connection must use the same network");
        }
        int theirs = Short.toUnsignedInt(bytes.getShort(VERSION_OFFSET));
        if (theirs != version) {
            throw new ConnectionException("the listener's address is of version " + theirs + ", this side uses version "
                    + version + ": use the same Millrace on all hosts");
        }
        return decode(bytes, PORT_OFFSET, HOST_OFFSET, "address");
    }

    private static InetSocketAddress decode(ByteBuffer from, int portAt, int hostAt, String what) {
        int family = from.getShort(portAt + PORT_TO_FAMILY);
        if (family != IPV4 && family != IPV6) {
            throw new ConnectionException("the listener's " + what + " is damaged: family " + family + " where " + IPV4
                    + " or " + IPV6 + " is expected");
        }
        byte[] host = new byte[family == IPV4 ? 4 : 16];
        from.get(hostAt, host);
        try {
            int scope = from.getInt(hostAt - SCOPE_TO_HOST);
            InetAddress internet = family == IPV6 && scope != 0 ? Inet6Address.getByAddress(null, host, scope)
                    : InetAddress.getByAddress(host);
            return new InetSocketAddress(internet, Short.toUnsignedInt(from.getShort(portAt)));
        } catch (UnknownHostException e) {
            throw new ConnectionException("the listener's " + what + " is damaged", e);
        }
    }

    /** Returns the number of the listener's addresses. */
    static int rails(byte[] address) {
        return Short.toUnsignedInt(ByteBuffer.wrap(address).order(ByteOrder.LITTLE_ENDIAN).getShort(RAILS_OFFSET));
    }

    public static byte[] secret(byte[] address) {
        byte[] secret = new byte[HelloFormat.SECRET_BYTES];
        System.arraycopy(address, SECRET_OFFSET, secret, 0, secret.length);
        return secret;
    }

    static ByteBuffer encodeList(List<InetSocketAddress> addresses) {
        ByteBuffer bytes = ByteBuffer.allocate(LIST_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        bytes.putInt(0, addresses.size());
        for (int i = 0; i < addresses.size(); i++) {
            int at = LIST_OFFSET + i * ENTRY_BYTES;
            encode(addresses.get(i), bytes, at, at + ENTRY_HOST_OFFSET);
        }
        return bytes;
    }

    static List<InetSocketAddress> decodeList(ByteBuffer bytes) {
        int count = bytes.getInt(0);
        if (count < 1 || count > SocketOptions.MAX_RAILS) {
            throw new ConnectionException("the listener's list of addresses is damaged: it states that it has " + count
                    + ", where 1 to " + SocketOptions.MAX_RAILS + " are expected");
        }
        List<InetSocketAddress> addresses = new ArrayList<>();
        for (int at = LIST_OFFSET; addresses.size() < count; at += ENTRY_BYTES) {
            addresses.add(decode(bytes, at, at + ENTRY_HOST_OFFSET, "list of addresses"));
        }
        return addresses;
    }
}
