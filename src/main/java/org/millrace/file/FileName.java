package org.millrace.file;

import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * How our files in the shared directory are named, and memory that lies in none:
 * {@code millrace-ID-PID-START-NAMESPACE.KIND}.
 *
 * @param id   random, 16 digits
 * @param kind {@link #SOCKET}, {@link #RING}, {@link #MEMORY}, {@link #TRACE}, or {@code fdN} for memory in no
 *             directory
 */
public record FileName(long id, ProcessIdentity owner, String kind) {

    /** A listener's Unix-domain socket. */
    public static final String SOCKET = "sock";
    /** A connection's ring. */
    public static final String RING = "ring";
    /** Memory that two processes share with no ring in it. */
    public static final String MEMORY = "mem";
    /** What a process writes down about its connections: it outlives a process that was killed. */
    public static final String TRACE = "trace";
    /** Before the number of the descriptor, in the name of a sealed file, which lies in no directory. */
    private static final String DESCRIPTOR = "fd";
    /** What files to look at, as a glob: those that are of no use without their process. */
    static final String ANY = "millrace-*.{sock,ring,mem}";

    private static final Pattern PATTERN =
            Pattern.compile("millrace-([0-9a-f]{16})-([0-9-]+)\\.(sock|ring|mem|trace|fd[0-9]{1,9})");

    public static FileName ours(long id, String kind) {
        return new FileName(id, ProcessIdentity.CURRENT, kind);
    }

    /** Memory without a file, which this process has open. */
    public static FileName sealed(long id, int descriptor) {
        return sealed(id, ProcessIdentity.CURRENT, descriptor);
    }

    public static FileName sealed(long id, ProcessIdentity owner, int descriptor) {
        return new FileName(id, owner, DESCRIPTOR + descriptor);
    }

    public boolean isSealed() {
        return kind.startsWith(DESCRIPTOR);
    }

    /** Of the process that made it. */
    public int descriptor() {
        return Integer.parseInt(kind.substring(DESCRIPTOR.length()));
    }

    /** What a name tells; null if it is none of ours. A name that this reads has no slash in it. */
    public static @Nullable FileName parse(String name) {
        Matcher matcher = PATTERN.matcher(name);
        if (!matcher.matches()) {
            return null;
        }
        ProcessIdentity owner = ProcessIdentity.parse(matcher.group(2));
        return owner == null ? null
                : new FileName(HexFormat.fromHexDigitsToLong(matcher.group(1)), owner, matcher.group(3));
    }

    /** The names, as a glob, that the socket of a listener may have. */
    public static String socketGlob(long id) {
        return "millrace-" + HexFormat.of().toHexDigits(id) + "-*." + SOCKET;
    }

    @Override
    public String toString() {
        return "millrace-" + HexFormat.of().toHexDigits(id) + "-" + owner.text() + "." + kind;
    }
}
