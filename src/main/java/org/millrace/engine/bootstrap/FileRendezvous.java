package org.millrace.engine.bootstrap;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.MillraceException;
import org.millrace.engine.bootstrap.Rendezvous.BootstrapListener;
import org.millrace.engine.bootstrap.Rendezvous.ServerAddress;
import org.millrace.file.PrivateFile;

/**
 * Rank 0 listens on a port that happens to be free, and writes it to a file that the others can read. The file lives
 * until the group is complete.
 */
record FileRendezvous(Path path, JoinOptions options) implements Rendezvous {

    private static final Logger LOG = LogManager.getLogger(FileRendezvous.class);
    private static final String PREFIX = "file:";

    static FileRendezvous parse(String text, JoinOptions options) {
        String name = text.substring(PREFIX.length());
        Path path = Path.of(name).toAbsolutePath().normalize();
        if (name.isEmpty() || path.getFileName() == null || Files.isDirectory(path)) {
            throw new IllegalArgumentException(
                    "rendezvous \"" + text + "\": expected file:PATH, where PATH is not a directory");
        }
        return new FileRendezvous(path, options);
    }

    /** The name of a job can be guessed: in a directory that all can write it would be anybody's to take. */
    static FileRendezvous ofJob(String text, Path shared, JoinOptions options) {
        try {
            return parse(PREFIX + PrivateFile.directory(shared, "millrace").resolve(text.replace(':', '-')), options);
        } catch (IOException e) {
            throw new MillraceException("the ranks have no place to meet in " + shared + ": " + e.getMessage()
                    + "; set MASTER_ADDR and MASTER_PORT on all ranks, or -Djava.io.tmpdir=DIR", e);
        }
    }

    @Override
    public BootstrapListener open(RankIdentity self, int size) {
        InetAddress address = InetAddress.getLoopbackAddress();
        try {
            Optional<RendezvousFile> found = RendezvousFile.read(path);
            if (found.isPresent() && isInUse(found.get(), self, size)) {
                throw new MillraceException("rank 0 cannot use " + path + ": another group is using it, " + found.get()
                        + "; give each group a path of its own, or end the other one");
            }
            ServerSocketChannel listener = Rendezvous.bind(new InetSocketAddress(address, 0));
            try {
                RendezvousFile file = new RendezvousFile((InetSocketAddress) listener.getLocalAddress(),
                        Secret.randomHex(), size, self);
                file.publish(path);
                return new BootstrapListener(listener, address, secret(file), options.tls(), () -> withdraw(file));
            } catch (IOException | RuntimeException e) {
                listener.close();
                throw e;
            }
        } catch (IOException e) {
            throw new MillraceException("rank 0 cannot write " + path + " or listen on " + address.getHostAddress()
                    + ": " + e + "; the directory has to exist and to be writable, the address to be this machine's",
                    e);
        }
    }

    /** A file that a killed process left behind leads nowhere, or to somebody who does not know its secret. */
    private boolean isInUse(RendezvousFile found, RankIdentity self, int size) throws IOException {
        try (Selector selector = Selector.open()) {
            new BootstrapClient(selector, self, size, options.sockets())
                    .handshake(new ServerAddress(found.address(), secret(found), options.tls(), ""),
                            Deadline.in(options.deadline()))
                    .connection()
                    .close();
            return true;
        } catch (SocketTimeoutException e) {
            return true; // somebody listens there; that it is silent does not show that it is gone
        } catch (BootstrapClient.UnprovenRefusalException e) {
            throw new MillraceException("rank 0 cannot use " + path + ": " + e.getMessage(), e);
        } catch (IOException e) {
            LOG.debug("{} is stale", path, e);
            return false;
        }
    }

    private void withdraw(RendezvousFile file) {
        try {
            file.withdraw(path);
        } catch (IOException | MillraceException e) {
            LOG.warn("rank 0 cannot delete {}; the next group that uses the path will replace it", path, e);
        }
    }

    private Secret secret(RendezvousFile file) {
        return Secret.of(file.secret(), options.secret());
    }

    @Override
    public ServerAddress find(int attempt) throws IOException {
        RendezvousFile file = RendezvousFile.read(path)
                .orElseThrow(() -> new FileNotFoundException("rank 0 has not written " + path
                        + "; it has not started, uses another path, or its group is complete already"));
        return new ServerAddress(file.address(), secret(file), options.tls(), "");
    }

    @Override
    public boolean mayBeStale() {
        return true;
    }

    @Override
    public String toString() {
        return PREFIX + path;
    }
}
