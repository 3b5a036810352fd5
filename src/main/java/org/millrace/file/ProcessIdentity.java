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
 * Identity of the process that created a file, as stated in the file's name. It distinguishes the process from a later
 * process with the same number, and so can prove that the process is dead.
 *
 * @param pid        number of the process
 * @param startTicks start time of the process in clock ticks since the host booted ({@code /proc/pid/stat}, field 22).
 *                   It is 0 if the process saw no {@code /proc} of its own PID namespace
 * @param namespace  PID namespace in which {@code pid} is valid, because containers on one host can have different PID
 *                   namespaces. It is 0 if the process saw no {@code /proc} of its own PID namespace
 */
public record ProcessIdentity(long pid, long startTicks, long namespace) {

    public static final ProcessIdentity CURRENT = current();

    /** Name of this host, for messages. */
    public static final String HOST = hostName();

    private static final Pattern TEXT = Pattern.compile("(\\d{1,18})-(\\d{1,18})-(\\d{1,18})");
    /**
     * Indices of fields in a line of {@code /proc/pid/stat}. They count the fields after the process name, which ends
     * with the last parenthesis. Index 0 is the state.
     */
    private static final int STATE_FIELD = 0;
    private static final int THREADS_FIELD = 17;
    private static final int START_FIELD = 19;
    /** Prefix of the line with the pending signals of a thread, one bit for each signal. */
    private static final String PENDING = "SigPnd:";
    private static final long KILL = 1L << 9 - 1;
    private static final int NO_SIGNAL = 0;

    /**
     * Replaces the generated hash code method of records. The JVM generates that method at the first call, which takes
     * milliseconds while a program starts.
     */
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
            // Zeros mark an unknown identity. A process of another container, or a later process, may have the same
            // number.
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

    /**
     * Returns whether the number of the process is valid in this process: the namespaces are equal, and this namespace
     * is known.
     */
    public boolean isOfThisNamespace() {
        return namespace != 0 && namespace == CURRENT.namespace;
    }

    /**
     * Returns whether the process is certainly dead; false in case of doubt. If {@code /proc} does not show the
     * process, the process may exist but be hidden ({@code hidepid}). A {@code kill} without a signal then determines
     * whether a process with the number exists.
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
     * Returns whether a thread of the process has a pending SIGKILL, so that the process counts as dead. A thread of
     * the lowest priority may wait a minute for a core before it ends. Until then the process keeps its files open. In
     * Millrace the JIT compiler has such threads.
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

    /** @param status lines of {@code /proc/pid/task/tid/status} */
    static boolean isKilled(List<String> status) {
        return status.stream()
                .filter(line -> line.startsWith(PENDING))
                .anyMatch(line -> (Long.parseUnsignedLong(line.substring(PENDING.length()).strip(), 16) & KILL) != 0);
    }

    /** Returns the text that {@link #parse} reads. */
    String text() {
        return pid + "-" + startTicks + "-" + namespace;
    }

    /** Returns the process that a text identifies; null if the text has another format. */
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
