package org.millrace.trace;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.millrace.file.PrivateFile;
import org.millrace.file.SystemCall;

/**
 * Lock that proves to processes of other PID namespaces that this process lives. The process's number is meaningless in
 * the other namespaces. The process locks its trace file. The operating system always releases the lock when the
 * process ends. The lock is made with {@code flock}. {@link java.nio.channels.FileChannel#lock()} uses {@code fcntl}. A
 * lock made with {@code fcntl} would be released as soon as any code in the process closes the file.
 */
final class OwnerLock {

    /**
     * File system in this host's memory. In this file system, all processes of the host see each other's locks. A
     * network file system may keep locks local to one of several hosts.
     */
    private static final String FILE_SYSTEM = "tmpfs";
    private static final long SHARED = 1;
    private static final long EXCLUSIVE = 2;
    private static final long DO_NOT_WAIT = 4;
    /** Error number if another process holds the lock. */
    private static final long WOULD_BLOCK = 11;

    private OwnerLock() {}

    /**
     * Locks a file that stays open in this process until the process ends. Uses the existing descriptor of the file,
     * because child processes do not inherit this descriptor. Child processes would inherit a new descriptor, and would
     * then hold the lock, too. Returns false if the process cannot use locks on the file's file system.
     */
    public static boolean hold(Path file) {
        try {
            return SystemCall.isKnown() && Files.getFileStore(file).type().equals(FILE_SYSTEM)
                    && SystemCall.of(SystemCall.FLOCK, descriptorOf(file), EXCLUSIVE | DO_NOT_WAIT, 0) == 0;
        } catch (IOException | DirectoryIteratorException none) {
            return false;
        }
    }

    private static int descriptorOf(Path file) throws IOException {
        Path real = file.toRealPath();
        try (DirectoryStream<Path> open = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
            for (Path descriptor : open) {
                try {
                    if (Files.readSymbolicLink(descriptor).equals(real)) {
                        return Integer.parseInt(descriptor.getFileName().toString());
                    }
                } catch (NoSuchFileException closed) {
                    // Another thread has closed this descriptor after the descriptors were listed.
                }
            }
        }
        throw new NoSuchFileException(file.toString(), null, "it is not open");
    }

    /**
     * Returns whether no process holds the lock of a file; false in case of doubt. The result is meaningful only if the
     * file's creator held the lock.
     */
    public static boolean isFree(Path file) {
        return tryToLock(file) == 0;
    }

    /** Returns whether a process of this host holds the lock of a file; false in case of doubt. */
    public static boolean isHeld(Path file) {
        return tryToLock(file) == -WOULD_BLOCK;
    }

    /** Returns 0 if the file was locked, a negated error number if the call failed, or 1 if no attempt was possible. */
    private static long tryToLock(Path file) {
        try {
            if (!SystemCall.isKnown() || !PrivateFile.isOurFile(file)
                    || !Files.getFileStore(file).type().equals(FILE_SYSTEM)) {
                return 1;
            }
            int descriptor = SystemCall.open(file);
            try { // The lock is shared, so that two concurrent callers do not mistake each other for the holder.
                return SystemCall.of(SystemCall.FLOCK, descriptor, SHARED | DO_NOT_WAIT, 0);
            } finally {
                SystemCall.of(SystemCall.CLOSE, descriptor, 0, 0);
            }
        } catch (IOException unclear) {
            return 1;
        }
    }
}
