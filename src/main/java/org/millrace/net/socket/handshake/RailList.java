package org.millrace.net.socket.handshake;

import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.millrace.net.ConnectionException;

/**
 * What a listener with several addresses tells those who ask for them, behind its answer, little-endian but for the
 * internet addresses.
 *
 * <pre>
 *   0        4        8        10       12         16                 32
 *   +--------+--------+--------+--------+----------+------------------+---  -  ---+
 *   | count  | 0      | port   | family | scope id | internet address | 7 more,   |
 *   | u32    |        | u16    | 4 or 6 | u32      | 16, IPv4: first 4| or 0      |
 *   +--------+--------+--------+--------+----------+------------------+---  -  ---+
 * </pre>
 */
public final class RailList {

    /** More network cards than a host has for one job; each has one stream at least. */
    public static final int MAX_RAILS = 8;

    private static final int ENTRY_BYTES = 24;
    private static final int ENTRIES_OFFSET = 8;

    /** Length of a list, however many addresses are in it. */
    static final int BYTES = ENTRIES_OFFSET + MAX_RAILS * ENTRY_BYTES;

    private RailList() {}

    static ByteBuffer encode(List<InetSocketAddress> addresses) {
        ByteBuffer bytes = ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN);
        bytes.putInt(0, addresses.size());
        for (int i = 0; i < addresses.size(); i++) {
            InetSocketAddress address = addresses.get(i);
            byte[] host = address.getAddress().getAddress();
            int at = ENTRIES_OFFSET + i * ENTRY_BYTES;
            bytes.putShort(at, (short) address.getPort());
            bytes.putShort(at + 2, (short) (host.length == 4 ? 4 : 6));
            bytes.putInt(at + 4, address.getAddress() instanceof Inet6Address six ? six.getScopeId() : 0);
            bytes.put(at + 8, host);
        }
        return bytes;
    }

    static List<InetSocketAddress> decode(ByteBuffer bytes) {
        int count = bytes.getInt(0);
        if (count < 1 || count > MAX_RAILS) {
            throw new ConnectionException("the listener's list of addresses is damaged: it says that it has " + count
                    + ", where 1 to " + MAX_RAILS + " are expected");
        }
        List<InetSocketAddress> addresses = new ArrayList<>();
        for (int at = ENTRIES_OFFSET; addresses.size() < count; at += ENTRY_BYTES) {
            int family = bytes.getShort(at + 2);
            if (family != 4 && family != 6) {
                throw new ConnectionException(
                        "the listener's list of addresses is damaged: family " + family + " where 4 or 6 is expected");
            }
            byte[] host = new byte[family == 4 ? 4 : 16];
            bytes.get(at + 8, host);
            try {
                int scope = bytes.getInt(at + 4);
                InetAddress internet = family == 6 && scope != 0 ? Inet6Address.getByAddress(null, host, scope)
                        : InetAddress.getByAddress(host);
                addresses.add(new InetSocketAddress(internet, Short.toUnsignedInt(bytes.getShort(at))));
            } catch (UnknownHostException e) {
                throw new ConnectionException("the listener's list of addresses is damaged", e);
            }
        }
        return addresses;
    }
}
