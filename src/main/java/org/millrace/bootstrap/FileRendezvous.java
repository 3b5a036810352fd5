package org.millrace.bootstrap;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Objects;
import java.util.Optional;
import java.util.Properties;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.MillraceException;
import org.millrace.bootstrap.Rendezvous.BootstrapListener;
import org.millrace.bootstrap.Rendezvous.ServerAddress;
import org.millrace.file.PrivateFile;
import org.millrace.file.User;
import org.millrace.net.connection.PeerText;

/**
 * Rendezvous over a file. Rank 0 listens on a free port and writes the port to a file that the other ranks read. The
 * file exists until the group is complete.
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

    /**
     * Returns the rendezvous of a job. Other users can guess the name of a job. In a directory that all users can
     * write, another user could create the file before rank 0 creates it. The file is therefore in a private directory.
     */
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
            ServerSocketChannel listener =
                    Rendezvous.bind(new InetSocketAddress(address, 0), "rendezvous", path.toString());
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

    /**
     * Returns whether another group uses a rendezvous file. A killed process may have left the file behind. In this
     * case no process that knows the file's secret listens at the address in the file.
     */
    private boolean isInUse(RendezvousFile found, RankIdentity self, int size) throws IOException {
        try (Selector selector = Selector.open()) {
            new BootstrapClient(selector, self, size, options.sockets())
                    .handshake(new ServerAddress(found.address(), secret(found), options.tls(), ""),
                            Deadline.in(options.deadline()))
                    .connection()
                    .close();
            return true;
        } catch (SocketTimeoutException e) {
            return true; // A process listens at the address. Its silence does not prove that the group has ended.
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
    public Path place() {
        return path.getParent();
    }

    @Override
    public String toString() {
        return PREFIX + path;
    }

    /**
     * Content of the file that rank 0 writes for the other ranks. The content is text with one {@code name=value} per
     * line.
     *
     * @param secret random hexadecimal text; a rank that knows this text has shown that it can read the file
     * @param owner  identity of rank 0
     */
    record RendezvousFile(InetSocketAddress address, String secret, int size, RankIdentity owner) {

        private static final String KIND = "millrace-rendezvous";
        private static final String VERSION = "1";
        /**
         * Maximum number of bytes read from the file. A rendezvous file has about 150 bytes. A file with more bytes
         * than this maximum is not a rendezvous file, and only its beginning is read.
         */
        private static final int MAX_BYTES = 4096;
        private static final int ROOT = 0;

        /**
         * Returns the content of the file. The result is empty if the file does not exist or rank 0 has just replaced
         * it. The result is also empty if the file has no bytes. A user may have created an empty file to reserve a
         * name.
         *
         * @throws MillraceException if the file is no rendezvous file, or may belong to another user
         */
        static Optional<RendezvousFile> read(Path path) throws IOException {
            return read(path, User.ID);
        }

        /** Returns the content of the file. Throws if the file belongs neither to the given user nor to root. */
        static Optional<RendezvousFile> read(Path path, int user) throws IOException {
            byte[] bytes;
            try {
                // Checked before opening, because opening a pipe would block until a writer opens it.
                BasicFileAttributes checked = check(path, user);
                try (InputStream in = Files.newInputStream(path, LinkOption.NOFOLLOW_LINKS)) {
                    bytes = in.readNBytes(MAX_BYTES);
                }
                if (!Objects.equals(checked.fileKey(), check(path, user).fileKey())) {
                    return Optional.empty(); // Rank 0 has just replaced the file. The caller reads the file again.
                }
            } catch (NoSuchFileException e) {
                return Optional.empty();
            }
            return bytes.length == 0 ? Optional.empty()
                    : Optional.of(parse(path, new String(bytes, StandardCharsets.UTF_8)));
        }

        /**
         * Checks the type and the owner of the file. The author of the file decides which group this rank joins. In a
         * directory that all users can write, another user may have created this file, or a link with its name, before
         * rank 0 created it.
         */
        private static BasicFileAttributes check(Path path, int user) throws IOException {
            BasicFileAttributes file = Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
            if (!file.isRegularFile()) {
                throw refused(path,
                        file.isSymbolicLink() ? "a symbolic link, which is not followed" : "no regular file");
            }
            Integer owner = User.ownerOf(path);
            if (owner != null && owner != ROOT && owner != user) {
                throw refused(path,
                        "the file of user " + User.text(owner) + ", and this process runs as user " + User.text(user));
            }
            return file;
        }

        private static MillraceException refused(Path path, String what) {
            return new MillraceException(path + " is not trusted as a rendezvous file: it is " + what
                    + "; it has to be a regular file of this user or of root. Choose another path, best in a folder that "
                    + "only this user can write, or delete what is there");
        }

        private static RendezvousFile parse(Path path, String text) throws IOException {
            try {
                Properties lines = new Properties();
                lines.load(new StringReader(text));
                if (!VERSION.equals(lines.getProperty(KIND))) {
                    throw new IllegalArgumentException("it does not begin with " + KIND + "=" + VERSION);
                }
                // Only literal addresses are accepted, so that a name in a file causes no name lookup.
                return new RendezvousFile(
                        new InetSocketAddress(InetAddress.ofLiteral(value(lines, "address")),
                                number(lines, "port", 65535)),
                        value(lines, "secret"), number(lines, "size", Integer.MAX_VALUE),
                        new RankIdentity(0, Long.parseLong(value(lines, "pid")), value(lines, "host")));
            } catch (IllegalArgumentException | IOException e) {
                throw new MillraceException(path + " is not a rendezvous file of this release: "
                        + PeerText.line(e.getMessage()) + "; choose another path, or delete the file", e);
            }
        }

        private static int number(Properties lines, String name, int most) {
            int number = Integer.parseInt(value(lines, name));
            if (number < 1 || number > most) {
                throw new IllegalArgumentException(name + " is " + number + ", and has to be from 1 to " + most);
            }
            return number;
        }

        private static String value(Properties lines, String name) {
            String value = lines.getProperty(name);
            if (value == null || value.isBlank()) {
                throw new IllegalArgumentException(name + " is missing");
            }
            return value.strip();
        }

        /**
         * Writes the file atomically, readable only by its owner. No reader sees a partly written file. An existing
         * file is replaced.
         */
        void publish(Path path) throws IOException {
            String text = KIND + '=' + VERSION + "\naddress=" + address.getAddress().getHostAddress() + "\nport="
                    + address.getPort() + "\nsecret=" + secret + "\nsize=" + size + "\npid=" + owner.pid() + "\nhost="
                    + owner.host() + '\n';
            // createTempFile creates the file with permissions 600, on file systems with permissions.
            Path temporary = Files.createTempFile(path.getParent(), "." + path.getFileName() + ".", ".tmp");
            try {
                Files.writeString(temporary, text);
                Files.move(temporary, path, StandardCopyOption.ATOMIC_MOVE);
            } finally {
                Files.deleteIfExists(temporary);
            }
        }

        /** Deletes the file, unless another group has replaced it. */
        void withdraw(Path path) throws IOException {
            if (read(path).filter(found -> found.secret.equals(secret)).isPresent()) {
                Files.deleteIfExists(path);
            }
        }

        /** Returns a description of the group for use in messages. It does not contain the secret. */
        @Override
        public String toString() {
            return "the group of " + size + " ranks whose rank 0 is " + owner.process() + ", at "
                    + address.getAddress().getHostAddress() + ':' + address.getPort();
        }
    }
}
