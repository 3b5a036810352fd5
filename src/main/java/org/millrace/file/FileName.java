package org.millrace.file;

import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Name of a file of Millrace in the shared directory, or of a memfd: {@code millrace-ID-PID-START-NAMESPACE.KIND}. A
 * memfd is memory with a descriptor but without a file in a directory.
 *
 * @param id    random number, 16 hexadecimal digits
 * @param owner process that created the file: PID, START and NAMESPACE
 * @param kind  {@link #SOCKET}, {@link #RING}, {@link #MEMORY}, {@link #TRACE}, or {@code fdN} for a memfd with
 *              descriptor N
 */
public record FileName(long id, ProcessIdentity owner, String kind) {

    /** Kind of the Unix-domain socket of a listener. */
    public static final String SOCKET = "sock";
    public static final String RING = "ring";
    /** Kind of memory that two processes share and that contains no ring. */
    public static final String MEMORY = "mem";
    /**
     * Kind of a trace: a file with a process's records about its connections. The file remains after the process was
     * killed.
     */
    public static final String TRACE = "trace";
    /** Prefix of the kind of a sealed memfd; the descriptor's number follows. */
    private static final String DESCRIPTOR = "fd";
    /**
     * Glob of the files that {@link StaleFiles} examines. Traces are not among them, because a trace is still useful
     * after its process has ended.
     */
    static final String ANY = "millrace-*.{sock,ring,mem}";

    private static final Pattern PATTERN =
            Pattern.compile("millrace-([0-9a-f]{16})-([0-9-]+)\\.(sock|ring|mem|trace|fd[0-9]{1,9})");

    public static FileName ours(long id, String kind) {
        return new FileName(id, ProcessIdentity.CURRENT, kind);
    }

    /** Returns the name of a sealed memfd that this process has created. */
    public static FileName sealed(long id, int descriptor) {
        return sealed(id, ProcessIdentity.CURRENT, descriptor);
    }

    public static FileName sealed(long id, ProcessIdentity owner, int descriptor) {
        return new FileName(id, owner, DESCRIPTOR + descriptor);
    }

    public boolean isSealed() {
        return kind.startsWith(DESCRIPTOR);
    }

    /** Returns the number of the memfd's descriptor in the process that created the memfd. */
    public int descriptor() {
        return Integer.parseInt(kind.substring(DESCRIPTOR.length()));
    }

    /**
     * Parses a name; returns null if the name does not have this format. A name that this method accepts contains no
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

    /** Returns a glob that matches the name of a listener's socket, whichever process created the socket. */
    public static String socketGlob(long id) {
        return "millrace-" + HexFormat.of().toHexDigits(id) + "-*." + SOCKET;
    }

    @Override
    public String toString() {
        return "millrace-" + HexFormat.of().toHexDigits(id) + "-" + owner.text() + "." + kind;
    }
}
