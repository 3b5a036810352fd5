package org.millrace.trace;

import static org.millrace.trace.ConnectionFields.BLOCKED_OFFSET;
import static org.millrace.trace.ConnectionFields.BYTES_OFFSET;
import static org.millrace.trace.ConnectionFields.CONSUMED_OFFSET;
import static org.millrace.trace.ConnectionFields.DONE_OFFSET;
import static org.millrace.trace.ConnectionFields.FRAMES;
import static org.millrace.trace.ConnectionFields.FRAMES_OFFSET;
import static org.millrace.trace.ConnectionFields.FRAME_BYTES;
import static org.millrace.trace.ConnectionFields.FRAME_DONE_OFFSET;
import static org.millrace.trace.ConnectionFields.FRAME_END_OFFSET;
import static org.millrace.trace.ConnectionFields.FRAME_TAKEN_OFFSET;
import static org.millrace.trace.ConnectionFields.FRAME_WHAT_OFFSET;
import static org.millrace.trace.ConnectionFields.LAST_CHANGE_OFFSET;
import static org.millrace.trace.ConnectionFields.PROTOCOL_SHIFT;
import static org.millrace.trace.ConnectionFields.TAKEN_OFFSET;

/**
 * What one direction of a connection did. Made by {@link ProcessTrace#connection}; used by the thread of the agent that
 * serves the connection, and closed after it.
 */
public final class ConnectionTrace implements AutoCloseable {

    private static final long NOTHING = Long.MIN_VALUE;

    private final ProcessTrace process;
    private final int index;
    private final long base;
    /** 0 if no frames are remembered. */
    private final long ring;
    /** Where the time is counted that passes while nothing is there to take. */
    private final long idle;
    /** Where the time is counted that passes while frames are under way. */
    private final long wire;
    /** Where the time is counted that passes while a step cannot be taken. */
    private final long full;
    private AgentTrace agent;
    /** Where the time until the next change is counted. */
    private long waiting;
    private long frames;
    private long framesDone;
    private long bytes;
    private long last;
    private long blocked = NOTHING;
    private long consumed = NOTHING;
    private boolean closed;

    ConnectionTrace(ProcessTrace process, int index, long base, long ring, boolean sends) {
        this.process = process;
        this.index = index;
        this.base = base;
        this.ring = ring;
        long kernel = base + ConnectionFields.WAIT_OFFSET;
        long peer = kernel + 2 * Long.BYTES;
        this.wire = kernel + Long.BYTES;
        this.idle = sends ? kernel : peer;
        this.full = sends ? peer : kernel;
        this.waiting = idle;
        this.agent = new AgentTrace(process, 0, -1);
    }

    /** From now on an agent serves the connection: called on its thread. */
    public void servedBy(AgentTrace by) {
        agent = by;
        last = by.now(); // what passed before was nobody's
        TraceMemory.set(base + LAST_CHANGE_OFFSET, last);
        TraceMemory.set(base + ConnectionFields.AGENT_OFFSET, by.number());
    }

    /**
     * A frame goes to the network, or its slot does for what comes in.
     *
     * @param end      the first step after it
     * @param size     of its payload
     * @param protocol NCCL's number
     */
    public void taken(long end, long size, int protocol) {
        long now = account(wire);
        if (ring != 0) {
            long entry = ring + (frames & FRAMES - 1) * FRAME_BYTES;
            TraceMemory.set(entry + FRAME_TAKEN_OFFSET, now);
            TraceMemory.set(entry + FRAME_END_OFFSET, end);
            TraceMemory.set(entry + FRAME_WHAT_OFFSET, size | (long) protocol << PROTOCOL_SHIFT);
            TraceMemory.set(entry + FRAME_DONE_OFFSET, 0L);
        }
        agent.moved(size);
        bytes += size;
        TraceMemory.set(base + BYTES_OFFSET, bytes);
        TraceMemory.set(base + TAKEN_OFFSET, end);
        TraceMemory.release(base + FRAMES_OFFSET, ++frames);
    }

    /**
     * The oldest frame is complete: the network has read it, or the device was told that it is there.
     *
     * @param end the first step after it
     */
    public void done(long end) {
        long now = account(framesDone + 1 == frames ? idle : wire);
        if (ring != 0) {
            TraceMemory.set(ring + (framesDone & FRAMES - 1) * FRAME_BYTES + FRAME_DONE_OFFSET, now);
        }
        framesDone++;
        TraceMemory.set(base + DONE_OFFSET, end);
    }

    /**
     * A step is there, and cannot be taken: the network has no room for it, or the device has not emptied its slot. May
     * be called again and again.
     */
    public void blocked(long step) {
        if (step != blocked) {
            blocked = step;
            account(full);
            TraceMemory.set(base + BLOCKED_OFFSET, step);
        }
    }

    /** How far the device has used what came in. May be called again and again. */
    public void consumed(long step) {
        if (step != consumed) {
            consumed = step;
            TraceMemory.set(base + CONSUMED_OFFSET, step);
        }
    }

    /** What the next frames are part of. May be called again and again. */
    public void operation(long number) {
        TraceMemory.set(base + ConnectionFields.OPERATION_OFFSET, number);
    }

    /** From now on nobody serves the connection: the two devices reach each other's memory. */
    public void servedByNobody() {
        TraceMemory.set(base + ConnectionFields.AGENT_OFFSET, ConnectionFields.NO_AGENT);
    }

    /** How far its device has come, of a connection that nobody serves: what it has posted, or used. */
    public void reached(long step) {
        synchronized (process) {
            if (!closed && step != consumed) { // the block may be another's
                consumed = step;
                TraceMemory.set(base + CONSUMED_OFFSET, step);
                TraceMemory.set(base + DONE_OFFSET, step);
                TraceMemory.set(base + TAKEN_OFFSET, step);
                TraceMemory.set(base + LAST_CHANGE_OFFSET, System.nanoTime());
            }
        }
    }

    /** Adds the time since the last change to what was waited for. */
    private long account(long next) {
        long now = agent.now();
        long passed = now - last;
        if (passed != 0) {
            TraceMemory.set(waiting, TraceMemory.get(waiting) + passed);
            TraceMemory.set(base + LAST_CHANGE_OFFSET, now);
            last = now;
        }
        waiting = next;
        return now;
    }

    /** The connection has failed; its block says so, and why. Called by any thread. */
    public void failed(String why) {
        process.failed(index, why);
    }

    /** The connection is over. May be called twice, by any thread. */
    @Override
    public void close() {
        synchronized (process) {
            if (!closed) {
                closed = true;
                process.close(index);
            }
        }
    }
}
