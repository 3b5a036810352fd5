package org.millrace.trace;

import static org.millrace.trace.TraceLayout.AGENT_BUSY_OFFSET;
import static org.millrace.trace.TraceLayout.AGENT_CLOCK_OFFSET;
import static org.millrace.trace.TraceLayout.AGENT_PASSES_OFFSET;

/**
 * An agent that serves connections: its passes, and the clock of all that it serves. Used by the agent's thread.
 *
 * <p>
 * The clock costs as much as ten of a pass's other steps, so it is read when there is something to date, and then at
 * most once in {@value #WORKING_PASSES} passes in a row in which something was done: while data flows, a date may be so
 * many passes old.
 */
public final class AgentTrace implements AutoCloseable {

    /** A power of two. */
    static final int WORKING_PASSES = 16;
    /** Passes between two looks of a reader that find other numbers; a power of two. */
    private static final int PUBLISHED = 64;

    private final ProcessTrace process;
    /** 0 if nobody reads what it does. */
    private final long base;
    private final int number;
    private long now;
    private boolean stale = true;
    private boolean begun;
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
        if (stale) {
            now = System.nanoTime();
            stale = false;
        }
        return now;
    }

    /** A pass has ended. */
    public void passed(int work) {
        if (work > 0) {
            stale = (++busy & WORKING_PASSES - 1) == 0;
        } else {
            stale = true;
        }
        if (((++passes & PUBLISHED - 1) == 0 || !begun) && base != 0) {
            publish();
        }
    }

    private void publish() {
        if (!begun) {
            begun = true;
            TraceMemory.set(base + TraceLayout.AGENT_THREAD_OFFSET, ThreadNumber.current());
        }
        TraceMemory.set(base + AGENT_PASSES_OFFSET, passes);
        TraceMemory.set(base + AGENT_BUSY_OFFSET, busy);
        TraceMemory.set(base + AGENT_CLOCK_OFFSET, now);
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
