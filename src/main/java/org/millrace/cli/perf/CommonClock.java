package org.millrace.cli.perf;

import java.time.Duration;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.Stream;
import org.millrace.cli.check.OperandMemory;
import org.millrace.cli.launch.RunDeadline;

/**
 * A time after which all ranks stop something together: an operation that only some of them go on to would never
 * complete.
 */
final class CommonClock {

    private final Communicator communicator;
    private final Stream stream;
    private final OperandMemory memory;
    private final RunDeadline end;

    /**
     * Starts the clock.
     *
     * @param memory where the ranks' words for each other lie
     * @param time   from now on
     */
    CommonClock(Communicator communicator, Stream stream, OperandMemory memory, Duration time) {
        this.communicator = communicator;
        this.stream = stream;
        this.memory = memory;
        this.end = RunDeadline.after(time);
    }

    /** Whether the time has passed for any rank. CollectiveCall: all ranks call it, and hear the same. */
    boolean passed() {
        return memory.exchange(end.passed() ? 1 : 0,
                word -> communicator.allReduce(word, word, 1, DataType.INT64, ReduceOp.MAX, stream)) != 0;
    }
}
