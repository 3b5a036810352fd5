package org.millrace.trace;

import java.util.Arrays;

/**
 * Trace of an agent that serves connections. Counts the agent's passes, and stores the values of its connections. Used
 * by the agent's thread.
 *
 * <p>
 * Reading the clock and storing values cost as much as a small step. The first pass without other work therefore stores
 * the values of the connections. While data flows, every pass has other work. The values are then stored after
 * {@value #BUDGET} bytes. Each pass counts as {@value #PASS_BYTES} bytes, in addition to the bytes that it has moved. A
 * reader thus sees the state of some hundred microseconds ago. A store may miss the core's cache, but only after
 * {@value #BUDGET} bytes of data have passed through the cache anyway.
 *
 * <p>
 * The first pass after each heartbeat of the process publishes the counts and the clock. An idle agent sleeps between
 * two passes, so a number of passes is no measure of time.
 */
public final class AgentTrace implements AutoCloseable {

    static final int BUDGET = 1 << 20;
    static final int PASS_BYTES = 4 << 10;

    private final ProcessTrace process;
    /** Address of the agent's entry in the file; 0 if no entry was free. */
    private final long base;
    private final int number;
    /** Number of bytes that the agent can still move before it stores the values of all connections. */
    private long budget = BUDGET;
    /** Connections with values that are not stored yet. The array grows when necessary. */
    private ConnectionTrace[] changed = new ConnectionTrace[16];
    private int changes;
    private int thread;
    /** The process's heartbeat at the time when the counts were last published. */
    private long published = Long.MIN_VALUE;
    private long passes;
    private long busy;
    private boolean closed;

    AgentTrace(ProcessTrace process, long base, int number) {
        this.process = process;
        this.base = base;
        this.number = number;
    }

    /** Returns the agent's number among the process's agents; -1 if there are too many agents. */
    public int number() {
        return number;
    }

    /**
     * Records that a connection has values that are not stored yet. Called at the connection's first change since its
     * values were last stored.
     */
    void changed(ConnectionTrace connection) {
        if (changes == changed.length) {
            changed = Arrays.copyOf(changed, 2 * changes);
        }
        changed[changes++] = connection;
    }

    void moved(long bytes) {
        budget -= bytes;
    }

    public void passed(int work) {
        if (work > 0) {
            busy++;
            budget -= PASS_BYTES;
        } else {
            budget = -1;
        }
        if (budget < 0 && changes > 0) {
            store();
        }
        passes++;
        long heartbeat = process.heartbeat();
        if (heartbeat != published) {
            published = heartbeat;
            publish();
        }
    }

    private void store() {
        budget = BUDGET;
        long now = System.nanoTime();
        for (int i = 0; i < changes; i++) {
            changed[i].storeAll(now);
        }
        changes = 0;
    }

    private void publish() {
        if (base == 0) {
            return;
        }
        if (thread == 0) {
            thread = ProcessTrace.ThreadNumber.current();
            TraceMemory.set(base + TraceLayout.AGENT_THREAD_OFFSET, thread);
        }
        TraceMemory.set(base + TraceLayout.AGENT_PASSES_OFFSET, passes);
        TraceMemory.set(base + TraceLayout.AGENT_BUSY_OFFSET, busy);
        TraceMemory.set(base + TraceLayout.AGENT_CLOCK_OFFSET, System.nanoTime());
    }

    /** Marks the agent's entry as closed. Called when the agent has ended. May be called twice, by any thread. */
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
