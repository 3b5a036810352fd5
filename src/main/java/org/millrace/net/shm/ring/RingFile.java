package org.millrace.net.shm.ring;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Set;
import org.millrace.net.shm.file.OwnFiles;
import org.millrace.net.shm.file.ShmUnavailableException;

/** Making, mapping and deleting the file that holds a ring. */
public final class RingFile {

    /** Nobody but the user reads or writes, from the file's first moment on. */
    static final FileAttribute<Set<PosixFilePermission>> PRIVATE =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

    private static final Set<StandardOpenOption> CREATE =
            Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.READ, StandardOpenOption.WRITE);
    private static final int WRITE_BYTES = 1 << 20;

    private RingFile() {}

    /**
     * Makes a file with a ring in it and maps it. All its bytes are written: memory that is only promised would kill
     * the process, with a SIGBUS, when it is touched and nothing is left to give.
     *
     * @param access how this process will use it
     * @param first  position of the first byte
     * @throws ShmUnavailableException if there is not so much shared memory
     */
    public static RingMemory create(Path file, RingAccess access, int capacity, long first) {
        long bytes = RingLayout.fileBytes(capacity);
        try (FileChannel channel = create(file, bytes)) {
            RingMemory ring = access.map(channel, bytes);
            RingLayout.initialize(ring, capacity, first);
            return ring;
        } catch (ShmUnavailableException e) {
            delete(file);
            throw e;
        } catch (IOException e) {
            delete(file);
            throw noRoom("a ring", bytes, file, "take TCP instead (MILLRACE_NET=socket)", e);
        }
    }

    /** Makes a file that nobody else can open, all of whose bytes are there. */
    public static FileChannel create(Path file, long bytes) throws IOException {
        OwnFiles.madeIn(file.getParent());
        FileChannel channel = FileChannel.open(file, CREATE, PRIVATE);
        try {
            ByteBuffer zeros = ByteBuffer.allocateDirect((int) Math.min(bytes, WRITE_BYTES));
            for (long written = 0; written < bytes;) {
                zeros.clear().limit((int) Math.min(bytes - written, zeros.capacity()));
                written += channel.write(zeros);
            }
            return channel;
        } catch (IOException e) {
            channel.close();
            throw e;
        }
    }

    /** Says that a file could not be made, and what helps. */
    public static ShmUnavailableException noRoom(String what, long bytes, Path file, String orElse, IOException e) {
        return new ShmUnavailableException("cannot make " + what + " of " + bytes + " bytes in " + file.getParent()
                + " (" + room(file.getParent()) + "): " + e.getMessage()
                + "; every connection needs one while it lives. Give the directory more room (mount -o remount,size=..., "
                + "docker run --shm-size=...), or " + orElse, e);
    }

    /**
     * Maps a ring that the peer made.
     *
     * @throws ShmUnavailableException if it cannot be opened, or is not as the peer said
     */
    public static RingMemory open(Path file, RingAccess access, int capacity) {
        long bytes = RingLayout.fileBytes(capacity);
        try (FileChannel channel =
                FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
            if (channel.size() != bytes) {
                throw new ShmUnavailableException(
                        "the ring " + file + " has " + channel.size() + " bytes, and the peer said " + bytes);
            }
            RingMemory ring = access.map(channel, bytes);
            String problem = RingLayout.problem(ring, capacity);
            if (problem != null) {
                ring.close();
                throw new ShmUnavailableException("the peer's ring " + file + " is damaged: " + problem);
            }
            return ring;
        } catch (IOException e) {
            throw new ShmUnavailableException(
                    "cannot open the peer's ring " + file + ": " + e + "; do both processes see the same directory?",
                    e);
        }
    }

    /** Deletes a file if it is still there. */
    public static void delete(Path file) {
        try {
            Files.deleteIfExists(file);
        } catch (IOException e) {
            throw new ShmUnavailableException("cannot delete " + file + ": " + e, e);
        }
    }

    private static String room(Path directory) {
        try {
            FileStore store = Files.getFileStore(directory);
            return store.getUsableSpace() + " bytes are free of " + store.getTotalSpace();
        } catch (IOException e) {
            return "its free space is unknown: " + e.getMessage();
        }
    }
}
