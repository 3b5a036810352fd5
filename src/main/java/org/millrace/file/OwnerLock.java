package org.millrace.file;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * By which a process says that it lives to those of other PID namespaces, where its number says nothing: it holds a
 * lock of its file, which the kernel takes back when it ends, however it does. The lock is {@code flock}'s: a lock of
 * {@code fcntl}, which {@link java.nio.channels.FileChannel#lock()} takes, would go as soon as anybody in the process
 * closes the file. Processes that were forked from the holder hold it, too.
 */
public final class OwnerLock {

    /** Of memory of this host, all of whose processes see each other's locks; a network's may be kept to a host. */
    private static final String FILE_SYSTEM = "tmpfs";
    private static final long SHARED = 1;
    private static final long EXCLUSIVE = 2;
    private static final long DO_NOT_WAIT = 4;

    private OwnerLock() {}

    /** Takes the lock for as long as this process lives. False if there are none here. */
    public static boolean hold(Path file) {
        int descriptor = -1;
        boolean held = false;
        try {
            if (SystemCall.isKnown() && Files.getFileStore(file).type().equals(FILE_SYSTEM)) {
                descriptor = SystemCall.open(file);
                held = SystemCall.of(SystemCall.FLOCK, descriptor, EXCLUSIVE | DO_NOT_WAIT, 0) == 0;
            }
        } catch (IOException none) {
            held = false;
        }
        if (descriptor >= 0 && !held) {
            SystemCall.of(SystemCall.CLOSE, descriptor, 0, 0);
        }
        return held;
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
