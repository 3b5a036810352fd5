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
 * By which a process says that it lives to those of other PID namespaces, where its number says nothing: it holds a
 * lock of its file, which the kernel takes back when it ends, however it does. The lock is {@code flock}'s: a lock of
 * {@code fcntl}, which {@link java.nio.channels.FileChannel#lock()} takes, would go as soon as anybody in the process
 * closes the file.
 */
final class OwnerLock {

    /** Of memory of this host, all of whose processes see each other's locks; a network's may be kept to a host. */
    private static final String FILE_SYSTEM = "tmpfs";
    private static final long SHARED = 1;
    private static final long EXCLUSIVE = 2;
    private static final long DO_NOT_WAIT = 4;

    private OwnerLock() {}

    /**
     * Takes the lock of a file that this process has open, and keeps open as long as it lives: by that descriptor,
     * which no child inherits, as another one would. False if there are none here.
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
                    // by another thread, just now
                }
            }
        }
        throw new NoSuchFileException(file.toString(), null, "it is not open");
    }

    /**
     * Whether nobody holds the lock of a file: false in any doubt. Who made it must have held it, or it says nothing.
     */
    public static boolean isFree(Path file) {
        try {
            if (!SystemCall.isKnown() || !PrivateFile.isOurFile(file)
                    || !Files.getFileStore(file).type().equals(FILE_SYSTEM)) {
                return false;
            }
            int descriptor = SystemCall.open(file);
            try { // shared: two that ask at once do not take each other for the holder
                return SystemCall.of(SystemCall.FLOCK, descriptor, SHARED | DO_NOT_WAIT, 0) == 0;
            } finally {
                SystemCall.of(SystemCall.CLOSE, descriptor, 0, 0);
            }
        } catch (IOException unclear) {
            return false;
        }
    }
}
