package org.millrace.trace.reader;

import java.util.Locale;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TraceLayout;

/** Whether something is still there. */
public enum TracedState {
    OPEN, CLOSED, FAILED;

    /** Null if nothing is there, or something that this release does not know. */
    static @Nullable TracedState of(int number) {
        return switch (number) {
            case TraceLayout.OPEN -> OPEN;
            case TraceLayout.CLOSED -> CLOSED;
            case TraceLayout.FAILED -> FAILED;
            default -> null;
        };
    }

    public String label() {
        return name().toLowerCase(Locale.ROOT);
    }
}
