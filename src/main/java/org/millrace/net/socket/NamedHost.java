package org.millrace.net.socket;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * What the name of a host, at which one process listens and others look for it, means on this machine.
 *
 * <p>
 * {@code /etc/hosts} often says that a host's own name is 127.0.1.1: Debian's and Ubuntu's does. Who listens there is
 * not reached by other hosts, which have another address for the name. So a name that means loopback here and is not
 * one of loopback's own is taken for the address that this machine announces, and it is listened at all addresses.
 *
 * @param addresses where to look, in this order; at least one
 * @param listenAt  where to listen, if this is the host: one address, or the wildcard
 * @param words     why, for messages; empty if the name means one address
 */
public record NamedHost(List<InetAddress> addresses, InetAddress listenAt, String words) {

    private static final InetAddress ALL = new InetSocketAddress(0).getAddress();
    /** Names that mean loopback wherever they are used, and addresses. */
    private static final Pattern AS_IT_IS = Pattern
            .compile("(.*\\.)?(localhost|ip6-localhost|ip6-loopback)(\\..*)?|[0-9.]+|.*:.*", Pattern.CASE_INSENSITIVE);

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

    /** The address of this machine that others of a group are told: where it listens, or the first that is its own. */
    public InetAddress announced() {
        return !listenAt.isAnyLocalAddress() ? listenAt
                : addresses.stream().filter(LocalAddress::isHere).findFirst().orElse(listenAt);
    }
}
