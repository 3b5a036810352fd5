package org.millrace.engine.bootstrap;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Path;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.connection.TlsIdentity;

/** How rank 0 says where it listens, and how the others learn it. */
sealed interface Rendezvous permits FileRendezvous, TcpRendezvous, Split.SplitRendezvous {

    /**
     * Understands {@code file:PATH}, {@code tcp:HOST:PORT}, and {@code job:NAME}, a file of a launcher's job all of
     * whose ranks are on this host.
     *
     * @throws IllegalArgumentException if it is neither, or not well formed
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
     * Rank 0: listens, and lets the others know.
     *
     * @throws org.millrace.MillraceException if that is not possible; the message says why and what to do
     */
    BootstrapListener open(RankIdentity self, int size);

    /**
     * Every other rank: where rank 0 may be.
     *
     * @param attempt how often it was asked for before: where there are several addresses, they take turns
     * @throws IOException                    if that cannot be known yet; the message says what is missing
     * @throws org.millrace.MillraceException if it will never be known
     */
    ServerAddress find(int attempt) throws IOException;

    /**
     * True if an address may be that of a group that is gone, so that what listens there need not be rank 0 and a
     * better address may follow.
     */
    default boolean mayBeStale() {
        return false;
    }

    /**
     * Where rank 0 waits for the others, bound and listening.
     *
     * @param address  of this machine, at which other ranks reach it
     * @param tls      who rank 0 is under TLS; null in clear
     * @param withdraw removes what leads the others here; runs once
     */
    record BootstrapListener(ServerSocketChannel channel, InetAddress address, Secret secret, @Nullable TlsIdentity tls,
            Runnable withdraw) implements AutoCloseable {

        private static final Logger LOG = LogManager.getLogger(BootstrapListener.class);

        /** Nobody can come any more. */
        @Override
        public void close() {
            withdraw.run();
            try {
                channel.close();
            } catch (IOException e) {
                LOG.debug("closing the listening socket of rank 0", e);
            }
        }
    }

    /**
     * Where the other ranks find rank 0, resolved, and what both sides must know.
     *
     * @param note how the address came about, where that needs to be said; or empty
     */
    record ServerAddress(InetSocketAddress address, Secret secret, @Nullable TlsIdentity tls, String note) {

        @Override
        public String toString() {
            return address.getAddress().getHostAddress() + ':' + address.getPort()
                    + (note.isEmpty() ? "" : " (" + note + ')');
        }
    }

    /** All ranks of a large group come at the same moment. */
    int BACKLOG = 1024;

    static ServerSocketChannel bind(InetSocketAddress address) throws IOException {
        ServerSocketChannel listener = ServerSocketChannel.open();
        try {
            return listener.bind(address, BACKLOG);
        } catch (IOException | RuntimeException e) {
            listener.close();
            throw e;
        }
    }
}
