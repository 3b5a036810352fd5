package org.millrace.trace;

import java.io.IOException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * A trace of this process for a single test. The trace of the JVM may have no room, because earlier tests leave
 * connections open.
 */
public final class OwnTrace implements AutoCloseable {

    private final @Nullable ProcessTrace usual = ProcessTrace.current;

    /** Lets this process write a new trace in a directory. */
    public OwnTrace(Path directory) throws IOException {
        ProcessTrace.current = new ProcessTrace(TraceFile.create(directory), false);
    }

    @Override
    public void close() {
        ProcessTrace.current = usual;
    }
}
