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
 * Selects the addresses that a machine announces to peers. The selection is NCCL's ({@code ncclFindInterfaces} of NCCL
 * 2.28), except that unreachable addresses are left out.
 *
 * <p>
 * A choice is a list of names with commas. {@code eth,ib} selects interfaces by the beginnings of their names, and
 * {@code =eth0} by exact names. {@code ^docker} excludes beginnings, and {@code ^=eth0} exact names. Without a choice,
 * the first existing group is selected: names that begin with ib, then any but docker, lo and virbr, then docker, then
 * lo, then virbr. Interfaces that are not running are left out, and so is {@code ::1}. The first address of an
 * interface is selected: of IPv4, else of IPv6.
 *
 * <p>
 * NCCL selects the address that the system lists first. Unlike NCCL, this class leaves out addresses that a listener
 * cannot use, such as a tentative IPv6 address, or one that another machine has, too. Link-local addresses come last;
 * those of IPv6 are selected only without any other.
 */
public final class Interfaces {

    /** A group to try without a choice, and its description. */
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
     * @param addresses one address of each interface, at least one in all
     * @param words     description of the group, and the reason of its selection
     */
    public record Choice(List<InetAddress> addresses, String words) {

        @Override
        public String toString() {
            return words;
        }
    }

    /**
     * Returns the addresses to announce: the addresses in the options, or one of each interface in the options. Their
     * maximum number is the maximum number of rails. Without either it is one address, because an interface that was
     * not chosen may be unreachable.
     *
     * @throws ConnectionException if no interface matches; the message lists the existing ones
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
        // without the JDK's suffix behind a percent sign: the interface, or its number
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
            // the latter if Java was told to use IPv4 only
        } catch (IOException | UnsupportedAddressTypeException refused) {
            return false;
        }
    }

    /** Returns whether a name matches a choice; a choice without names matches all. */
    static boolean matches(String name, String choice) {
        boolean not = choice.startsWith("^");
        String rest = not ? choice.substring(1) : choice;
        boolean exact = rest.startsWith("=");
        List<String> names = new ArrayList<>();
        for (String item : (exact ? rest.substring(1) : rest).split(",")) {
            // NCCL's lists may contain a port behind a colon, which is irrelevant for interfaces.
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

    /** Returns the rank in the system's usual order: IPv4, IPv6, link-local addresses. */
    private static int rank(LocalAddress address) {
        int ipv6 = address.address() instanceof Inet4Address ? 0 : 1;
        return address.address().isLinkLocalAddress() ? 2 + ipv6 : ipv6;
    }

    /**
     * Returns a peer's address in this machine's form. A link-local IPv6 address also names an interface, by a number
     * that another host does not know. The interface of this machine's first such address replaces it.
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
