package org.millrace.trace;

import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TraceLayout.ConnectionFields;

/**
 * Trace of one direction of a connection. Created by {@link ProcessTrace#connection}. Used by the thread of the agent
 * that serves the connection, and closed after the connection.
 *
 * <p>
 * Each event is counted in a field, and two words of each frame are written to the ring. All other values are stored
 * later, together with the time: after the agent's first pass without work, and at the latest after
 * {@value AgentTrace#BUDGET} bytes. So nothing is stored and no clock is read while a device or a peer waits.
 */
public final class ConnectionTrace implements AutoCloseable {

    private static final long NOTHING = Long.MIN_VALUE;

    private final ProcessTrace process;
    private final int index;
    private final long base;
    /** Address of the ring with this connection's last frames; 0 if no frames are remembered. */
    private final long ring;
    /** Address of the counter for the time in which no step was ready for the proxy, in nanoseconds. */
    private final long idle;
    /** Address of the counter for the time with frames in flight, in nanoseconds. */
    private final long wire;
    /**
     * Address of the counter for the time in which a step waited for room in the network or in the device's slots, in
     * nanoseconds.
     */
    private final long full;
    /** Recorder of all steps; null if the process is not recorded. */
    private final Recorder.@Nullable Steps recorder;
    /**
     * Trace of the agent that serves the connection; null without an agent. Without an agent, every change is stored
     * immediately.
     */
    private @Nullable AgentTrace agent;
    private boolean changed;
    private long frames;
    private long framesDone;
    private long bytes;
    private long taken;
    private long done;
    private long blocked = NOTHING;
    private long consumed = NOTHING;

    // Values that were stored in the trace most recently.
    private long framesStored;
    private long framesDoneStored;
    private long blockedStored = NOTHING;
    private long time;
    /** Address of the counter that receives the time until the next change. */
    private long waiting;
    private boolean closed;

    ConnectionTrace(ProcessTrace process, int index, long base, long ring, boolean sends,
            Recorder.@Nullable Steps recorder) {
        this.process = process;
        this.index = index;
        this.base = base;
        this.ring = ring;
        this.recorder = recorder;
        long kernel = base + ConnectionFields.WAIT_OFFSET;
        long peer = kernel + 2 * Long.BYTES;
        this.wire = kernel + Long.BYTES;
        this.idle = sends ? kernel : peer;
        this.full = sends ? peer : kernel;
        this.waiting = idle;
        this.taken = TraceMemory.get(base + ConnectionFields.TAKEN_OFFSET);
        this.done = taken;
    }

    /** States that an agent serves the connection from now on. Called on the agent's thread. */
    public void servedBy(AgentTrace by) {
        agent = by;
        time = System.nanoTime(); // The time before this call is added to no counter.
        TraceMemory.set(base + ConnectionFields.LAST_CHANGE_OFFSET, time);
        TraceMemory.set(base + ConnectionFields.AGENT_OFFSET, by.number());
        if (recorder != null) {
            recorder.served();
        }
    }

    /**
     * Records that a sent frame, or the slot of a frame to receive, was passed to the network. {@code end} is the first
     * step after the frame.
     */
    public void taken(long end, long size, int protocol) {
        if (ring != 0) {
            long entry = entry(frames);
            TraceMemory.set(entry + ConnectionFields.FRAME_END_OFFSET, end);
            TraceMemory.set(entry + ConnectionFields.FRAME_WHAT_OFFSET,
                    size | (long) protocol << ConnectionFields.PROTOCOL_SHIFT);
        }
        frames++;
        bytes += size;
        taken = end;
        if (recorder != null) {
            recorder.taken(end, size, protocol);
        }
        if (agent != null) {
            agent.moved(size);
        }
        changed();
        if (frames - framesStored == ConnectionFields.FRAMES_AHEAD) {
            store(System.nanoTime());
        }
    }

    /**
     * Records that the oldest frame in flight is complete: the network has read the frame, or the device was notified
     * of its arrival. {@code end} is the first step after the frame.
     */
    public void done(long end) {
        framesDone++;
        done = end;
        if (recorder != null) {
            recorder.done(end);
        }
        changed();
    }

    /**
     * Records that a step is present but cannot be taken. Either the network has no room for the step, or the
     * receiver's slot is occupied, or the receiver has not started the operation. May be called repeatedly.
     */
    public void blocked(long step) {
        if (step != blocked) {
            blocked = step;
            if (recorder != null) {
                recorder.blocked();
            }
            changed();
        }
    }

    /** Stores the device's progress through the received steps. May be called repeatedly. */
    public void consumed(long step) {
        if (step != consumed) {
            consumed = step;
            changed();
        }
    }

    private void changed() {
        if (agent == null) {
            store(System.nanoTime());
        } else if (!changed) {
            changed = true;
            agent.changed(this);
        }
    }

    /**
     * Stores the changes since the last store. Called on the agent's thread. Afterwards, the connection reports its
     * next change to the agent again.
     */
    void storeAll(long now) {
        changed = false;
        store(now);
    }

    /** Stores the changes since the last store, with {@code now} as the time of these changes. */
    private void store(long now) {
        if (closed) {
            // The connection is closed, and another connection may use its block.
            return;
        }
        if (consumed != NOTHING) {
            TraceMemory.set(base + ConnectionFields.CONSUMED_OFFSET, consumed);
        }
        if (frames == framesStored && framesDone == framesDoneStored && blocked == blockedStored) {
            return;
        }
        TraceMemory.set(waiting, TraceMemory.get(waiting) + now - time);
        waiting = framesDone != frames ? wire : blocked != NOTHING && blocked - taken >= 0 ? full : idle;
        time = now;
        if (ring != 0) {
            storeTimes(now);
        }
        framesDoneStored = framesDone;
        framesStored = frames;
        blockedStored = blocked;
        TraceMemory.set(base + ConnectionFields.LAST_CHANGE_OFFSET, now);
        TraceMemory.set(base + ConnectionFields.BYTES_OFFSET, bytes);
        TraceMemory.set(base + ConnectionFields.TAKEN_OFFSET, taken);
        TraceMemory.set(base + ConnectionFields.DONE_OFFSET, done);
        if (blocked != NOTHING) {
            TraceMemory.set(base + ConnectionFields.BLOCKED_OFFSET, blocked);
        }
        TraceMemory.release(base + ConnectionFields.FRAMES_OFFSET, frames);
        // Orders the store of the count before the next frames' entries, which overwrite the oldest entries. Pairs with
        // the second reading of the count in TraceReader.
        VarHandle.storeStoreFence();
    }

    private void storeTimes(long now) {
        for (long frame = framesStored; frame < frames; frame++) {
            TraceMemory.set(entry(frame) + ConnectionFields.FRAME_TAKEN_OFFSET, now);
            TraceMemory.set(entry(frame) + ConnectionFields.FRAME_DONE_OFFSET, 0L);
        }
        for (long frame = framesDoneStored; frame < framesDone; frame++) {
            TraceMemory.set(entry(frame) + ConnectionFields.FRAME_DONE_OFFSET, now);
        }
    }

    private long entry(long frame) {
        return ring + (frame & ConnectionFields.FRAMES - 1) * ConnectionFields.FRAME_BYTES;
    }

    /** States that no agent serves the connection from now on, because the two devices reach each other's memory. */
    public void servedWithoutAgent() {
        TraceMemory.set(base + ConnectionFields.AGENT_OFFSET, ConnectionFields.NO_AGENT);
    }

    /**
     * Stores the number of steps that the device has posted or consumed. Used for a connection that no agent serves,
     * because no proxy then reports its progress.
     */
    public void reached(long step) {
        synchronized (process) {
            // A closed connection stores nothing, because another connection may use its block of the file.
            if (!closed && step != consumed) {
                consumed = step;
                TraceMemory.set(base + ConnectionFields.CONSUMED_OFFSET, step);
                TraceMemory.set(base + ConnectionFields.DONE_OFFSET, step);
                TraceMemory.set(base + ConnectionFields.TAKEN_OFFSET, step);
                TraceMemory.set(base + ConnectionFields.LAST_CHANGE_OFFSET, System.nanoTime());
            }
        }
    }

    /** Stores that the connection has failed, and the reason. Callable from any thread. */
    public void failed(String why) {
        storeRest();
        process.failed(index, why);
    }

    /**
     * Stores the changes since the last store. Any thread may call this method, to close a connection or to report its
     * failure. The agent later finds the closed connection and skips it.
     */
    private void storeRest() {
        if (changed) {
            store(System.nanoTime());
        }
    }

    /**
     * Stores the last changes, and closes the connection's block. Called when the connection has ended. May be called
     * twice, by any thread.
     */
    @Override
    public void close() {
        synchronized (process) {
            if (!closed) {
                storeRest();
                closed = true;
                process.close(index);
            }
        }
    }
}
