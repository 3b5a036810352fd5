package org.millrace.net.shm;

import java.io.IOException;
import java.nio.file.Path;
import org.millrace.net.ConnectionException;

/**
 * Failure because two processes cannot share memory, or because not enough memory is available. The processes may use
 * another network.
 */
public class ShmUnavailableException extends ConnectionException {

    private static final long serialVersionUID = 1L;

    public ShmUnavailableException(String message) {
        super(message);
    }

    /** Creates an exception. The message states the missing requirement, its location and the remedy. */
    public ShmUnavailableException(String message, Throwable cause) {
        super(message, cause);
    }

    /** Returns the exception for a file that could not be created. The message states a remedy. */
    public static ShmUnavailableException noRoom(String what, long bytes, Path directory, String orElse,
            IOException e) {
        return new ShmUnavailableException("cannot make " + what + " of " + bytes + " bytes in " + directory + " ("
                + directory.toFile().getUsableSpace() + " bytes are free of " + directory.toFile().getTotalSpace()
                + "): " + e.getMessage() + "; every connection needs one while it lives. Give the directory more room "
                + "(mount -o remount,size=..., docker run --shm-size=...), or " + orElse, e);
    }
}
