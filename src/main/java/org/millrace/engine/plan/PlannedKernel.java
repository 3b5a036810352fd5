package org.millrace.engine.plan;

import java.util.List;
import org.millrace.device.work.KernelPlan;

/**
 * A kernel, and what the proxies must hear of before each of its runs.
 *
 * @param who whose it is, for messages: what its name begins with
 */
public record PlannedKernel(String who, KernelPlan kernel, List<PlannedOperation> operations) implements AutoCloseable {

    /** What a run does, for messages. */
    private record Name(String who, Object first, int operations) {

        @Override
        public String toString() {
            return who + (operations == 1 ? first : "group of " + operations + " operations from " + first + " on");
        }
    }

    /** Tells the proxies of the next run; returns what it does, for messages. */
    Object announce(Announcer announcer) {
        Object first = operations.getFirst().announce(announcer);
        for (int i = 1; i < operations.size(); i++) {
            operations.get(i).announce(announcer);
        }
        return new Name(who, first, operations.size());
    }

    @Override
    public void close() {
        kernel.close();
    }
}
