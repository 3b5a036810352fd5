package org.millrace.trace.why;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.reader.TracedProcess;

/** What a rank's process does, as the kernel says. */
public enum ProcessState {
    /** It runs, or waits for something. */
    RUNNING("running"),
    /** By a signal, or by a debugger. */
    STOPPED("stopped"),
    /** It has ended. */
    DEAD("dead"),
    /** It is of another host, or of another namespace. */
    UNKNOWN("not seen from here");

    private final String label;

    ProcessState(String label) {
        this.label = label;
    }

    /** In words. */
    public String label() {
        return label;
    }

    /** The state of a process whose trace was read. */
    public static ProcessState of(TracedProcess process) {
        if (!process.alive()) {
            return DEAD;
        }
        if (process.identity().namespace() != ProcessIdentity.CURRENT.namespace()) {
            return UNKNOWN;
        }
        try {
            String line = Files.readString(Path.of("/proc/" + process.identity().pid() + "/stat"));
            char state = line.charAt(line.lastIndexOf(')') + 2);
            return state == 'T' || state == 't' ? STOPPED : RUNNING;
        } catch (IOException | RuntimeException gone) {
            return UNKNOWN;
        }
    }
}
