package org.millrace.cli.base;

import java.util.Map;

/**
 * Exit status of a process, as shells and {@link Process#exitValue()} report it: 128 plus the number of a signal that
 * ended the process.
 */
public final class ExitStatus {

    private static final int SIGNALED = 128;
    /** Names of signals that end processes, by their numbers on Linux. */
    private static final Map<Integer, String> SIGNALS = Map.ofEntries(Map.entry(1, "HUP"), Map.entry(2, "INT"),
            Map.entry(3, "QUIT"), Map.entry(4, "ILL"), Map.entry(6, "ABRT"), Map.entry(7, "BUS"), Map.entry(8, "FPE"),
            Map.entry(9, "KILL"), Map.entry(10, "USR1"), Map.entry(11, "SEGV"), Map.entry(12, "USR2"),
            Map.entry(13, "PIPE"), Map.entry(14, "ALRM"), Map.entry(15, "TERM"), Map.entry(24, "XCPU"));

    private ExitStatus() {}

    /** Returns a status in words: {@code exit status 3}, {@code killed by signal 9 (SIGKILL)}. */
    public static String text(int status) {
        if (status <= SIGNALED) {
            return "exit status " + status;
        }
        String name = SIGNALS.get(status - SIGNALED);
        return "killed by signal " + (status - SIGNALED) + (name == null ? "" : " (SIG" + name + ")");
    }

    public static int of(String signal) {
        return SIGNALS.entrySet()
                .stream()
                .filter(entry -> entry.getValue().equals(signal))
                .mapToInt(entry -> SIGNALED + entry.getKey())
                .findFirst()
                .orElseThrow();
    }
}
