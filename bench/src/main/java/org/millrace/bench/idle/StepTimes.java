package org.millrace.bench.idle;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * Steps that arrive at planned times: a tail, and for each step its planned time. A late step counts from its planned
 * time, whether the posting or the taking thread was late. So a delay also counts for the steps after it.
 *
 * <pre>
 *   0        4096
 *   +--------+----------------------+
 *   | tail   | times[1024]          |
 *   +--------+----------------------+
 * </pre>
 */
public final class StepTimes {

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final long TAIL = 0;
    private static final long TIMES = 4096;
    private static final int LENGTH = 1024;

    private final MemorySegment memory = Arena.global().allocate(TIMES + LENGTH * Long.BYTES, 4096);

    /** Creates an instance without steps. */
    public StepTimes() {}

    /** {@return the memory, for the comparator} */
    public MemorySegment memory() {
        return memory;
    }

    /** Removes all steps. */
    public void reset() {
        LONG.setRelease(memory, TAIL, 0L);
    }

    /**
     * Posts steps. Spins until the time of each.
     *
     * @param count    number of steps
     * @param interval nanoseconds between two steps
     */
    public void post(int count, long interval) {
        long time = System.nanoTime() + interval;
        for (int step = 0; step < count; step++, time += interval) {
            while (System.nanoTime() - time < 0) {
                Thread.onSpinWait();
            }
            LONG.set(memory, TIMES + (step & LENGTH - 1) * (long) Long.BYTES, time);
            // release: pairs with the taking thread's acquire, after which it reads the time
            LONG.setRelease(memory, TAIL, step + 1L);
        }
    }

    long tailAcquire() {
        return (long) LONG.getAcquire(memory, TAIL);
    }

    long time(long step) {
        return (long) LONG.get(memory, TIMES + (step & LENGTH - 1) * Long.BYTES);
    }
}
