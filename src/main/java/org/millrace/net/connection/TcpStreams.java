package org.millrace.net.connection;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jdk.net.ExtendedSocketOptions;
import org.jspecify.annotations.Nullable;

/** The TCP streams of this process that lead to other hosts. Safe from any thread. */
public final class TcpStreams {

    /**
     * A stream on which neither side sends anything is probed after so many seconds, and lost when as many probes as
     * this have had no answer: 14 seconds in all. The peer's kernel answers, whatever its process does.
     */
    private static final int KEEP_ALIVE_IDLE_SECONDS = 5;
    private static final int KEEP_ALIVE_INTERVAL_SECONDS = 3;
    private static final int KEEP_ALIVE_PROBES = 3;

    /** Of a stream that is lost before its kernel says so. */
    public static final String SILENT = "nothing has come from the peer's host for 14 s";

    /** What C, and so Java, calls ETIMEDOUT. */
    private static final String TIMED_OUT = "Connection timed out";

    private static final List<TcpStream> OPEN = new ArrayList<>();
    private static final Map<InetAddress, String> HOSTS = new ConcurrentHashMap<>();
    /** By connection: what its peer says of a link between two other hosts. */
    private static final Map<Object, Report> REPORTS = new ConcurrentHashMap<>();
    private static volatile @Nullable SilentLink silent;

    /** What the process at the other end of a connection says. */
    public record Report(String peer, SilentLink link, long time) {
    }

    private TcpStreams() {}

    /** Has the kernel probe a stream while nothing is sent on it. Both ends need it: see {@link TcpStream}. */
    public static void keepAlive(SocketChannel channel) throws IOException {
        channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
        setIfSupported(channel, ExtendedSocketOptions.TCP_KEEPIDLE, KEEP_ALIVE_IDLE_SECONDS);
        setIfSupported(channel, ExtendedSocketOptions.TCP_KEEPINTERVAL, KEEP_ALIVE_INTERVAL_SECONDS);
        setIfSupported(channel, ExtendedSocketOptions.TCP_KEEPCOUNT, KEEP_ALIVE_PROBES);
    }

    private static void setIfSupported(SocketChannel channel, SocketOption<Integer> option, int value)
            throws IOException {
        if (channel.supportedOptions().contains(option)) {
            channel.setOption(option, value);
        }
    }

    /**
     * A connected stream is watched from now on, until it is closed.
     *
     * @param peer the process at its other end, for messages
     * @param host the name of its host; null if it has not said it
     * @return what is known of it; null for one that is never silent
     */
    public static @Nullable TcpStream watch(SocketChannel channel, String peer, @Nullable String host) {
        SocketAddress here;
        SocketAddress there;
        try {
            here = channel.getLocalAddress();
            there = channel.getRemoteAddress();
        } catch (IOException closed) {
            return null; // the next call that uses it says why
        }
        if (!(here instanceof InetSocketAddress local) || !(there instanceof InetSocketAddress remote)
                || local.getAddress().equals(remote.getAddress())) {
            return null; // what stays on one host is never silent
        }
        if (host != null) {
            name(remote.getAddress(), host);
        }
        synchronized (OPEN) {
            OPEN.removeIf(stream -> !stream.isOpen()); // nobody looks where nothing is written down
            TcpStream watched = new TcpStream(channel, local, remote, peer, host == null);
            OPEN.add(watched);
            return watched;
        }
    }

    /** What a stream's end comes from, as far as its error tells; null for an end without one. */
    public static String reason(@Nullable IOException cause) {
        return cause != null && (TIMED_OUT.equals(cause.getMessage()) || SILENT.equals(cause.getMessage()))
                ? "nothing came back from the peer's host any more: the host is gone, or the network between is silent"
                : "the peer's process ended, or the network between failed: look at what the peer said last";
    }

    /** A link of this process's that is silent: its peers are told, who may have no connection over it. */
    public static @Nullable SilentLink silent() {
        return silent;
    }

    /** Has the peers told of a link; null for none. */
    public static void silent(@Nullable SilentLink link) {
        silent = link;
    }

    /**
     * What the peer of a connection says.
     *
     * @param connection it is forgotten with a null link
     */
    public static void reported(Object connection, String peer, @Nullable SilentLink link) {
        if (link == null) {
            REPORTS.remove(connection);
        } else {
            REPORTS.put(connection, new Report(peer, link, System.nanoTime()));
        }
    }

    public static Collection<Report> reports() {
        return REPORTS.values();
    }

    static List<TcpStream> open() {
        synchronized (OPEN) {
            OPEN.removeIf(stream -> !stream.isOpen());
            return List.copyOf(OPEN);
        }
    }

    /** A host says its name: messages about its address have it from now on. */
    public static void name(InetAddress address, String host) {
        HOSTS.put(address, host);
    }

    /** A host in words: its address, and its name if it has said one. */
    static String words(InetAddress address) {
        String name = HOSTS.get(address);
        return name == null ? address.getHostAddress() : name + " (" + address.getHostAddress() + ")";
    }
}
