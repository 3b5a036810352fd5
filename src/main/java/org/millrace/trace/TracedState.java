package org.millrace.trace;

import org.jspecify.annotations.Nullable;

/** Whether something is still there. */
public enum TracedState implements Labelled {
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
}
