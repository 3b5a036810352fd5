package org.millrace.trace;

import org.jspecify.annotations.Nullable;

/** State of a traced object. */
public enum TracedState implements Labelled {
    OPEN, CLOSED, FAILED;

    /** Returns the state with a number; null for an unused block, or for a state that this release does not know. */
    static @Nullable TracedState of(int number) {
        return switch (number) {
            case TraceLayout.OPEN -> OPEN;
            case TraceLayout.CLOSED -> CLOSED;
            case TraceLayout.FAILED -> FAILED;
            default -> null;
        };
    }
}
