package org.millrace.cli;

import java.io.PrintWriter;
import java.io.StringWriter;

/**
 * What a rank tells the process that started it. Every command has records of its own besides those here; their
 * components are what {@link EventCodec} can write.
 */
interface RankEvent {

    int rank();

    /** The rank's last event: it has done everything. */
    record Finished(int rank) implements RankEvent {
    }

    /** The rank gives up; {@code died}: it could not even say so itself. */
    record Failed(int rank, String message, String trace, boolean died) implements RankEvent {

        static Failed of(int rank, Throwable failure) {
            StringWriter trace = new StringWriter();
            failure.printStackTrace(new PrintWriter(trace, true));
            return new Failed(rank, FailureText.of(failure), trace.toString(), false);
        }
    }
}
