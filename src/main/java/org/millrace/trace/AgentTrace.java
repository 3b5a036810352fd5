package org.millrace.trace;

import static org.millrace.trace.TraceLayout.AGENT_BUSY_OFFSET;
import static org.millrace.trace.TraceLayout.AGENT_CLOCK_OFFSET;
import static org.millrace.trace.TraceLayout.AGENT_PASSES_OFFSET;

/**
 * An agent that serves connections: its passes, and the clock of all that it serves. Used by the agent's thread.
 *
 * <p>
 * To read the clock costs as much as a small step, so it is read when there is something to date, and then not again
 * before {@value #BUDGET} bytes were moved, where a pass in which something was done counts as much as
 * {@value #PASS_BYTES}: while data flows a date is some microseconds old at the most.
 */
public final class AgentTrace implements AutoCloseable {

    static final int BUDGET = 64 << 10;
    static final int PASS_BYTES = 1 << 10;
    /** Passes between two looks of a reader that find other numbers; a power of two. */
    private static final int PUBLISHED = 64;

    private final ProcessTrace process;
    /** 0 if nobody reads what it does. */
    private final long base;
    private final int number;
    private long now;
    /** What may still be done before the clock is read again. */
    private long budget = -1;
    private int thread;
    private long passes;
    private long busy;
    private boolean closed;

    AgentTrace(ProcessTrace process, long base, int number) {
        this.process = process;
        this.base = base;
        this.number = number;
    }

    /** Its number among those of the process; -1 if there are too many. */
    public int number() {
        return number;
    }

    /** When the present pass began, or one shortly before. */
    public long now() {
        if (budget < 0) {
            now = System.nanoTime();
            budget = BUDGET;
        }
        return now;
    }

    /** A payload was moved. */
    void moved(long bytes) {
        budget -= bytes;
    }

    /** A pass has ended. */
    public void passed(int work) {
        if (work > 0) {
            busy++;
            budget -= PASS_BYTES;
        } else {
            budget = -1;
        }
        if ((++passes & PUBLISHED - 1) == 1) {
            publish();
        }
    }

    private void publish() {
        if (base == 0) {
            return;
        }
        if (thread == 0) {
            thread = ThreadNumber.current();
            TraceMemory.set(base + TraceLayout.AGENT_THREAD_OFFSET, thread);
        }
        TraceMemory.set(base + AGENT_PASSES_OFFSET, passes);
        TraceMemory.set(base + AGENT_BUSY_OFFSET, busy);
        TraceMemory.set(base + AGENT_CLOCK_OFFSET, System.nanoTime());
    }

    /** The agent has ended. May be called twice, by any thread. */
    @Override
    public void close() {
        synchronized (process) {
            if (!closed) {
                closed = true;
                process.closeAgent(number);
            }
        }
    }
}
