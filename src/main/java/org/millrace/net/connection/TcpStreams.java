package org.millrace.net.connection;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jdk.net.ExtendedSocketOptions;
import org.jspecify.annotations.Nullable;
import org.millrace.foreign.SystemError;

/** The TCP streams of this process to other hosts. Safe from any thread. */
public final class TcpStreams {

    /**
     * Idle time in seconds after which the operating system sends keep-alive probes. The stream is lost after three
     * unanswered probes, 14 seconds after its last input. The peer's operating system answers the probes, independent
     * of the peer's process.
     */
    private static final int KEEP_ALIVE_IDLE_SECONDS = 5;
    private static final int KEEP_ALIVE_INTERVAL_SECONDS = 3;
    private static final int KEEP_ALIVE_PROBES = 3;

    /** Reason for the loss of a stream, if the operating system has not reported an error before. */
    public static final String SILENT = "nothing has come from the peer's host for 14 s";

    private static final List<TcpStream> OPEN = new ArrayList<>();
    private static final Map<InetAddress, String> HOSTS = new ConcurrentHashMap<>();
    /** Reports of peers about silent links between two other hosts. The key is the connection of the report. */
    private static final Map<Object, Report> REPORTS = new ConcurrentHashMap<>();
    private static volatile @Nullable SilentLink silent;

    /** A silent link that the peer process of a connection has reported, and the time when the report arrived. */
    public record Report(String peer, SilentLink link, long time) {
    }

    private TcpStreams() {}

    /**
     * Makes the operating system probe a stream while the stream is idle. Both ends of a stream probe, see
     * {@link TcpStream}.
     */
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
     * Watches a connected stream until it is closed.
     *
     * @param peer the peer process, for messages
     * @param host name of the peer's host; null if the peer has not sent it
     * @return state of the stream; null for a stream that is never silent
     */
    public static @Nullable TcpStream watch(SocketChannel channel, String peer, @Nullable String host) {
        SocketAddress here;
        SocketAddress there;
        try {
            here = channel.getLocalAddress();
            there = channel.getRemoteAddress();
        } catch (IOException closed) {
            // The channel is closed. The next call that uses the channel reports the reason.
            return null;
        }
        if (!(here instanceof InetSocketAddress local) || !(there instanceof InetSocketAddress remote)
                || local.getAddress().equals(remote.getAddress())) {
            // Both ends are on one host. Such a stream is never silent.
            return null;
        }
        if (host != null) {
            name(remote.getAddress(), host);
        }
        synchronized (OPEN) {
            // SilenceWatch removes closed streams, but runs only with a trace. Closed streams are therefore also
            // removed here.
            OPEN.removeIf(stream -> !stream.isOpen());
            TcpStream watched = new TcpStream(channel, local, remote, peer, host == null);
            OPEN.add(watched);
            return watched;
        }
    }

    /**
     * Returns the likely reason for the loss of a stream. {@code cause} is the error of the stream; null without an
     * error.
     */
    public static String reason(@Nullable IOException cause) {
        return cause instanceof SocketTimeoutException || SystemError.TIMED_OUT.isReasonOf(cause)
                ? "nothing more came back from the peer's host: the host is gone, or the network between is silent"
                : "the peer's process ended, or the network between failed: see the peer's last log lines";
    }

    /** Returns the silent link that this process reports to its peers on other hosts; null if no link is silent. */
    public static @Nullable SilentLink silent() {
        return silent;
    }

    /** Sets the silent link that is reported to the peers; null if no link is silent. */
    public static void silent(@Nullable SilentLink link) {
        silent = link;
    }

    /**
     * Records the silent link that a peer process has reported. A null link removes the connection's earlier report.
     *
     * @param connection connection on which the report arrived
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

    /** Records a host's name. Messages about the host's address contain the name from then on. */
    public static void name(InetAddress address, String host) {
        HOSTS.put(address, host);
    }

    /** Returns a host's description: its address, and its name if known. */
    static String words(InetAddress address) {
        String name = HOSTS.get(address);
        return name == null ? address.getHostAddress() : name + " (" + address.getHostAddress() + ")";
    }
}
