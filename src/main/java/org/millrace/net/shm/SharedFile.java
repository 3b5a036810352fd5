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
 * A file of zeros that this process creates for other processes of its user. These processes can open the file until it
 * is withdrawn. The file is a {@link SealedFile} without a path, or a file with a random name and mode 0600 in a
 * directory.
 */
final class SharedFile {

    private final FileName name;
    private final FileChannel channel;
    /** Path of the file; null for a sealed file. */
    private final @Nullable Path path;
    private final @Nullable SealedFile sealed;

    private SharedFile(FileName name, FileChannel channel, @Nullable Path path, @Nullable SealedFile sealed) {
        this.name = name;
        this.channel = channel;
        this.path = path;
        this.sealed = sealed;
    }

    /**
     * Returns whether another process can probably open this process's sealed files. The attempt may still fail, for
     * instance across user namespaces.
     */
    public static boolean canBeSealedFor(ProcessIdentity other) {
        return SealedFile.domain() != 0 && other.isOfThisNamespace();
    }

    /**
     * @param kind      one of the kinds of {@link FileName}
     * @param allocated number of bytes at the beginning of the file that are allocated immediately
     * @param length    length of the file
     */
    public static SharedFile create(Path directory, String kind, long allocated, long length) throws IOException {
        FileName name = FileName.ours(new SecureRandom().nextLong(), kind);
        Path path = directory.resolve(name.toString());
        FileChannel channel = PrivateFile.create(path, allocated);
        SharedFile file = new SharedFile(name, channel, path, null);
        try {
            PrivateFile.extend(channel, length);
            return file;
        } catch (IOException e) {
            channel.close();
            file.withdraw();
            throw e;
        }
    }

    /**
     * Creates a sealed file, which can neither shrink nor grow. The other properties of the file are the same as in
     * {@link #create}.
     */
    public static SharedFile createSealed(long allocated, long length) throws IOException {
        SealedFile sealed = SealedFile.create(allocated, length, SealedFile.ALL);
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
     * @throws IOException if the file does not exist, belongs to another user, or lacks a seal although its name is the
     *                     name of a sealed file
     */
    public static FileChannel open(Path directory, FileName name) throws IOException {
        if (name.isSealed()) {
            return SealedFile.open(name);
        }
        Path path = directory.resolve(name.toString());
        if (!Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS) || !PrivateFile.isOurs(path)) {
            throw new IOException(path + " does not exist, or belongs to another user");
        }
        return PrivateFile.open(path);
    }

    /**
     * Deletes a file in a directory; does nothing for a sealed file. Called when all processes that need the file have
     * opened it. Several of these processes may call this method.
     */
    public static void withdraw(Path directory, FileName name) {
        if (!name.isSealed()) {
            PrivateFile.delete(directory.resolve(name.toString()));
        }
    }

    public FileName name() {
        return name;
    }

    /** Returns the file's channel. The caller closes it. */
    public FileChannel channel() {
        return channel;
    }

    /**
     * Prevents further processes from opening the file. Called when no further process needs it. May be called twice.
     */
    public void withdraw() {
        if (sealed != null) {
            sealed.close();
        } else if (path != null) {
            PrivateFile.delete(path);
        }
    }
}
