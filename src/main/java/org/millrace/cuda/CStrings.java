package org.millrace.cuda;

import java.lang.foreign.MemorySegment;

/** Zero-terminated strings that a native library handed out. */
public final class CStrings {

    private CStrings() {}

    /**
     * Copies a string.
     *
     * @param string a {@code const char *} in UTF-8
     * @return its text; null for a null pointer
     */
    @SuppressWarnings("restricted")
    public static String read(MemorySegment string) {
        return string.address() == 0 ? null : string.reinterpret(Long.MAX_VALUE).getString(0);
    }
}
