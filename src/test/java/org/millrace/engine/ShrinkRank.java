package org.millrace.engine;

import java.nio.file.Path;
import java.time.Duration;
import org.millrace.Communicator;
import org.millrace.CommunicatorException;
import org.millrace.ExcludedException;
import org.millrace.ReduceOp;

/**
 * A rank in a separate process. It runs all-reduces until one fails, and then shrinks the group. It prints one line per
 * event.
 */
final class ShrinkRank {

    private ShrinkRank() {}

    /** Runs the rank. Arguments: directory, rank, size. */
    public static void main(String[] arguments) {
        int rank = Integer.parseInt(arguments[1]);
        try (Communicator communicator = EngineGroup.join(Path.of(arguments[0]), rank, Integer.parseInt(arguments[2]),
                EngineGroup.settings("MILLRACE_STALL_DEADLINE", "1s", "MILLRACE_LATE_DEADLINE", "1s"))) {
            try {
                for (int round = 0;; round++) {
                    communicator.allReduce(1L, ReduceOp.SUM);
                    if (round == 10) {
                        System.out.println("running");
                    }
                }
            } catch (CommunicatorException failed) {
                try (Communicator smaller = communicator.shrink(Duration.ofSeconds(6))) {
                    System.out.println("rank " + smaller.rank() + " of " + smaller.size() + ", sum "
                            + smaller.allReduce((long) Math.pow(10, rank), ReduceOp.SUM));
                } catch (ExcludedException excluded) {
                    System.out.println(excluded.getMessage());
                }
            }
        }
        System.out.println("left " + EngineGroup.threadsAlive());
    }
}
