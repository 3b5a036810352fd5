package org.millrace.trace;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.TracedConnection.Standing;

/** A connection with what both ends have written down of it. */
public record Link(@Nullable TracedRank from, @Nullable TracedConnection sender, @Nullable TracedRank to,
        @Nullable TracedConnection receiver) {

    private static final int SLOTS = 8;

    /** What a connection shows from outside of what it waits for. */
    enum Sign {
        /** Nothing: all that was posted is used. */
        NONE,
        FAILED,
        /** What was posted has not arrived, and there is room for it. */
        ON_THE_WIRE,
        /** What has arrived is not used by the receiving kernel. */
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
     * The end of the first frame that has not arrived. It may leave steps out before it: an operation's first is the
     * first of a chunk.
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

    /** Between two ranks, whichever way data goes. */
    boolean joins(@Nullable TracedRank one, @Nullable TracedRank other) {
        return from == one && to == other || from == other && to == one;
    }

    /** Both devices are served by one proxy. */
    private boolean isCopy() {
        return sender != null && sender.identity().direction() == Direction.COPY;
    }

    /** Whether the sending kernel has no room for another step. */
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

    /** When anything happened last, by the host's clock. */
    long lastChange() {
        long there = sender == null ? Long.MIN_VALUE : sender.lastChange();
        return receiver == null ? there
                : sender == null || receiver.lastChange() - there > 0 ? receiver.lastChange() : there;
    }

    /** The first step that has not come through. */
    long step() {
        return receiver != null ? sign() == Sign.ON_THE_WIRE ? receiver.done() : receiver.consumed()
                : sender == null ? -1 : sender.done();
    }

    /** The end that says more of the connection. */
    private TracedConnection any() {
        TracedConnection end = sender == null ? receiver : sender;
        if (end == null) {
            throw new IllegalStateException("a connection has an end");
        }
        return end;
    }

    /** -1 if nobody told. */
    int channel() {
        return any().identity().channel();
    }

    String network() {
        return any().identity().network();
    }

    /** The end that was found of two, in words: for messages of what was not. */
    String peerText() {
        return any().identity().peerText();
    }

    String channelText() {
        int order = any().identity().order();
        return channel() >= 0 ? "channel " + channel() : order >= 0 ? "connection " + order : "a connection";
    }
}
