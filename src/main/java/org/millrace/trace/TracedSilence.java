package org.millrace.trace;

import org.jspecify.annotations.Nullable;
import org.millrace.trace.TraceLayout.SilenceFields;

/**
 * A link between two hosts over which no data has arrived for a long time, or a connection that has lost its last
 * stream and waits for another stream.
 *
 * @param state   open while the link is silent; failed if the link's streams were lost while the link was silent
 * @param streams number of streams of connections over the link; 0 for a link between two other hosts, as reported by a
 *                peer; -1 for a connection without a stream
 * @param local   this host's address and interface; for a link between other hosts, name and address of one of these
 *                hosts; empty for a connection without a stream
 * @param remote  the other host's address, with its name if known; for a connection without a stream, its peer
 * @param peer    peer of the stream that fell silent first, or the peer that reports the link; for a connection without
 *                a stream, a text about the loss of the last stream
 */
public record TracedSilence(TracedState state, long since, long closed, int streams, String local, String remote,
        String peer) {

    /** Returns whether the link is between two other hosts. */
    boolean isElsewhere() {
        return streams == 0;
    }

    /** Returns whether this object describes a connection that has no stream and waits for another stream. */
    boolean isCut() {
        return streams == SilenceFields.CUT;
    }

    static @Nullable TracedSilence parse(TraceBytes block) {
        TracedState state = TracedState.of(block.intAt(TraceLayout.STATE_OFFSET));
        return state == null ? null
                : new TracedSilence(state, block.longAt(SilenceFields.SINCE_OFFSET),
                        block.longAt(TraceLayout.CLOSED_OFFSET), block.intAt(SilenceFields.STREAMS_OFFSET),
                        block.textAt(SilenceFields.LOCAL), block.textAt(SilenceFields.REMOTE),
                        block.textAt(SilenceFields.PEER));
    }
}
