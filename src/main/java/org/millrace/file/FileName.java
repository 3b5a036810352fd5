package org.millrace.file;

import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The names of our files in the shared directory, and of memory without a file:
 * {@code millrace-ID-PID-START-NAMESPACE.KIND}.
 *
 * @param id   random number, 16 digits
 * @param kind {@link #SOCKET}, {@link #RING}, {@link #MEMORY}, {@link #TRACE}, or {@code fdN} for memory in no
 *             directory
 */
public record FileName(long id, ProcessIdentity owner, String kind) {

    /** A listener's Unix-domain socket. */
    public static final String SOCKET = "sock";
    /** A connection's ring. */
    public static final String RING = "ring";
    /** Memory without a ring that two processes share. */
    public static final String MEMORY = "mem";
    /** A process's records about its connections. The file outlives a process that was killed. */
    public static final String TRACE = "trace";
    /** Prefix of the descriptor's number in the name of a sealed file, which lies in no directory. */
    private static final String DESCRIPTOR = "fd";
    /** Glob of the files to examine. They are of no use without their process. */
    static final String ANY = "millrace-*.{sock,ring,mem}";

    private static final Pattern PATTERN =
            Pattern.compile("millrace-([0-9a-f]{16})-([0-9-]+)\\.(sock|ring|mem|trace|fd[0-9]{1,9})");

    public static FileName ours(long id, String kind) {
        return new FileName(id, ProcessIdentity.CURRENT, kind);
    }

    /** Returns the name of memory without a file, which this process has open. */
    public static FileName sealed(long id, int descriptor) {
        return sealed(id, ProcessIdentity.CURRENT, descriptor);
    }

    public static FileName sealed(long id, ProcessIdentity owner, int descriptor) {
        return new FileName(id, owner, DESCRIPTOR + descriptor);
    }

    public boolean isSealed() {
        return kind.startsWith(DESCRIPTOR);
    }

    /** Returns the descriptor in the process that created the memory. */
    public int descriptor() {
        return Integer.parseInt(kind.substring(DESCRIPTOR.length()));
    }

    /**
     * Returns the content of a name; null if it is not one of our names. A name that this method accepts contains no
     * slash.
     */
    public static @Nullable FileName parse(String name) {
        Matcher matcher = PATTERN.matcher(name);
        if (!matcher.matches()) {
            return null;
        }
        ProcessIdentity owner = ProcessIdentity.parse(matcher.group(2));
        return owner == null ? null
                : new FileName(HexFormat.fromHexDigitsToLong(matcher.group(1)), owner, matcher.group(3));
    }

    /** Returns a glob of the names that the socket of a listener may have. */
    public static String socketGlob(long id) {
        return "millrace-" + HexFormat.of().toHexDigits(id) + "-*." + SOCKET;
    }

    @Override
    public String toString() {
        return "millrace-" + HexFormat.of().toHexDigits(id) + "-" + owner.text() + "." + kind;
    }
}
