package org.millrace.engine.bootstrap;

import java.util.Objects;

/**
 * The failure of a rank, as the others learn of it.
 *
 * @param rank    which rank failed, left too early, or was lost
 * @param message the rank with its process and host, and what happened; for instance
 *                {@code rank 3 (pid 123 on node7) is gone: Connection reset}
 */
public record RemoteFailure(int rank, String message) {

    /**
     * A failure.
     *
     * @param rank    which rank
     * @param message what happened to it
     */
    public RemoteFailure {
        Objects.requireNonNull(message, "message");
    }
}
