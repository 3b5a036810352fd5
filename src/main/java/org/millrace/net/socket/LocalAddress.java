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
 * @param name       name of the interface that has the address; the address itself if no interface has it
 * @param subnetBits length of the subnet's prefix in bits
 */
public record LocalAddress(String name, InetAddress address, int subnetBits) {

    /** Layout of {@code struct ifaddrs}, which {@code getifaddrs} of Linux's C libraries returns. */
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
     * Returns the addresses of running interfaces in the operating system's order, which is also NCCL's order. All IPv4
     * addresses precede all IPv6 addresses, and the oldest address of an interface precedes its other addresses. This
     * method calls the C library, because the JDK lists IPv4 addresses in reverse order.
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
            // The name of the interface ends before the colon: eth0:1 is the name of another address of eth0.
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
     * Returns the description of an address of this machine. Most addresses of 127.0.0.0/8 belong to no interface. The
     * result for such an address contains the subnet of a loopback interface if the address is in this subnet.
     * Otherwise the subnet consists of the address alone.
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
     * The addresses that a host name stands for on this machine. One process of a group listens at the named host, and
     * the others connect to it.
     *
     * <p>
     * {@code /etc/hosts} often maps a host's own name to 127.0.1.1, for example on Debian and Ubuntu. Other hosts
     * resolve the name to a different address, and cannot reach a listener at 127.0.1.1. Therefore a name that maps to
     * loopback here, but does not itself mean loopback, is treated specially. Such a name stands for the address that
     * this machine announces, and the listener uses all addresses of the machine.
     *
     * @param addresses addresses to connect to, in this order; at least one
     * @param listenAt  address for a listener, if the name means this machine: one address, or the wildcard address
     * @param words     reason for these addresses, for messages; empty if the name maps to one address
     */
    public record NamedHost(List<InetAddress> addresses, InetAddress listenAt, String words) {

        private static final InetAddress ALL = new InetSocketAddress(0).getAddress();
        /** Pattern of numeric addresses, and of names that mean loopback on every host. */
        private static final Pattern AS_IT_IS = Pattern.compile(
                "(.*\\.)?(localhost|ip6-localhost|ip6-loopback)(\\..*)?|[0-9.]+|.*:.*", Pattern.CASE_INSENSITIVE);

        /**
         * Resolves a host name.
         *
         * @param name    a host name, or a numeric address
         * @param sockets options that select the address that this machine announces
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
            // If the name has several addresses of this machine, the listener uses all addresses of this machine,
            // because other processes may connect to any of them.
            List<InetAddress> here = asItIs ? found : found.stream().filter(LocalAddress::isHere).toList();
            return new NamedHost(found,
                    here.size() > 1 && !asItIs ? ALL : here.isEmpty() ? found.getFirst() : here.getFirst(),
                    found.size() == 1 ? "" : means);
        }

        /** Returns whether one of the addresses belongs to this machine. */
        public boolean isHere() {
            return addresses.stream().anyMatch(LocalAddress::isHere);
        }

        /**
         * Returns this machine's address for the other processes of a group. The result is the listener's address. If
         * the listener has no specific address, the result is the first of the host name's addresses that belongs to
         * this machine.
         */
        public InetAddress announced() {
            return !listenAt.isAnyLocalAddress() ? listenAt
                    : addresses.stream().filter(LocalAddress::isHere).findFirst().orElse(listenAt);
        }
    }
}
