package org.millrace.config;

import java.util.Locale;

/** With what rings in shared memory are read and written. Each process's own choice: the bytes are the same. */
public enum ShmAccess {
    /** The JDK's memory segments: checked, and unmapped as soon as a connection is closed. */
    SEGMENT,
    /**
     * Chronicle Bytes: unchecked, and unmapped when the garbage collector finds the connection unused. Needs {@code
     * net.openhft:chronicle-bytes} on the class path, and from JDK 23 on {@code --sun-misc-unsafe-memory-access=allow}
     * on the command line to run without a warning.
     */
    CHRONICLE;

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
