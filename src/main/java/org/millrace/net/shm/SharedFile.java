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
 * A file of zeros that this process makes for others of its user to map, and that can be opened until it is withdrawn:
 * one that lies in no directory and that nobody can make shorter ({@link SealedFile}), or one in a directory, with a
 * random name and mode 0600.
 */
final class SharedFile {

    private final FileName name;
    private final FileChannel channel;
    /** Where it lies; null if it is sealed. */
    private final @Nullable Path path;
    private final @Nullable SealedFile sealed;

    private SharedFile(FileName name, FileChannel channel, @Nullable Path path, @Nullable SealedFile sealed) {
        this.name = name;
        this.channel = channel;
        this.path = path;
        this.sealed = sealed;
    }

    /**
     * Whether another process can probably open sealed files of this one: it can refuse them all the same, as when
     * another user namespace is between.
     */
    public static boolean canBeSealedFor(ProcessIdentity other) {
        return SealedFile.domain() != 0 && other.isOfThisNamespace();
    }

    /** Makes one of a kind of {@link FileName} in a directory. */
    public static SharedFile create(Path directory, String kind, long bytes) throws IOException {
        FileName name = FileName.ours(new SecureRandom().nextLong(), kind);
        Path path = directory.resolve(name.toString());
        return new SharedFile(name, PrivateFile.create(path, bytes), path, null);
    }

    /** Makes one that nobody can make shorter, but longer if it grows. */
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
     * Opens one that another process of this user made.
     *
     * @throws IOException if it is not there, is another user's, or could be made shorter though it is said to be
     *                     sealed
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

    /** All processes that need it have opened it: one in a directory is deleted by the first of them. */
    public static void withdraw(Path directory, FileName name) {
        if (!name.isSealed()) {
            PrivateFile.delete(directory.resolve(name.toString()));
        }
    }

    public FileName name() {
        return name;
    }

    /** The caller's to close. */
    public FileChannel channel() {
        return channel;
    }

    /** Nobody needs to open it any more. May be called twice. */
    public void withdraw() {
        if (sealed != null) {
            sealed.close();
        } else if (path != null) {
            PrivateFile.delete(path);
        }
    }
}
