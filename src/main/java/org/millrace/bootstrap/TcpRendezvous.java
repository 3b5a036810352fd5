package org.millrace.bootstrap;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.channels.ServerSocketChannel;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.millrace.MillraceException;
import org.millrace.bootstrap.Rendezvous.BootstrapListener;
import org.millrace.bootstrap.Rendezvous.ServerAddress;
import org.millrace.config.Settings;
import org.millrace.net.socket.LocalAddress;

/** Rendezvous at which rank 0 listens at an address that the user chooses. */
record TcpRendezvous(String host, int port, JoinOptions options) implements Rendezvous {

    private static final String PREFIX = "tcp:";
    private static final int MAX_PORT = 0xFFFF;
    private static final Set<String> TOLD = ConcurrentHashMap.newKeySet();

    static TcpRendezvous parse(String text, JoinOptions options) {
        int colon = text.lastIndexOf(':');
        String host = colon <= PREFIX.length() ? "" : text.substring(PREFIX.length(), colon);
        boolean bracketed = host.startsWith("[") && host.endsWith("]");
        if (host.isEmpty() || !bracketed && host.indexOf(':') >= 0) {
            throw new IllegalArgumentException(
                    "rendezvous \"" + text + "\": expected tcp:HOST:PORT, with an IPv6 address in brackets");
        }
        int port;
        try {
            port = Integer.parseInt(text.substring(colon + 1));
        } catch (NumberFormatException e) {
            port = 0;
        }
        if (port < 1 || port > MAX_PORT) {
            throw new IllegalArgumentException("rendezvous \"" + text + "\": the port has to be 1 to " + MAX_PORT
                    + ", and the same on every rank");
        }
        return new TcpRendezvous(bracketed ? host.substring(1, host.length() - 1) : host, port, options);
    }

    @Override
    public BootstrapListener open(RankIdentity self, int size) {
        requireSecret();
        try {
            LocalAddress.NamedHost named = named();
            InetSocketAddress address = new InetSocketAddress(named.listenAt(), port);
            ServerSocketChannel listener = Rendezvous.bind(address, "rendezvous", named.words());
            warnOfAnybody(address);
            return new BootstrapListener(listener, named.announced(), Secret.of("", options.secret()), options.tls(),
                    () -> {});
        } catch (UnknownHostException e) {
            throw new MillraceException("rank 0 cannot listen on " + this + ": the host is unknown here", e);
        } catch (IOException e) {
            throw new MillraceException("rank 0 cannot listen on " + this + ": " + e.getMessage()
                    + "; HOST has to be an address of the machine of rank 0, and the port one that no other group or "
                    + "program uses", e);
        }
    }

    @Override
    public ServerAddress find(int attempt) throws IOException {
        requireSecret();
        LocalAddress.NamedHost named = named();
        InetSocketAddress address =
                new InetSocketAddress(named.addresses().get(attempt % named.addresses().size()), port);
        return new ServerAddress(address, Secret.of("", options.secret()), options.tls(), named.words());
    }

    private LocalAddress.NamedHost named() throws UnknownHostException {
        try {
            return LocalAddress.NamedHost.of(host, options.sockets());
        } catch (UnknownHostException e) {
            throw new UnknownHostException("the host " + host + " is unknown here");
        }
    }

    /** Returns whether any process can join, because the ranks use neither a secret nor certificates. */
    private boolean isOpenToAll() {
        return options.secret() == null && options.tls() == null;
    }

    /**
     * Throws if the user demands a secret and any process can join. The demand also applies to a group on loopback,
     * because all users of the host can reach its port.
     */
    private void requireSecret() {
        if (options.secretRequired() && isOpenToAll()) {
            throw new MillraceException("the group at " + this
                    + " can be joined by any process that reaches the port, other users of the host among them, and "
                    + Settings.REQUIRE_SECRET.name() + "=1 wants a secret for it: set " + Settings.SECRET.name()
                    + " to the same text on every rank");
        }
    }

    private void warnOfAnybody(InetSocketAddress address) {
        if (!address.getAddress().isLoopbackAddress() && isOpenToAll()) {
            tellUser("the group at " + this
                    + " has no secret: any process that reaches the port can join it in a rank's place. Set "
                    + Settings.SECRET.name() + " to the same text on every rank (" + Settings.REQUIRE_SECRET.name()
                    + "=1 makes this an error)");
        }
    }

    @Override
    public boolean mayBeStale() {
        try {
            return named().addresses().size() > 1;
        } catch (UnknownHostException e) {
            return true;
        }
    }

    @Override
    public String toString() {
        return PREFIX + (host.indexOf(':') < 0 ? host : '[' + host + ']') + ':' + port;
    }

    /**
     * Prints a text to standard error, once per process. It is not logged, because the user must see it with any
     * configuration of the logging. Without a configuration, Log4j shows only errors.
     */
    private static void tellUser(String text) {
        if (TOLD.add(text)) {
            System.err.println("millrace: " + text);
        }
    }
}
