package org.millrace.net.socket;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.Inet4Address;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.millrace.foreign.CFunction;
import org.millrace.net.ConnectionException;
import org.millrace.net.connection.NativeRegion;

/**
 * An address of this machine.
 *
 * @param name       name of its interface; the address itself if no interface has it
 * @param subnetBits length of its subnet's prefix
 */
public record LocalAddress(String name, InetAddress address, int subnetBits) {

    /** Layout of {@code getifaddrs} in Linux's C libraries. */
    private static final class Layout {
        static final int NAME = 8;
        static final int FLAGS = 16;
        static final int ADDRESS = 24;
        static final int NETMASK = 32;
        static final int RUNNING = 0x40;

        static final int IPV4_FAMILY = 2;
        static final int IPV4_HOST = 4;
        static final int IPV6_FAMILY = 10;
        static final int IPV6_HOST = 8;
        static final int IPV6_SCOPE = 24;

        private Layout() {}
    }

    private static final MemorySegment MEMORY = NativeRegion.ALL_MEMORY;

    /**
     * Returns the addresses of running interfaces in the kernel's order, which NCCL sees, too. All IPv4 addresses come
     * before IPv6 addresses, and an interface's oldest address comes first. The JDK lists IPv4 addresses in reverse
     * order.
     */
    static List<LocalAddress> ofRunningInterfaces() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment list = arena.allocate(ValueLayout.JAVA_LONG);
            if ((int) CFunction.named("getifaddrs").call(list.address()) != 0) {
                throw new ConnectionException("cannot list this machine's network interfaces: getifaddrs fails");
            }
            long first = list.get(ValueLayout.JAVA_LONG, 0);
            try {
                List<LocalAddress> all = new ArrayList<>();
                for (long at = first; at != 0; at = MEMORY.get(ValueLayout.JAVA_LONG, at)) {
                    long address = MEMORY.get(ValueLayout.JAVA_LONG, at + Layout.ADDRESS);
                    int family = address == 0 ? 0 : MEMORY.get(ValueLayout.JAVA_SHORT, address);
                    boolean running = (MEMORY.get(ValueLayout.JAVA_INT, at + Layout.FLAGS) & Layout.RUNNING) != 0;
                    if (running && (family == Layout.IPV4_FAMILY || family == Layout.IPV6_FAMILY)) {
                        all.add(read(at, address, family == Layout.IPV4_FAMILY));
                    }
                }
                return all;
            } finally {
                CFunction.named("freeifaddrs").call(first);
            }
        }
    }

    private static LocalAddress read(long entry, long address, boolean ipv4) {
        long mask = MEMORY.get(ValueLayout.JAVA_LONG, entry + Layout.NETMASK);
        int bits = 0;
        for (byte each : host(mask, ipv4)) {
            bits += Integer.bitCount(Byte.toUnsignedInt(each));
        }
        String name = MEMORY.getString(MEMORY.get(ValueLayout.JAVA_LONG, entry + Layout.NAME));
        try {
            int scope = ipv4 ? 0 : MEMORY.get(ValueLayout.JAVA_INT, address + Layout.IPV6_SCOPE);
            byte[] host = host(address, ipv4);
            // eth0:1 is a further address of eth0
            return new LocalAddress(name.split(":", 2)[0],
                    scope == 0 ? InetAddress.getByAddress(host) : Inet6Address.getByAddress(null, host, scope), bits);
        } catch (UnknownHostException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static byte[] host(long sockaddr, boolean ipv4) {
        return MEMORY.asSlice(sockaddr + (ipv4 ? Layout.IPV4_HOST : Layout.IPV6_HOST), ipv4 ? 4 : 16)
                .toArray(ValueLayout.JAVA_BYTE);
    }

    /**
     * Returns an address of this machine. An address without an interface, like most of 127.0.0.0/8, has the subnet of
     * the loopback interface that contains it. Without such an interface its subnet is the address alone.
     */
    public static LocalAddress of(InetAddress address) {
        LocalAddress loopback = null;
        for (LocalAddress each : ofRunningInterfaces()) {
            if (each.address.equals(address)) {
                return each;
            }
            if (each.address.isLoopbackAddress() && each.isFamilyOf(address) && each.isSubnetOf(address)) {
                loopback = new LocalAddress(each.name, address, each.subnetBits);
            }
        }
        return loopback != null ? loopback
                : new LocalAddress(address.getHostAddress(), address, address.getAddress().length * Byte.SIZE);
    }

    /** Returns whether a running interface has an address. */
    public static boolean isHere(InetAddress address) {
        return ofRunningInterfaces().stream().anyMatch(each -> each.address.equals(address));
    }

    boolean isFamilyOf(InetAddress other) {
        return address instanceof Inet4Address == other instanceof Inet4Address;
    }

    boolean isSubnetOf(InetAddress other) {
        byte[] ours = address.getAddress();
        byte[] theirs = other.getAddress();
        for (int bit = 0; bit < subnetBits; bit++) {
            if (((ours[bit / Byte.SIZE] ^ theirs[bit / Byte.SIZE]) & 0x80 >> bit % Byte.SIZE) != 0) {
                return false;
            }
        }
        return true;
    }

    /**
     * Meaning of a host name on this machine. One process listens at the host, and others look for it.
     *
     * <p>
     * {@code /etc/hosts} often maps a host's own name to 127.0.1.1, as on Debian and Ubuntu. Other hosts have another
     * address for the name and cannot reach a listener there. A name that maps to loopback here, and is no name of
     * loopback itself, therefore stands for the address that this machine announces. The listener then uses all
     * addresses.
     *
     * @param addresses addresses to connect to, in this order; at least one
     * @param listenAt  address for a listener, if this is the host: one address, or the wildcard
     * @param words     reason, for messages; empty if the name maps to one address
     */
    public record NamedHost(List<InetAddress> addresses, InetAddress listenAt, String words) {

        private static final InetAddress ALL = new InetSocketAddress(0).getAddress();
        /** Names that mean loopback on each host, and numeric addresses. */
        private static final Pattern AS_IT_IS = Pattern.compile(
                "(.*\\.)?(localhost|ip6-localhost|ip6-loopback)(\\..*)?|[0-9.]+|.*:.*", Pattern.CASE_INSENSITIVE);

        /**
         * Resolves a name.
         *
         * @param name    a name, or a numeric address
         * @param sockets selects the address that this machine announces
         * @throws UnknownHostException if the host does not exist
         */
        public static NamedHost of(String name, SocketOptions sockets) throws UnknownHostException {
            return of(name, List.of(InetAddress.getAllByName(name)), sockets);
        }

        static NamedHost of(String name, List<InetAddress> found, SocketOptions sockets) {
            String means =
                    name + " is " + found.stream().map(InetAddress::getHostAddress).collect(Collectors.joining(", "));
            boolean asItIs = AS_IT_IS.matcher(name).matches();
            if (!asItIs && found.stream().allMatch(InetAddress::isLoopbackAddress)) {
                Interfaces.Choice announced = Interfaces.choose(sockets);
                return new NamedHost(announced.addresses().subList(0, 1), ALL,
                        means + " here, where other hosts do not reach it: taken for " + announced);
            }
            // with several addresses, others may use any of them
            List<InetAddress> here = asItIs ? found : found.stream().filter(LocalAddress::isHere).toList();
            return new NamedHost(found,
                    here.size() > 1 && !asItIs ? ALL : here.isEmpty() ? found.getFirst() : here.getFirst(),
                    found.size() == 1 ? "" : means);
        }

        /** Returns whether one of its addresses belongs to this machine. */
        public boolean isHere() {
            return addresses.stream().anyMatch(LocalAddress::isHere);
        }

        /**
         * Returns this machine's address for the other members of a group: the listener's address, or the first own
         * address.
         */
        public InetAddress announced() {
            return !listenAt.isAnyLocalAddress() ? listenAt
                    : addresses.stream().filter(LocalAddress::isHere).findFirst().orElse(listenAt);
        }
    }
}
