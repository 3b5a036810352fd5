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
 * Which of a machine's addresses to announce to peers, chosen as NCCL does ({@code ncclFindInterfaces} of NCCL 2.28),
 * but for what leads nowhere.
 *
 * <p>
 * A choice is a list of names with commas: {@code eth,ib} takes interfaces whose names begin so, {@code =eth0} those
 * with exactly these names, {@code ^docker} those whose names do not begin so, {@code ^=eth0} those with other names.
 * Without a choice the first that exists is taken of: names that begin with ib, any but docker, lo and virbr, then
 * docker, then lo, then virbr. Interfaces that are not running are left out, and so is {@code ::1}. Of an interface the
 * first address is taken: of IPv4, else of IPv6.
 *
 * <p>
 * Unlike NCCL, which takes what the system names first: an address that cannot be listened on is left out, as one of
 * IPv6 that is tentative or another machine's too; and addresses that are valid on one link alone come last, those of
 * IPv6 only where there is nothing else.
 */
public final class Interfaces {

    /** What is tried in turn without a choice, and what is to be said of it. */
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
     * What was chosen.
     *
     * @param addresses one of each interface, at least one in all
     * @param words     what they are of, and why they were chosen
     */
    public record Choice(List<InetAddress> addresses, String words) {

        @Override
        public String toString() {
            return words;
        }
    }

    /**
     * The addresses to announce: those that the options name, or one of each interface that they name, up to as many as
     * a connection can have rails. If they name none it is one: an interface that was not chosen may lead nowhere.
     *
     * @throws ConnectionException if no interface is as wanted: it lists those that exist
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
        // without what the JDK writes behind a percent sign: the interface, or its number
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
        } catch (IOException | UnsupportedAddressTypeException refused) { // the latter: Java was told to use IPv4 alone
            return false;
        }
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

    private static ProtocolFamily familyOf(LocalAddress address) {
        return address.address() instanceof Inet4Address ? StandardProtocolFamily.INET : StandardProtocolFamily.INET6;
    }

    /** The system's usual order: IPv4, IPv6, those of the link. */
    private static int rank(LocalAddress address) {
        int ipv6 = address.address() instanceof Inet4Address ? 0 : 1;
        return address.address().isLinkLocalAddress() ? 2 + ipv6 : ipv6;
    }

    /**
     * A peer's address, as this machine has to write it. One of IPv6 that is valid on one link alone names an interface
     * too, by a number that means nothing on another host: it is that of the first such address of ours.
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
