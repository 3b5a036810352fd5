package org.millrace.engine.bootstrap;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import org.millrace.MillraceException;
import org.millrace.engine.bootstrap.Rendezvous.BootstrapListener;
import org.millrace.engine.bootstrap.Rendezvous.ServerAddress;

/** Rank 0 listens where the user says. */
record TcpRendezvous(String host, int port, JoinOptions options) implements Rendezvous {

    private static final String PREFIX = "tcp:";
    private static final int MAX_PORT = 0xFFFF;

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
        InetSocketAddress address = options.address() == null ? new InetSocketAddress(host, port)
                : new InetSocketAddress(options.address(), port);
        if (address.isUnresolved()) {
            throw new MillraceException("rank 0 cannot listen on " + this + ": the host is unknown here");
        }
        try {
            return new BootstrapListener(Rendezvous.bind(address), Secret.of("", options.secret()), () -> {});
        } catch (IOException e) {
            throw new MillraceException("rank 0 cannot listen on " + this + ": " + e.getMessage()
                    + "; HOST has to be an address of the machine of rank 0, and the port one that no other group or "
                    + "program uses", e);
        }
    }

    @Override
    public ServerAddress find() throws IOException {
        InetSocketAddress address = new InetSocketAddress(host, port);
        if (address.isUnresolved()) {
            throw new UnknownHostException("the host " + host + " is unknown here");
        }
        return new ServerAddress(address, Secret.of("", options.secret()));
    }

    @Override
    public boolean mayBeStale() {
        return false;
    }

    @Override
    public String toString() {
        return PREFIX + (host.indexOf(':') < 0 ? host : '[' + host + ']') + ':' + port;
    }
}
