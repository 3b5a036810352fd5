package org.millrace.net.shm;

import java.io.IOException;
import java.nio.file.Path;
import org.millrace.net.ConnectionException;

/** Two processes cannot share memory, or there is not enough of it: another network may serve them. */
public class ShmUnavailableException extends ConnectionException {

    private static final long serialVersionUID = 1L;

    public ShmUnavailableException(String message) {
        super(message);
    }

    /** The message says what is missing, where, and what to do. */
    public ShmUnavailableException(String message, Throwable cause) {
        super(message, cause);
    }

    /** Says that a file could not be made, and what helps. */
    public static ShmUnavailableException noRoom(String what, long bytes, Path directory, String orElse,
            IOException e) {
        return new ShmUnavailableException("cannot make " + what + " of " + bytes + " bytes in " + directory + " ("
                + directory.toFile().getUsableSpace() + " bytes are free of " + directory.toFile().getTotalSpace()
                + "): " + e.getMessage() + "; every connection needs one while it lives. Give the directory more room "
                + "(mount -o remount,size=..., docker run --shm-size=...), or " + orElse, e);
    }
}
