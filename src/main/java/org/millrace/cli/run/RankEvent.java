package org.millrace.cli.run;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.millrace.cli.base.FailureText;

/**
 * Report of a rank to the process that started it. Every command adds its own records, with components that
 * {@link EventCodec} can write.
 */
public interface RankEvent {

    int rank();

    /** Last event of a rank that has completed its work. */
    record Finished(int rank) implements RankEvent {
    }

    /**
     * Last event of a rank that failed. {@code died} is true if the rank's process ended without a report of the
     * failure.
     */
    record Failed(int rank, String message, String trace, boolean died) implements RankEvent {

        static Failed of(int rank, Throwable failure) {
            StringWriter trace = new StringWriter();
            failure.printStackTrace(new PrintWriter(trace, true));
            return new Failed(rank, FailureText.of(failure), trace.toString(), false);
        }
    }
}
