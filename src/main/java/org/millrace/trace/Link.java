package org.millrace.trace;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.TracedConnection.Standing;

/** A connection with the traces of both ends. */
public record Link(@Nullable TracedRank from, @Nullable TracedConnection sender, @Nullable TracedRank to,
        @Nullable TracedConnection receiver) {

    private static final int SLOTS = 8;

    /** State of a connection according to its traces. The state indicates a possible cause of a wait. */
    enum Sign {
        /** No possible cause of a wait: all posted steps are consumed. */
        NONE,
        FAILED,
        /** Posted data has not arrived, although the receiver has room for it. */
        ON_THE_WIRE,
        /** The receiving kernel does not use the arrived data. */
        NOT_CONSUMED
    }

    Sign sign() {
        if (hasFailed(sender) || hasFailed(receiver)) {
            return Sign.FAILED;
        }
        if (isDirect()) {
            return sender == null || receiver == null || sender.taken() - receiver.consumed() <= 0 ? Sign.NONE
                    : Sign.NOT_CONSUMED;
        }
        if (receiver == null) {
            return sender == null || sender.standing() == Standing.IDLE ? Sign.NONE
                    : isCopy() && sender.standing() == Standing.NO_ROOM ? Sign.NOT_CONSUMED : Sign.ON_THE_WIRE;
        }
        Standing there = receiver.standing();
        if (there == Standing.DEVICE_FULL) {
            return Sign.NOT_CONSUMED;
        }
        boolean under = there == Standing.UNDER_WAY
                || sender != null && (sender.taken() - receiver.done() > 0 || sender.standing() == Standing.NO_ROOM);
        if (under && nextEnd() - receiver.consumed() <= SLOTS) {
            return Sign.ON_THE_WIRE;
        }
        return under || there == Standing.UNCONSUMED ? Sign.NOT_CONSUMED : Sign.NONE;
    }

    /**
     * Returns the first step after the oldest frame that has not arrived. A frame may begin some steps after the
     * previous frame, because an operation begins with the first step of a chunk.
     */
    private long nextEnd() {
        long arrived = Objects.requireNonNull(receiver).done();
        return sender == null ? arrived + 1
                : sender.last()
                        .stream()
                        .mapToLong(TracedConnection.Frame::end)
                        .filter(end -> end - arrived > 0)
                        .findFirst()
                        .orElse(arrived + 1);
    }

    boolean isDirect() {
        return sender != null && sender.isDirect() || receiver != null && receiver.isDirect();
    }

    /** Returns whether the connection is between two ranks, in either direction. */
    boolean joins(@Nullable TracedRank one, @Nullable TracedRank other) {
        return from == one && to == other || from == other && to == one;
    }

    /** Returns whether one proxy serves both devices. */
    private boolean isCopy() {
        return sender != null && sender.identity().direction() == Direction.COPY;
    }

    /** Returns whether the sending kernel has no room for another step. */
    boolean isFull() {
        if (sender == null) {
            return receiver != null && receiver.standing() == Standing.DEVICE_FULL;
        }
        return sender.standing() == Standing.NO_ROOM || sender.taken() - sender.done() >= SLOTS
                || receiver != null && sender.taken() - receiver.consumed() >= SLOTS;
    }

    private static boolean hasFailed(@Nullable TracedConnection end) {
        return end != null && end.state() == TracedState.FAILED;
    }

    /** Returns the time of the last change, by the host's clock. */
    long lastChange() {
        long there = sender == null ? Long.MIN_VALUE : sender.lastChange();
        return receiver == null ? there
                : sender == null || receiver.lastChange() - there > 0 ? receiver.lastChange() : there;
    }

    /**
     * Returns the first step that is delayed: it has not arrived, or the receiving kernel has not consumed it; -1 if
     * unknown.
     */
    long step() {
        return receiver != null ? sign() == Sign.ON_THE_WIRE ? receiver.done() : receiver.consumed()
                : sender == null ? -1 : sender.done();
    }

    /** Returns the trace of the sending end, or of the receiving end if the sending end has none. */
    private TracedConnection any() {
        TracedConnection end = sender == null ? receiver : sender;
        if (end == null) {
            throw new IllegalStateException("a connection has an end");
        }
        return end;
    }

    int channel() {
        return any().identity().channel();
    }

    String network() {
        return any().identity().network();
    }

    /** Returns one end's description of its peer, for messages about a peer that has no trace. */
    String peerText() {
        return any().identity().peerText();
    }

    String channelText() {
        int order = any().identity().order();
        return channel() >= 0 ? "channel " + channel() : order >= 0 ? "connection " + order : "a connection";
    }
}
