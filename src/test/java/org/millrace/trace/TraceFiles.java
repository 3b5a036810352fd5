package org.millrace.trace;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.TraceLayout.ConnectionFields;

/** Access to traces for tests of other packages. */
public final class TraceFiles {

    public static final int NO_AGENT = ConnectionFields.NO_AGENT;

    private TraceFiles() {}

    /**
     * Returns whether a trace states that its process holds the file lock. By this lock, processes of other PID
     * namespaces determine whether the process is alive.
     */
    public static boolean isLocked(ByteBuffer header) {
        return header.getInt(TraceLayout.LOCKED_OFFSET) == 1;
    }

    public static boolean isOwnerDead(Path file, ProcessIdentity owner) {
        return TraceSweep.isOwnerDead(file, owner);
    }

    public static void sweep(Path directory) {
        TraceSweep.sweep(directory);
    }
}
