package org.millrace.net.shm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.security.SecureRandom;

/**
 * Random bytes at an address of a process: who reads them there has found the process that it means, whatever number
 * that has by now. They are no secret.
 *
 * @param address in the process's memory; 0 for none
 * @param first   word at the address
 * @param second  word, behind it
 */
record Cookie(long address, long first, long second) {

    /** Length in memory. */
    static final int BYTES = 2 * Long.BYTES;

    /** What a process says that does not want to be read. */
    public static final Cookie NONE = new Cookie(0, 0, 0);

    /** This process's, at an address that is never freed. */
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
