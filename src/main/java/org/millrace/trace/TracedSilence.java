package org.millrace.trace;

import org.jspecify.annotations.Nullable;
import org.millrace.trace.TraceLayout.SilenceFields;

/**
 * A link over which nothing came for long.
 *
 * @param state   open while it is silent; failed if its streams were lost meanwhile
 * @param streams how many streams of connections it had; 0 for one between two other hosts, as a peer says
 * @param local   this host's address and interface; of another host its name, too
 * @param remote  the other host's address, with its name if it is known
 * @param peer    what is at the other end of the one that fell silent first; the peer that says it
 */
public record TracedSilence(TracedState state, long since, long closed, int streams, String local, String remote,
        String peer) {

    /** Whether it is between two other hosts. */
    boolean isElsewhere() {
        return streams == 0;
    }

    /** Whether it is a connection that has no stream, and waits for one. */
    boolean isCut() {
        return streams == SilenceFields.CUT;
    }

    static @Nullable TracedSilence parse(TraceBytes block) {
        TracedState state = TracedState.of(block.intAt(TraceLayout.STATE_OFFSET));
        return state == null ? null
                : new TracedSilence(state, block.longAt(SilenceFields.SINCE_OFFSET),
                        block.longAt(TraceLayout.CLOSED_OFFSET), block.intAt(SilenceFields.STREAMS_OFFSET),
                        block.textAt(SilenceFields.LOCAL_OFFSET, SilenceFields.LOCAL_BYTES),
                        block.textAt(SilenceFields.REMOTE_OFFSET, SilenceFields.REMOTE_BYTES),
                        block.textAt(SilenceFields.PEER_OFFSET, SilenceFields.PEER_BYTES));
    }
}
