package org.millrace.net.shm;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.security.SecureRandom;
import org.jspecify.annotations.Nullable;
import org.millrace.file.FileName;
import org.millrace.file.PrivateFile;
import org.millrace.file.ProcessIdentity;

/**
 * A file of zeros that this process creates for other processes of its user. They can open it until it is withdrawn. It
 * is a {@link SealedFile} outside all directories, or a file in a directory, with a random name and mode 0600.
 */
final class SharedFile {

    private final FileName name;
    private final FileChannel channel;
    /** Path of the file; null if it is sealed. */
    private final @Nullable Path path;
    private final @Nullable SealedFile sealed;

    private SharedFile(FileName name, FileChannel channel, @Nullable Path path, @Nullable SealedFile sealed) {
        this.name = name;
        this.channel = channel;
        this.path = path;
        this.sealed = sealed;
    }

    /**
     * Returns whether another process can probably open this process's sealed files. The open may still fail, for
     * instance across user namespaces.
     */
    public static boolean canBeSealedFor(ProcessIdentity other) {
        return SealedFile.domain() != 0 && other.isOfThisNamespace();
    }

    /** Creates a file of a kind of {@link FileName} in a directory. */
    public static SharedFile create(Path directory, String kind, long bytes) throws IOException {
        FileName name = FileName.ours(new SecureRandom().nextLong(), kind);
        Path path = directory.resolve(name.toString());
        return new SharedFile(name, PrivateFile.create(path, bytes), path, null);
    }

    /** Creates a file that cannot shrink, and can grow if {@code grows} is set. */
    public static SharedFile createSealed(long bytes, boolean grows) throws IOException {
        SealedFile sealed = SealedFile.create(bytes, grows ? SealedFile.MAY_GROW : SealedFile.ALL);
        try {
            return new SharedFile(sealed.name(), sealed.channel(), null, sealed);
        } catch (IOException e) {
            sealed.close();
            throw e;
        }
    }

    /**
     * Opens a file that another process of this user created.
     *
     * @throws IOException if it does not exist, belongs to another user, or can shrink although it should be sealed
     */
    public static FileChannel open(Path directory, FileName name) throws IOException {
        if (name.isSealed()) {
            return SealedFile.open(name, SealedFile.MAY_GROW);
        }
        Path path = directory.resolve(name.toString());
        if (!Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS) || !PrivateFile.isOurs(path)) {
            throw new IOException(path + " is not there, or not of this user");
        }
        return PrivateFile.open(path);
    }

    /** Called when all processes that need the file have opened it. The first of them deletes a file in a directory. */
    public static void withdraw(Path directory, FileName name) {
        if (!name.isSealed()) {
            PrivateFile.delete(directory.resolve(name.toString()));
        }
    }

    public FileName name() {
        return name;
    }

    /** Returns the channel, which the caller closes. */
    public FileChannel channel() {
        return channel;
    }

    /** Prevents further opens, because no process needs them. May be called twice. */
    public void withdraw() {
        if (sealed != null) {
            sealed.close();
        } else if (path != null) {
            PrivateFile.delete(path);
        }
    }
}
