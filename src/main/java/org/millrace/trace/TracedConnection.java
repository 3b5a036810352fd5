package org.millrace.trace;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.TraceLayout.ConnectionFields;

/**
 * One direction of a connection, as found in the trace of its process.
 *
 * @param block      index of the connection's block in the file
 * @param generation number that distinguishes the connection from other users of the same block
 * @param agent      number of the agent that serves the connection; -1 before the first agent, -2 if no agent is needed
 * @param closed     time of the closing; 0 while the connection is open
 * @param taken      first step that was not taken
 * @param done       first step that is not complete
 * @param blocked    first step of the last frame that the proxy could not take: the frame's destination had no room, or
 *                   the receiving rank had not started the operation. If this step is below {@code taken}, the proxy
 *                   has taken the frame since then
 * @param consumed   on the receiving side, first step that the device has not consumed
 * @param last       last frames, oldest first; empty if the process keeps no frames
 */
public record TracedConnection(int block, long generation, TracedState state, ConnectionIdentity identity, int agent,
        long opened, long closed, long frames, long bytes, long taken, long done, long lastChange, long blocked,
        long consumed, long kernelNanos, long wireNanos, long peerNanos, List<Frame> last) {

    /**
     * A frame. {@code protocol} is a number in decimal if it is none of NCCL's protocols. {@code done} is 0 while the
     * frame is not complete.
     */
    public record Frame(long number, long end, long size, String protocol, long taken, long done) {
    }

    /**
     * Identification that both ends of a connection share: a key or, without a key, the ranks, the channel and the
     * kind.
     */
    public record Key(long communicator, long high, long low, int from, int to, int channel, int kind, boolean copies) {
    }

    /** State of a connection according to its counters. */
    public enum Standing implements Labelled {
        /** No step is present: the kernel has posted nothing, or the peer has sent nothing. */
        IDLE,
        UNDER_WAY,
        /** A step to send is present, and the network does not accept it. */
        NO_ROOM,
        /** A frame waits for its slot: the device has not emptied the slot or does not expect the frame yet. */
        DEVICE_FULL,
        /** The device was notified of all received data, and has not consumed all of it. */
        UNCONSUMED;
    }

    private static final String[] PROTOCOLS = {"LL", "LL128", "Simple"};

    static @Nullable TracedConnection parse(int index, TraceBytes block, boolean steps, long framesAfterwards) {
        TracedState state = TracedState.of(block.intAt(TraceLayout.STATE_OFFSET));
        int direction = block.intAt(ConnectionFields.DIRECTION_OFFSET);
        if (state == null || direction < 0 || direction >= Direction.values().length) {
            return null;
        }
        ConnectionIdentity identity = new ConnectionIdentity(block.longAt(TraceLayout.COMMUNICATOR_OFFSET),
                block.intAt(TraceLayout.RANK_IN_GROUP_OFFSET), block.intAt(ConnectionFields.PEER_OFFSET),
                block.intAt(ConnectionFields.CHANNEL_OFFSET), Direction.values()[direction],
                block.intAt(ConnectionFields.KIND_OFFSET), block.longAt(ConnectionFields.KEY_HIGH_OFFSET),
                block.longAt(ConnectionFields.KEY_LOW_OFFSET), block.intAt(ConnectionFields.ORDER_OFFSET),
                block.longAt(ConnectionFields.FIRST_STEP_OFFSET), block.textAt(ConnectionFields.NETWORK),
                block.textAt(ConnectionFields.PEER_TEXT), block.textAt(ConnectionFields.NAME));
        long frames = block.countAt(ConnectionFields.FRAMES_OFFSET);
        return new TracedConnection(index, block.longAt(TraceLayout.GENERATION_OFFSET), state, identity,
                block.intAt(ConnectionFields.AGENT_OFFSET), block.longAt(TraceLayout.OPENED_OFFSET),
                block.longAt(TraceLayout.CLOSED_OFFSET), frames, block.countAt(ConnectionFields.BYTES_OFFSET),
                block.longAt(ConnectionFields.TAKEN_OFFSET), block.longAt(ConnectionFields.DONE_OFFSET),
                block.longAt(ConnectionFields.LAST_CHANGE_OFFSET), block.longAt(ConnectionFields.BLOCKED_OFFSET),
                block.longAt(ConnectionFields.CONSUMED_OFFSET), block.countAt(ConnectionFields.WAIT_OFFSET),
                block.countAt(ConnectionFields.WAIT_OFFSET + Long.BYTES),
                block.countAt(ConnectionFields.WAIT_OFFSET + 2 * Long.BYTES),
                steps ? frames(block, frames, framesAfterwards) : List.of());
    }

    /**
     * Returns the frames that were certainly not overwritten during the read. Omits the oldest frames, because new
     * frames that are not counted yet may have overwritten them.
     */
    private static List<Frame> frames(TraceBytes block, long frames, long framesAfterwards) {
        long first = Math.max(0,
                Math.max(frames, framesAfterwards) + ConnectionFields.FRAMES_AHEAD - ConnectionFields.FRAMES);
        List<Frame> last = new ArrayList<>();
        for (long number = Math.max(first, frames - ConnectionFields.FRAMES); number < frames; number++) {
            TraceBytes entry = block.slice(
                    TraceLayout.RECORD_BYTES
                            + (int) (number & ConnectionFields.FRAMES - 1) * ConnectionFields.FRAME_BYTES,
                    ConnectionFields.FRAME_BYTES);
            long what = entry.longAt(ConnectionFields.FRAME_WHAT_OFFSET);
            int protocol = (int) (what >>> ConnectionFields.PROTOCOL_SHIFT) & 0xff;
            last.add(new Frame(number, entry.longAt(ConnectionFields.FRAME_END_OFFSET),
                    what & (1L << ConnectionFields.PROTOCOL_SHIFT) - 1,
                    protocol < PROTOCOLS.length ? PROTOCOLS[protocol] : Integer.toString(protocol),
                    entry.longAt(ConnectionFields.FRAME_TAKEN_OFFSET),
                    entry.longAt(ConnectionFields.FRAME_DONE_OFFSET)));
        }
        return Collections.unmodifiableList(last);
    }

    public Key key() {
        if (identity.keyHigh() != 0 || identity.keyLow() != 0) {
            return new Key(identity.communicator(), identity.keyHigh(), identity.keyLow(), 0, 0, 0, 0, false);
        }
        return new Key(identity.communicator(), 0, 0, sends() ? identity.rank() : identity.peer(),
                sends() ? identity.peer() : identity.rank(), identity.channel(), identity.kind(),
                identity.direction() == Direction.COPY);
    }

    /** Returns whether the connection has no proxy, because each device accesses the other device's memory. */
    public boolean isDirect() {
        return agent == ConnectionFields.NO_AGENT;
    }

    public boolean sends() {
        return identity.direction() != Direction.RECEIVE;
    }

    /** Returns whether a step still waits because the proxy could not take it. */
    public boolean isBlocked() {
        return blocked - taken >= 0;
    }

    public Standing standing() {
        if (isBlocked()) {
            return sends() ? Standing.NO_ROOM : Standing.DEVICE_FULL;
        }
        if (taken != done) {
            return Standing.UNDER_WAY;
        }
        return !sends() && done - consumed > 0 ? Standing.UNCONSUMED : Standing.IDLE;
    }
}
