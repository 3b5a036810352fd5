package org.millrace.trace;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.TraceLayout.ConnectionFields;

/** What tests of other packages want of traces. */
public final class TraceFiles {

    public static final int NO_AGENT = ConnectionFields.NO_AGENT;

    private TraceFiles() {}

    /** Whether the process that writes a trace has taken its lock, by which those of other namespaces know it. */
    public static boolean isLocked(ByteBuffer header) {
        return header.getInt(TraceLayout.LOCKED_OFFSET) == 1;
    }

    public static boolean isLeft(Path file, ProcessIdentity owner) {
        return TraceSweep.isLeft(file, owner);
    }

    public static void sweep(Path directory) {
        TraceSweep.sweep(directory);
    }
}
