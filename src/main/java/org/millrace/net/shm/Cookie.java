package org.millrace.net.shm;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.security.SecureRandom;

/**
 * Random bytes at a known address of a process. A reader that finds these bytes there reads the memory of the intended
 * process, and not of another process with a reused process ID. The bytes are not secret.
 *
 * @param address address in the process's memory; 0 if peers must not read that memory
 * @param first   first 8 bytes at the address
 * @param second  next 8 bytes
 */
record Cookie(long address, long first, long second) {

    /** Number of random bytes. */
    static final int BYTES = 2 * Long.BYTES;

    /** Cookie of a process whose memory peers must not read. */
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
