package org.millrace.config;

import java.util.Locale;

/** With what rings in shared memory are read and written. Each process's own choice: the bytes are the same. */
public enum ShmAccess {
    /** The JDK's memory segments. */
    SEGMENT,
    /** Chronicle Bytes. */
    CHRONICLE;

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }
}
