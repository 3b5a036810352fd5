package org.millrace.file;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Which process made a file, as the file's name tells it: enough to prove that the process is dead even if another one
 * has its number by now.
 *
 * @param startTicks when it started, in clock ticks since the host booted ({@code /proc/pid/stat}, field 22); 0 where
 *                   there is no {@code /proc} of its namespace
 * @param namespace  in which its number counts: containers on one host have several; 0 where there is no {@code /proc}
 *                   of it
 */
public record ProcessIdentity(long pid, long startTicks, long namespace) {

    public static final ProcessIdentity CURRENT = current();

    /** What this host calls itself, for messages. */
    public static final String HOST = hostName();

    private static final Pattern TEXT = Pattern.compile("(\\d{1,18})-(\\d{1,18})-(\\d{1,18})");
    /** Fields of a stat line behind the name, which ends with the last parenthesis, counted from the state. */
    private static final int STATE_FIELD = 0;
    private static final int THREADS_FIELD = 17;
    private static final int START_FIELD = 19;
    /** A thread's signals that wait for it, a bit each. */
    private static final String PENDING = "SigPnd:";
    private static final long KILL = 1L << 9 - 1;
    private static final int NO_SIGNAL = 0;

    /** Written out, as a record's own is made when it is first called, for milliseconds while a program starts. */
    @Override
    public int hashCode() {
        return Long.hashCode(pid ^ startTicks << Integer.SIZE);
    }

    private static ProcessIdentity current() {
        long pid = ProcessHandle.current().pid();
        try {
            Path self = Path.of("/proc/self");
            if (Long.parseLong(Files.readSymbolicLink(self).toString()) != pid) {
                throw new IOException(self + " has another number: it is a /proc of another namespace");
            }
            String namespace = Files.readSymbolicLink(self.resolve("ns/pid")).toString();
            return new ProcessIdentity(pid, Long.parseLong(stat(pid)[START_FIELD]),
                    Long.parseLong(namespace.replaceAll("\\D", "")));
        } catch (IOException | RuntimeException noProc) {
            // Nobody is known by a number alone: it may be one of another container's, and be given again.
            return new ProcessIdentity(pid, 0, 0);
        }
    }

    private static String hostName() {
        try {
            return Files.readString(Path.of("/proc/sys/kernel/hostname")).strip();
        } catch (IOException unknown) {
            return "this host";
        }
    }

    private static String[] stat(long pid) throws IOException {
        String line = Files.readString(Path.of("/proc/" + pid + "/stat"));
        return line.substring(line.lastIndexOf(')') + 2).split(" ");
    }

    /** Whether its number says anything here: it counts in this process's namespace, and that is known. */
    public boolean isOfThisNamespace() {
        return namespace != 0 && namespace == CURRENT.namespace;
    }

    /**
     * Whether this process is surely gone: false in any doubt. {@code /proc} may show it, and what it does not show it
     * may hide ({@code hidepid}); then the kernel says whether anything has the number.
     */
    public boolean isProvablyDead() {
        if (!isOfThisNamespace()) {
            return false;
        }
        try {
            String[] stat = stat(pid);
            boolean zombie =
                    stat[STATE_FIELD].matches("[ZX]") && (Long.parseLong(stat[THREADS_FIELD]) <= 1 || wasKilled(pid));
            return zombie || Long.parseLong(stat[START_FIELD]) != startTicks;
        } catch (NoSuchFileException hiddenOrGone) {
            return pid != (int) pid || SystemCall.isKnown()
                    && SystemCall.of(SystemCall.KILL, pid, NO_SIGNAL, 0) == -SystemCall.NO_SUCH_PROCESS;
        } catch (IOException | RuntimeException unclear) {
            return false;
        }
    }

    /**
     * Whether a thread has still to end by the SIGKILL that ends its process. One of the least priority, as the JIT
     * compiler's are here, may not get a core for that for a minute, and keeps the process's files open.
     */
    private static boolean wasKilled(long pid) throws IOException {
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(Path.of("/proc/" + pid + "/task"))) {
            for (Path thread : threads) {
                if (Files.exists(thread) && isKilled(Files.readAllLines(thread.resolve("status")))) {
                    return true;
                }
            }
        }
        return false;
    }

    /** @param status of a thread, as {@code /proc} has it */
    static boolean isKilled(List<String> status) {
        return status.stream()
                .filter(line -> line.startsWith(PENDING))
                .anyMatch(line -> (Long.parseUnsignedLong(line.substring(PENDING.length()).strip(), 16) & KILL) != 0);
    }

    /** The form in which {@link #parse} reads it. */
    String text() {
        return pid + "-" + startTicks + "-" + namespace;
    }

    /** The process that a text names; null if it names none. */
    static @Nullable ProcessIdentity parse(String text) {
        Matcher matcher = TEXT.matcher(text);
        return matcher.matches()
                ? new ProcessIdentity(Long.parseLong(matcher.group(1)), Long.parseLong(matcher.group(2)),
                        Long.parseLong(matcher.group(3)))
                : null;
    }

    @Override
    public String toString() {
        return "pid " + pid;
    }
}
