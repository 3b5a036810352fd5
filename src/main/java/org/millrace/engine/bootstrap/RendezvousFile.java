package org.millrace.engine.bootstrap;

import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
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
import org.millrace.MillraceException;
import org.millrace.file.User;
import org.millrace.net.connection.PeerText;

/**
 * What rank 0 writes for the others: text, one {@code name=value} a line.
 *
 * @param secret what shows that one could read the file; hexadecimal
 * @param owner  rank 0's process
 */
record RendezvousFile(InetSocketAddress address, String secret, int size, RankIdentity owner) {

    private static final String KIND = "millrace-rendezvous";
    private static final String VERSION = "1";
    /** Ours are some 150 bytes. Whatever else the path may name is not read to its end. */
    private static final int MAX_BYTES = 4096;
    private static final int ROOT = 0;

    /**
     * The file's content; empty if there is no file, or an empty one, which somebody made to have a name.
     *
     * @throws MillraceException if it is another file than a rendezvous file, or perhaps somebody else's
     */
    static Optional<RendezvousFile> read(Path path) throws IOException {
        return read(path, User.ID);
    }

    /**
     * The same for a given user.
     */
    static Optional<RendezvousFile> read(Path path, int user) throws IOException {
        byte[] bytes;
        try {
            // before it is opened: to open a pipe is to wait for a writer
            BasicFileAttributes checked = check(path, user);
            try (InputStream in = Files.newInputStream(path, LinkOption.NOFOLLOW_LINKS)) {
                bytes = in.readNBytes(MAX_BYTES);
            }
            if (!Objects.equals(checked.fileKey(), check(path, user).fileKey())) {
                return Optional.empty(); // rank 0 has just replaced it: it is looked at again
            }
        } catch (NoSuchFileException e) {
            return Optional.empty();
        }
        return bytes.length == 0 ? Optional.empty()
                : Optional.of(parse(path, new String(bytes, StandardCharsets.UTF_8)));
    }

    /**
     * Who can choose what the file says decides which group this rank joins: that is not for other users, who may have
     * been first in a folder that all can write, nor for links of theirs.
     */
    private static BasicFileAttributes check(Path path, int user) throws IOException {
        BasicFileAttributes file = Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
        if (!file.isRegularFile()) {
            throw refused(path, file.isSymbolicLink() ? "a symbolic link, which is not followed" : "no regular file");
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
            // a literal alone: nobody is asked for a name that stands in a file
            return new RendezvousFile(
                    new InetSocketAddress(InetAddress.ofLiteral(value(lines, "address")), number(lines, "port", 65535)),
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
     * Writes the file in one step, readable by its owner alone: nobody sees half of it, and what was there before is
     * replaced.
     */
    void publish(Path path) throws IOException {
        String text = KIND + '=' + VERSION + "\naddress=" + address.getAddress().getHostAddress() + "\nport="
                + address.getPort() + "\nsecret=" + secret + "\nsize=" + size + "\npid=" + owner.pid() + "\nhost="
                + owner.host() + '\n';
        // permissions 600 where there are any
        Path temporary = Files.createTempFile(path.getParent(), "." + path.getFileName() + ".", ".tmp");
        try {
            Files.writeString(temporary, text);
            Files.move(temporary, path, StandardCopyOption.ATOMIC_MOVE);
        } finally {
            Files.deleteIfExists(temporary);
        }
    }

    /** Deletes the file, unless it has become another group's. */
    void withdraw(Path path) throws IOException {
        if (read(path).filter(this::equals).isPresent()) {
            Files.deleteIfExists(path);
        }
    }

    /** How messages name the group, without its secret. */
    @Override
    public String toString() {
        return "the group of " + size + " ranks whose rank 0 is " + owner.process() + ", at "
                + address.getAddress().getHostAddress() + ':' + address.getPort();
    }
}
