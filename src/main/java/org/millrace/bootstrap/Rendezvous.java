package org.millrace.bootstrap;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.ListeningPorts;
import org.millrace.net.connection.TlsIdentity;

/** Way for rank 0 to publish its address, and for the other ranks to find it. */
sealed interface Rendezvous permits FileRendezvous, TcpRendezvous, Split.SplitRendezvous {

    /**
     * Parses {@code file:PATH}, {@code tcp:HOST:PORT}, or {@code job:NAME}. The last form stands for a file that the
     * ranks of a launcher's job share; all these ranks are on this host.
     *
     * @throws IllegalArgumentException if the text has none of the three forms, or is malformed
     */
    static Rendezvous parse(String text, JoinOptions options) {
        if (text.startsWith("file:")) {
            return FileRendezvous.parse(text, options);
        }
        if (text.startsWith("tcp:")) {
            return TcpRendezvous.parse(text, options);
        }
        if (text.startsWith("job:")) {
            return FileRendezvous.ofJob(text, Path.of(System.getProperty("java.io.tmpdir")), options);
        }
        throw new IllegalArgumentException("rendezvous \"" + text + "\": expected file:PATH or tcp:HOST:PORT");
    }

    /**
     * Listens for the other ranks and publishes the address. Called by rank 0 only.
     *
     * @throws org.millrace.MillraceException if rank 0 cannot listen or publish; the message contains the reason and a
     *                                        remedy
     */
    BootstrapListener open(RankIdentity self, int size);

    /**
     * Returns a possible address of rank 0. Called by all other ranks.
     *
     * @param attempt number of earlier calls. If rank 0 has several addresses, successive calls return them in turn
     * @throws IOException                    if the address is not yet known; the message states the missing part
     * @throws org.millrace.MillraceException if the address will never be known
     */
    ServerAddress find(int attempt) throws IOException;

    /**
     * Returns true if {@link #find} may return a wrong address, for example the address of a group that has ended.
     * Another process may then listen at the address, and a later call may return the right address.
     */
    default boolean mayBeStale() {
        return false;
    }

    /**
     * Returns true if rank 0 listened before this rank learned of the address. A refused connection then shows that
     * rank 0 has ended or has left.
     */
    default boolean isListening() {
        return false;
    }

    /** Returns the directory in which the ranks can decide which group continues; null if there is none. */
    default @Nullable Path place() {
        return null;
    }

    /**
     * Bound listener at which rank 0 waits for the other ranks.
     *
     * @param address  address of this machine at which other ranks reach the listener
     * @param tls      identity of rank 0 under TLS; null without TLS
     * @param withdraw action that removes the published address; runs once
     */
    record BootstrapListener(ServerSocketChannel channel, InetAddress address, Secret secret, @Nullable TlsIdentity tls,
            Runnable withdraw) implements AutoCloseable {

        /** Closes the listener. No rank can connect afterwards. */
        @Override
        public void close() {
            withdraw.run();
            ListeningPorts.close(channel);
        }
    }

    /**
     * Resolved address of rank 0, and the credentials that both sides need.
     *
     * @param note origin of the address, for messages; empty if messages need no origin
     */
    record ServerAddress(InetSocketAddress address, Secret secret, @Nullable TlsIdentity tls, String note) {

        @Override
        public String toString() {
            return address.getAddress().getHostAddress() + ':' + address.getPort()
                    + (note.isEmpty() ? "" : " (" + note + ')');
        }
    }

    /** Backlog of the listener. All ranks of a large group connect at the same time. */
    int BACKLOG = 1024;

    /**
     * @param purpose use of the port, see {@link ListeningPorts}
     * @param note    further text for the log; may be empty
     */
    static ServerSocketChannel bind(InetSocketAddress address, String purpose, String note) throws IOException {
        ServerSocketChannel listener = ServerSocketChannel.open();
        try {
            listener.bind(address, BACKLOG);
            ListeningPorts.opened(listener, purpose, note);
            return listener;
        } catch (IOException | RuntimeException e) {
            listener.close();
            throw e;
        }
    }
}
