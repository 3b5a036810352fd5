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
 * @param name       of its interface; the address itself if no interface shows it
 * @param subnetBits length of its subnet's prefix
 */
public record LocalAddress(String name, InetAddress address, int subnetBits) {

    /** As {@code getifaddrs} of Linux's C libraries lays it out. */
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
     * The addresses of the interfaces that are running, in the order in which NCCL sees them: the kernel's. All of IPv4
     * are before those of IPv6, and on an interface the one that it got first is the first. The JDK lists those of IPv4
     * the other way around.
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
            // eth0:1 is one more address of eth0
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

    /** An address of this machine; one that no interface shows, as most of 127.0.0.0/8, has the subnet of its kind. */
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

    /** Whether an interface that is running shows an address. */
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
     * What the name of a host, at which one process listens and others look for it, means on this machine.
     *
     * <p>
     * {@code /etc/hosts} often says that a host's own name is 127.0.1.1: Debian's and Ubuntu's does. Who listens there
     * is not reached by other hosts, which have another address for the name. So a name that means loopback here and is
     * not one of loopback's own is taken for the address that this machine announces, and it is listened at all
     * addresses.
     *
     * @param addresses where to look, in this order; at least one
     * @param listenAt  where to listen, if this is the host: one address, or the wildcard
     * @param words     why, for messages; empty if the name means one address
     */
    public record NamedHost(List<InetAddress> addresses, InetAddress listenAt, String words) {

        private static final InetAddress ALL = new InetSocketAddress(0).getAddress();
        /** Names that mean loopback wherever they are used, and addresses. */
        private static final Pattern AS_IT_IS = Pattern.compile(
                "(.*\\.)?(localhost|ip6-localhost|ip6-loopback)(\\..*)?|[0-9.]+|.*:.*", Pattern.CASE_INSENSITIVE);

        /**
         * Looks a name up.
         *
         * @param name    a name, or an address as numbers
         * @param sockets which of its addresses this machine announces
         * @throws UnknownHostException if there is no such host
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
            // of several any may be the one by which others come
            List<InetAddress> here = asItIs ? found : found.stream().filter(LocalAddress::isHere).toList();
            return new NamedHost(found,
                    here.size() > 1 && !asItIs ? ALL : here.isEmpty() ? found.getFirst() : here.getFirst(),
                    found.size() == 1 ? "" : means);
        }

        /** Whether one of its addresses is this machine's. */
        public boolean isHere() {
            return addresses.stream().anyMatch(LocalAddress::isHere);
        }

        /**
         * The address of this machine that others of a group are told: where it listens, or the first that is its own.
         */
        public InetAddress announced() {
            return !listenAt.isAnyLocalAddress() ? listenAt
                    : addresses.stream().filter(LocalAddress::isHere).findFirst().orElse(listenAt);
        }
    }
}
