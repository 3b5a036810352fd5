package org.millrace.trace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** What a rank's process does, as the kernel says. */
public enum ProcessState {
    /** It runs, or waits for something. */
    RUNNING("running"),
    /** By a signal, or by a debugger. */
    STOPPED("stopped"),
    DEAD("dead"),
    /** It is of another host, or of another namespace. */
    UNKNOWN("not seen from here");

    /** SIGKILL among the signals that are to be delivered. */
    private static final long KILL = 1 << 9 - 1;

    private final String label;

    ProcessState(String label) {
        this.label = label;
    }

    String label() {
        return label;
    }

    static ProcessState of(TracedProcess process) {
        if (!process.alive()) {
            return DEAD;
        }
        if (!process.identity().isOfThisNamespace()) {
            return UNKNOWN;
        }
        try {
            return of(Files.readAllLines(Path.of("/proc/" + process.identity().pid() + "/status")),
                    process.read() - process.heartbeat() > TraceLayout.LATE_NANOS);
        } catch (IOException | RuntimeException gone) {
            return UNKNOWN;
        }
    }

    /** By {@code /proc/PID/status}: a process that was killed takes its time to end where cores are scarce. */
    static ProcessState of(List<String> lines, boolean silent) {
        char state = 'R';
        boolean killed = false;
        for (String line : lines) {
            if (line.startsWith("State:")) {
                state = line.substring("State:".length()).strip().charAt(0);
            } else if (line.startsWith("SigPnd:") || line.startsWith("ShdPnd:")) {
                killed |= (Long.parseUnsignedLong(line.substring("SigPnd:".length()).strip(), 16) & KILL) != 0;
            }
        }
        if (killed || silent && (state == 'Z' || state == 'X')) { // its first thread may have left before the others
            return DEAD;
        }
        return state == 'T' || state == 't' ? STOPPED : RUNNING;
    }
}
