package org.millrace.file;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import org.apache.logging.log4j.LogManager;

/** Creates, opens and deletes files that only processes of this user can open, and checks the owner of a file. */
public final class PrivateFile {

    /** Permissions that allow only the owner to read and write. */
    public static final String PERMISSIONS = "rw-------";

    private static final FileAttribute<Set<PosixFilePermission>> PRIVATE =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(PERMISSIONS));
    private static final Set<PosixFilePermission> DIRECTORY_PERMISSIONS = PosixFilePermissions.fromString("rwx------");
    private static final FileAttribute<Set<PosixFilePermission>> PRIVATE_DIRECTORY =
            PosixFilePermissions.asFileAttribute(DIRECTORY_PERMISSIONS);
    private static final Set<StandardOpenOption> CREATE =
            Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.READ, StandardOpenOption.WRITE);
    private static final Set<OpenOption> OPEN =
            Set.of(StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
    /**
     * Buffer of zeros that is written to new files. All files share this buffer. Separate buffers would stay outside
     * the heap until a garbage collection, which a JVM with a small heap runs late.
     */
    private static final ByteBuffer ZEROS = ByteBuffer.allocateDirect(128 << 10).asReadOnlyBuffer();

    private PrivateFile() {}

    public static boolean isOurs(Path file) throws IOException {
        Integer owner = User.ownerOf(file);
        return owner != null && owner == User.ID && owner != User.UNKNOWN;
    }

    /**
     * Returns whether a path is a regular file of this user. Checked before the file is opened, because opening a file
     * of another kind may block: the opening of a pipe blocks until the pipe has a writer.
     */
    public static boolean isOurFile(Path file) throws IOException {
        return isOurs(file) && Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS);
    }

    /**
     * Returns a subdirectory that only this user can use, in a directory that other users share. Creates the
     * subdirectory if it does not exist.
     *
     * @throws IOException if another user created the subdirectory before
     */
    public static Path directory(Path shared, String name) throws IOException {
        Path own = shared.resolve(name + "-" + User.text(User.ID));
        try {
            Files.createDirectory(own, PRIVATE_DIRECTORY);
        } catch (FileAlreadyExistsException before) {
            LogManager.getLogger(PrivateFile.class).trace("{} is there", own);
        }
        if (!isOurs(own) || !Files.isDirectory(own, LinkOption.NOFOLLOW_LINKS)) {
            throw new IOException(own + " is not a directory of this user: another user created it before");
        }
        Files.setPosixFilePermissions(own, DIRECTORY_PERMISSIONS);
        return own;
    }

    /** Creates a file that only this user can open. The file system allocates all its bytes, which are zeros. */
    public static FileChannel create(Path file, long bytes) throws IOException {
        StaleFiles.madeIn(file.getParent());
        FileChannel channel = FileChannel.open(file, CREATE, PRIVATE);
        try {
            fill(channel, bytes);
            return channel;
        } catch (IOException e) {
            channel.close();
            Files.deleteIfExists(file);
            throw e;
        }
    }

    /**
     * Writes zeros to a file, so that the file system allocates its bytes. If the bytes were only reserved, an access
     * to the bytes would kill the process when no memory is left.
     */
    public static void fill(FileChannel channel, long bytes) throws IOException {
        ByteBuffer zeros = ZEROS.duplicate();
        for (long written = 0; written < bytes;) {
            zeros.clear().limit((int) Math.min(bytes - written, zeros.capacity()));
            written += channel.write(zeros);
        }
    }

    /** Extends a file to a length. The new bytes are zeros, and only the last byte is allocated. */
    public static void extend(FileChannel channel, long length) throws IOException {
        if (channel.size() < length) {
            channel.write(ByteBuffer.allocate(1), length - 1);
        }
    }

    /** Opens a file that another process created. */
    public static FileChannel open(Path file) throws IOException {
        return FileChannel.open(file, OPEN);
    }

    /** Deletes a file if it still exists. */
    public static void delete(Path file) {
        try {
            Files.deleteIfExists(file);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot delete " + file, e);
        }
    }
}
