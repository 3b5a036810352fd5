package org.millrace.net.socket;

import java.io.IOException;
import java.net.Inet4Address;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProtocolFamily;
import java.net.StandardProtocolFamily;
import java.net.UnknownHostException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.UnsupportedAddressTypeException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Settings;
import org.millrace.net.ConnectionException;

/**
 * Selects the addresses that a machine announces to its peers. The selection is the same as in NCCL
 * ({@code ncclFindInterfaces} of NCCL 2.28), except that unreachable addresses are left out.
 *
 * <p>
 * A user's choice is a list of interface names, separated by commas. {@code eth,ib} selects interfaces by the
 * beginnings of their names, and {@code =eth0} selects an exact name. {@code ^docker} excludes names by their
 * beginning, and {@code ^=eth0} excludes an exact name. Without a choice, the first of these groups that exists is
 * selected: names that begin with ib; names that begin with anything but docker, lo and virbr; docker; lo; virbr.
 * Interfaces that are not running are left out, and so is the address {@code ::1}. The first IPv4 address of each
 * interface is selected. If an interface has no IPv4 address, its first IPv6 address is selected.
 *
 * <p>
 * NCCL selects the address that the system lists first. Unlike NCCL, this class leaves out addresses that a listener
 * cannot use. Examples are a tentative IPv6 address, and an address that another machine also has. Link-local addresses
 * are considered last. A link-local IPv6 address is selected only if no other address exists.
 */
public final class Interfaces {

    /** A group of interfaces that can be selected without a user's choice, and the description of the group. */
    private record Preference(String choice, String words) {
    }

    private static final List<Preference> BY_PREFERENCE =
            List.of(new Preference("ib", "the first whose name begins with ib"),
                    new Preference("^docker,lo,virbr", "the first that is not docker, lo or virbr"),
                    new Preference("docker", "as there is none but docker, lo and virbr"),
                    new Preference("lo", "as there is no other: other hosts cannot reach it"),
                    new Preference("virbr", "as there is no other"));
    private static final int OF_LINK = 3;

    private Interfaces() {}

    /**
     * Result of a selection.
     *
     * @param addresses one address of each selected interface; at least one
     * @param words     description of the selected group, and the reason for its selection
     */
    public record Choice(List<InetAddress> addresses, String words) {

        @Override
        public String toString() {
            return words;
        }
    }

    /**
     * Returns the addresses to announce. These are the addresses in the options, or one address of each interface in
     * the options, up to the maximum number of rails. If the options contain neither addresses nor interfaces, the
     * result is a single address. More addresses could include interfaces that no user has chosen and that peers cannot
     * reach.
     *
     * @throws ConnectionException if no interface matches; the message lists the existing interfaces
     */
    public static Choice choose(SocketOptions options) {
        return options.addresses().isEmpty()
                ? choose(LocalAddress.ofRunningInterfaces(), Interfaces::canListen, options.interfaces(),
                        options.family())
                : new Choice(options.addresses(),
                        options.addresses().stream().map(InetAddress::getHostAddress).collect(Collectors.joining(", "))
                                + ", as asked for");
    }

    static Choice choose(List<LocalAddress> all, Predicate<InetAddress> canListen, String choice,
            @Nullable ProtocolFamily family) {
        String asked = Settings.SOCKET_INTERFACES.name() + "=" + choice.strip();
        List<Preference> attempts =
                choice.isBlank() ? BY_PREFERENCE : List.of(new Preference(choice.strip(), "by " + asked));
        Set<String> leftOut = new TreeSet<>();
        for (Preference attempt : attempts) {
            List<LocalAddress> chosen = new ArrayList<>();
            all.stream()
                    .filter(each -> !(each.address() instanceof Inet6Address && each.address().isLoopbackAddress())
                            && matches(each.name(), attempt.choice) && (family == null || family == familyOf(each)))
                    .sorted(Comparator.comparingInt(Interfaces::rank))
                    .filter(each -> chosen.stream().noneMatch(better -> better.name().equals(each.name()))
                            && (rank(each) < OF_LINK || chosen.isEmpty() || rank(chosen.getFirst()) == OF_LINK))
                    .filter(each -> canListen.test(each.address()) || !leftOut.add(describe(each)))
                    .limit(choice.isBlank() ? 1 : SocketOptions.MAX_RAILS)
                    .forEach(chosen::add);
            if (!chosen.isEmpty()) {
                return new Choice(chosen.stream().map(LocalAddress::address).toList(),
                        chosen.stream().map(Interfaces::describe).collect(Collectors.joining(", ")) + ", "
                                + attempt.words + (family == null ? "" : ", by " + Settings.SOCKET_FAMILY.name())
                                + (leftOut.isEmpty() ? "" : "; not " + unusable(leftOut)));
            }
        }
        String exists = all.stream().map(Interfaces::describe).collect(Collectors.joining(", "));
        throw new ConnectionException("no network interface " + (choice.isBlank() ? "is usable" : "is as " + asked)
                + (family == null ? "" : " with an address of " + family.name()) + "; running are: "
                + (exists.isEmpty() ? "none; 'ip link set lo up' is enough for ranks of one host" : exists)
                + (leftOut.isEmpty() ? "" : "; but not usable: " + unusable(leftOut))
                + ". The choice is written: prefixes 'eth,ib', exact names '=eth0', exclusions '^docker'");
    }

    private static String describe(LocalAddress address) {
        // The JDK appends a percent sign and the interface's name or number. This suffix is cut off.
        return address.address().getHostAddress().split("%", 2)[0] + " of " + address.name();
    }

    private static String unusable(Set<String> addresses) {
        return String.join(", ", addresses)
                + ", which cannot be listened on: 'ip -6 address' says whether it is tentative, or a duplicate (dadfailed)";
    }

    private static boolean canListen(InetAddress address) {
        if (address instanceof Inet4Address) {
            return true;
        }
        try (ServerSocketChannel trial = ServerSocketChannel.open()) {
            trial.bind(new InetSocketAddress(address, 0));
            return true;
            // This type of address is unsupported if the user has restricted Java to IPv4.
        } catch (IOException | UnsupportedAddressTypeException refused) {
            return false;
        }
    }

    /** Returns whether an interface's name matches a choice. A choice without names matches all interfaces. */
    static boolean matches(String name, String choice) {
        boolean not = choice.startsWith("^");
        String rest = not ? choice.substring(1) : choice;
        boolean exact = rest.startsWith("=");
        List<String> names = new ArrayList<>();
        for (String item : (exact ? rest.substring(1) : rest).split(",")) {
            // NCCL's lists may contain a port behind a colon. The port does not matter for the selection of interfaces.
            String wanted = item.split(":", 2)[0];
            if (!wanted.isEmpty()) {
                names.add(wanted);
            }
        }
        boolean listed = names.isEmpty() || names.stream().anyMatch(exact ? name::equals : name::startsWith);
        return listed != not;
    }

    private static ProtocolFamily familyOf(LocalAddress address) {
        return address.address() instanceof Inet4Address ? StandardProtocolFamily.INET : StandardProtocolFamily.INET6;
    }

    /**
     * Returns a sort key for an address: IPv4 first, then IPv6, then link-local addresses. This is the usual order of
     * operating systems.
     */
    private static int rank(LocalAddress address) {
        int ipv6 = address.address() instanceof Inet4Address ? 0 : 1;
        return address.address().isLinkLocalAddress() ? 2 + ipv6 : ipv6;
    }

    /**
     * Returns a peer's address in the form that is valid on this machine. A link-local IPv6 address contains the number
     * of one of the peer's interfaces. This number has no meaning on this machine. The result instead contains the
     * number of the local interface that has this machine's first link-local IPv6 address.
     */
    public static InetSocketAddress reachable(InetSocketAddress theirs, Supplier<List<InetAddress>> ours) {
        byte[] host = theirs.getAddress().getAddress();
        if (!(theirs.getAddress() instanceof Inet6Address && theirs.getAddress().isLinkLocalAddress())) {
            return theirs;
        }
        for (InetAddress each : ours.get()) {
            if (each instanceof Inet6Address here && here.isLinkLocalAddress()) {
                try {
                    return new InetSocketAddress(Inet6Address.getByAddress(null, host, here.getScopeId()),
                            theirs.getPort());
                } catch (UnknownHostException impossible) {
                    throw new AssertionError(impossible);
                }
            }
        }
        return theirs;
    }
}
