package org.millrace.trace;

import static org.millrace.trace.TraceLayout.ConnectionFields.BLOCKED_OFFSET;
import static org.millrace.trace.TraceLayout.ConnectionFields.BYTES_OFFSET;
import static org.millrace.trace.TraceLayout.ConnectionFields.CONSUMED_OFFSET;
import static org.millrace.trace.TraceLayout.ConnectionFields.DONE_OFFSET;
import static org.millrace.trace.TraceLayout.ConnectionFields.FRAMES;
import static org.millrace.trace.TraceLayout.ConnectionFields.FRAMES_AHEAD;
import static org.millrace.trace.TraceLayout.ConnectionFields.FRAMES_OFFSET;
import static org.millrace.trace.TraceLayout.ConnectionFields.FRAME_BYTES;
import static org.millrace.trace.TraceLayout.ConnectionFields.FRAME_DONE_OFFSET;
import static org.millrace.trace.TraceLayout.ConnectionFields.FRAME_END_OFFSET;
import static org.millrace.trace.TraceLayout.ConnectionFields.FRAME_TAKEN_OFFSET;
import static org.millrace.trace.TraceLayout.ConnectionFields.FRAME_WHAT_OFFSET;
import static org.millrace.trace.TraceLayout.ConnectionFields.LAST_CHANGE_OFFSET;
import static org.millrace.trace.TraceLayout.ConnectionFields.PROTOCOL_SHIFT;
import static org.millrace.trace.TraceLayout.ConnectionFields.TAKEN_OFFSET;

import org.jspecify.annotations.Nullable;
import org.millrace.trace.TraceLayout.ConnectionFields;

/**
 * What one direction of a connection did. Made by {@link ProcessTrace#connection}; used by the thread of the agent that
 * serves the connection, and closed after it.
 *
 * <p>
 * What happens is counted in fields, and of each frame two words go to the ring; the rest is stored, with the time,
 * when the agent's pass is over: in the first that finds nothing to do, and at the latest after
 * {@value AgentTrace#BUDGET} bytes. So nothing is stored, and no clock read, while a device or a peer waits.
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
    /** Null if the process is not recorded. */
    private final Recorder.@Nullable Steps recorder;
    /** Null while none serves it: then all is stored at once. */
    private @Nullable AgentTrace agent;
    /** Whether something has happened that is not stored yet. */
    private boolean changed;
    private long frames;
    private long framesDone;
    private long bytes;
    private long taken;
    private long done;
    private long blocked = NOTHING;
    private long consumed = NOTHING;

    // What was stored last.
    private long framesStored;
    private long framesDoneStored;
    private long blockedStored = NOTHING;
    private long time;
    /** Where the time until the next change is counted. */
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
        this.taken = TraceMemory.get(base + TAKEN_OFFSET);
        this.done = taken;
    }

    /** From now on an agent serves the connection: called on its thread. */
    public void servedBy(AgentTrace by) {
        agent = by;
        time = System.nanoTime(); // what passed before was nobody's
        TraceMemory.set(base + LAST_CHANGE_OFFSET, time);
        TraceMemory.set(base + ConnectionFields.AGENT_OFFSET, by.number());
        if (recorder != null) {
            recorder.served();
        }
    }

    /** A frame goes to the network, or its slot does for what comes in; {@code end} is the first step after it. */
    public void taken(long end, long size, int protocol) {
        if (ring != 0) {
            long entry = entry(frames);
            TraceMemory.set(entry + FRAME_END_OFFSET, end);
            TraceMemory.set(entry + FRAME_WHAT_OFFSET, size | (long) protocol << PROTOCOL_SHIFT);
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
        if (frames - framesStored == FRAMES_AHEAD) {
            store(System.nanoTime());
        }
    }

    /** The oldest frame, up to {@code end}: the network has read it, or the device was told that it is there. */
    public void done(long end) {
        framesDone++;
        done = end;
        if (recorder != null) {
            recorder.done(end);
        }
        changed();
    }

    /**
     * A step is there, and cannot be taken: the network has no room for it, or the device has not emptied its slot. May
     * be called again and again.
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

    /** How far the device has used what came in. May be called again and again. */
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

    /** Stores what has happened since the last time. On the agent's thread, which is told of the next change again. */
    void storeAll(long now) {
        changed = false;
        store(now);
    }

    /** What has happened since the last time is of now. */
    private void store(long now) {
        if (closed) {
            return; // the block may be another's
        }
        if (consumed != NOTHING) {
            TraceMemory.set(base + CONSUMED_OFFSET, consumed);
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
        TraceMemory.set(base + LAST_CHANGE_OFFSET, now);
        TraceMemory.set(base + BYTES_OFFSET, bytes);
        TraceMemory.set(base + TAKEN_OFFSET, taken);
        TraceMemory.set(base + DONE_OFFSET, done);
        if (blocked != NOTHING) {
            TraceMemory.set(base + BLOCKED_OFFSET, blocked);
        }
        TraceMemory.release(base + FRAMES_OFFSET, frames);
    }

    private void storeTimes(long now) {
        for (long frame = framesStored; frame < frames; frame++) {
            TraceMemory.set(entry(frame) + FRAME_TAKEN_OFFSET, now);
            TraceMemory.set(entry(frame) + FRAME_DONE_OFFSET, 0L);
        }
        for (long frame = framesDoneStored; frame < framesDone; frame++) {
            TraceMemory.set(entry(frame) + FRAME_DONE_OFFSET, now);
        }
    }

    private long entry(long frame) {
        return ring + (frame & FRAMES - 1) * FRAME_BYTES;
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

    /** The connection has failed; its block says so, and why. Called by any thread. */
    public void failed(String why) {
        storeRest();
        process.failed(index, why);
    }

    /** Whatever thread closes a connection: its agent's does nothing more with it, but for passing over it. */
    private void storeRest() {
        if (changed) {
            store(System.nanoTime());
        }
    }

    /** The connection is over. May be called twice, by any thread. */
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
