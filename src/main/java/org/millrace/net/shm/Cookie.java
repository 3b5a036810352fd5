package org.millrace.net.shm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.security.SecureRandom;

/**
 * Random bytes at an address of a process. A reader that finds them there has found the intended process, also if its
 * process ID was reused. They are not secret.
 *
 * @param address address in the process's memory; 0 for none
 * @param first   first word at the address
 * @param second  second word
 */
record Cookie(long address, long first, long second) {

    /** Length in bytes. */
    static final int BYTES = 2 * Long.BYTES;

    /** Cookie of a process that must not be read. */
    public static final Cookie NONE = new Cookie(0, 0, 0);

    /** Returns this process's cookie, at an address that is never freed. */
    static Cookie ours() {
        return Ours.COOKIE;
    }

    private static final class Ours {

        private static final MemorySegment BYTES = Arena.global().allocate(Cookie.BYTES, Cookie.BYTES);
        static final Cookie COOKIE = bake();

        private static Cookie bake() {
            SecureRandom random = new SecureRandom();
            Cookie cookie = new Cookie(BYTES.address(), random.nextLong(), random.nextLong());
            BYTES.set(ValueLayout.JAVA_LONG, 0, cookie.first);
            BYTES.set(ValueLayout.JAVA_LONG, Long.BYTES, cookie.second);
            return cookie;
        }
    }
}
