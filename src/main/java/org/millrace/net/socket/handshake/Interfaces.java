package org.millrace.net.socket.handshake;

import java.net.Inet4Address;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InterfaceAddress;
import java.net.NetworkInterface;
import java.net.ProtocolFamily;
import java.net.SocketException;
import java.net.StandardProtocolFamily;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.socket.stream.SocketOptions;

/**
 * Which of a machine's addresses to announce to peers, chosen as NCCL does ({@code ncclFindInterfaces} of NCCL 2.28).
 *
 * <p>
 * A choice is a list of names with commas: {@code eth,ib} takes interfaces whose names begin so, {@code =eth0} those
 * with exactly these names, {@code ^docker} those whose names do not begin so, {@code ^=eth0} those with other names.
 * Without a choice the first that exists is taken of: names that begin with ib, any but docker, lo and virbr, then
 * docker, then lo, then virbr. Interfaces that are down are left out, and so is {@code ::1}.
 */
public final class Interfaces {

    private static final List<String> BY_PREFERENCE = List.of("ib", "^docker,lo,virbr", "docker", "lo", "virbr");

    private Interfaces() {}

    /** An interface that is up, with its addresses, the best first. */
    record Candidate(String name, List<InetAddress> addresses) {
    }

    /**
     * The address to announce.
     *
     * @param choice list of names, or empty
     * @param family only addresses of this family; null for any
     * @throws ConnectionException if no interface is as wanted: it lists those that exist
     */
    public static InetAddress choose(String choice, @Nullable ProtocolFamily family) {
        return choose(candidates(), choice, family);
    }

    /**
     * An address of each interface that a choice takes, up to as many as a connection can have rails. Without a choice
     * it is one: an interface that was not chosen may lead nowhere.
     *
     * @throws ConnectionException if no interface is as wanted: it lists those that exist
     */
    public static List<InetAddress> chooseAll(String choice, @Nullable ProtocolFamily family) {
        return chooseAll(candidates(), choice, family);
    }

    static InetAddress choose(List<Candidate> candidates, String choice, @Nullable ProtocolFamily family) {
        return chooseAll(candidates, choice, family).getFirst();
    }

    static List<InetAddress> chooseAll(List<Candidate> candidates, String choice, @Nullable ProtocolFamily family) {
        List<String> attempts = choice.isBlank() ? BY_PREFERENCE : List.of(choice.strip());
        for (String attempt : attempts) {
            List<InetAddress> chosen = candidates.stream()
                    .filter(candidate -> matches(candidate.name, attempt))
                    .map(candidate -> firstOf(candidate, family))
                    .filter(Objects::nonNull)
                    .limit(choice.isBlank() ? 1 : SocketOptions.MAX_RAILS)
                    .toList();
            if (!chosen.isEmpty()) {
                return chosen;
            }
        }
        String exists = candidates.stream()
                .map(c -> c.name + " " + c.addresses.stream().map(InetAddress::getHostAddress).toList())
                .collect(Collectors.joining(", "));
        throw new ConnectionException(
                "no network interface matches " + (choice.isBlank() ? "any name" : "'" + choice + "'")
                        + (family == null ? "" : " with an address of " + family.name()) + "; those that are up: "
                        + (exists.isEmpty() ? "none" : exists)
                        + ". The choice is written as NCCL_SOCKET_IFNAME: prefixes 'eth,ib', "
                        + "exact names '=eth0', exclusions '^docker'");
    }

    /** Whether a name is in a choice; a choice without names matches all. */
    static boolean matches(String name, String choice) {
        boolean not = choice.startsWith("^");
        String rest = not ? choice.substring(1) : choice;
        boolean exact = rest.startsWith("=");
        List<String> names = new ArrayList<>();
        for (String item : (exact ? rest.substring(1) : rest).split(",")) {
            // NCCL's lists may carry a port behind a colon; it says nothing about interfaces.
            String wanted = item.split(":", 2)[0];
            if (!wanted.isEmpty()) {
                names.add(wanted);
            }
        }
        boolean listed = names.isEmpty() || names.stream().anyMatch(exact ? name::equals : name::startsWith);
        return listed != not;
    }

    private static @Nullable InetAddress firstOf(Candidate candidate, @Nullable ProtocolFamily family) {
        for (InetAddress address : candidate.addresses) {
            if (family == null || family == (address instanceof Inet4Address ? StandardProtocolFamily.INET
                    : StandardProtocolFamily.INET6)) {
                return address;
            }
        }
        return null;
    }

    private static List<Candidate> candidates() {
        try {
            List<NetworkInterface> all = NetworkInterface.networkInterfaces()
                    .sorted(Comparator.comparingInt(NetworkInterface::getIndex))
                    .toList();
            List<Candidate> up = new ArrayList<>();
            for (NetworkInterface each : all) {
                if (each.isUp()) {
                    up.add(new Candidate(each.getName(),
                            each.inetAddresses()
                                    .filter(Interfaces::isUsable)
                                    .sorted(Comparator.comparingInt(Interfaces::rank))
                                    .toList()));
                }
            }
            return up;
        } catch (SocketException e) {
            throw new ConnectionException("cannot list this machine's network interfaces", e);
        }
    }

    private static boolean isUsable(InetAddress address) {
        return address instanceof Inet4Address || address instanceof Inet6Address && !address.isLoopbackAddress();
    }

    /**
     * An address of this machine with its subnet; one that no interface shows, as all of 127.0.0.0/8 are, has that of
     * its kind.
     */
    public static RailAddresses.Local local(InetAddress address) {
        try {
            NetworkInterface owner = NetworkInterface.getByInetAddress(address);
            for (InterfaceAddress each : owner == null ? List.<InterfaceAddress>of() : owner.getInterfaceAddresses()) {
                if (each.getAddress().equals(address)) {
                    return new RailAddresses.Local(address, each.getNetworkPrefixLength());
                }
            }
        } catch (SocketException e) {
            throw new ConnectionException("cannot look at the network interface of " + address.getHostAddress(), e);
        }
        boolean loopback = address instanceof Inet4Address && address.isLoopbackAddress();
        return new RailAddresses.Local(address, loopback ? Byte.SIZE : address.getAddress().length * Byte.SIZE);
    }

    /** The system's usual order: IPv4, IPv6, IPv6 of the link. */
    private static int rank(InetAddress address) {
        return address instanceof Inet4Address ? 0 : address.isLinkLocalAddress() ? 2 : 1;
    }
}
