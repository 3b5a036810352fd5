package org.millrace.plugin;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Whether this process's threads may touch memory. Host memory that was made by {@code cuMemCreate} has addresses at
 * which only those reach it who were let, processors among them; any other access ends the process.
 */
final class HostAccess {

    private static final Path MAPPINGS = Path.of("/proc/self/maps");

    private HostAccess() {}

    /** {@return whether a range of addresses is mapped for reading and writing, without gaps} */
    public static boolean isPossible(long address, long bytes) {
        try {
            return isPossible(address, bytes, Files.readAllLines(MAPPINGS));
        } catch (IOException none) {
            return true; // a system without /proc: host memory is what it always was
        }
    }

    /** By lines as {@code proc(5)} has them, which come in the order of addresses. */
    static boolean isPossible(long address, long bytes, Iterable<String> mappings) {
        long reached = address;
        for (String mapping : mappings) {
            int dash = mapping.indexOf('-');
            int space = mapping.indexOf(' ');
            long first = Long.parseUnsignedLong(mapping, 0, dash, 16);
            long end = Long.parseUnsignedLong(mapping, dash + 1, space, 16);
            boolean open = mapping.startsWith("rw", space + 1);
            if (open && Long.compareUnsigned(first, reached) <= 0 && Long.compareUnsigned(end, reached) > 0) {
                reached = end;
            }
            if (reached - address >= bytes) {
                return true;
            }
        }
        return false;
    }
}
