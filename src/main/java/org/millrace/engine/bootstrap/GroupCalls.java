package org.millrace.engine.bootstrap;

import java.net.ProtocolException;
import java.util.Arrays;
import java.util.stream.IntStream;
import org.millrace.engine.bootstrap.Message.Contribution;

/**
 * The parts of the collective calls in flight. There are at most two of them: a rank begins the next call only when
 * every rank has contributed to the one before, and this rank takes the result of a call before it begins the next. So
 * two slots are enough, and a rank that would need a third breaks the protocol.
 *
 * <p>
 * Not safe for several threads: {@link GroupState} guards it.
 */
final class GroupCalls {

    private static final int IN_FLIGHT = 2;

    private final Contribution[][] slots;
    private final long[] nextSequence;

    GroupCalls(int size) {
        this.slots = new Contribution[IN_FLIGHT][size];
        this.nextSequence = new long[size];
    }

    /** The sequence number of the rank's next contribution. */
    long next(int rank) {
        return nextSequence[rank];
    }

    void add(Contribution part) throws ProtocolException {
        Contribution[] slot = slot(part.sequence());
        if (part.sequence() != nextSequence[part.rank()] || slot[part.rank()] != null) {
            throw new ProtocolException("sent the part of rank " + part.rank() + " for collective call "
                    + part.sequence() + " while its part for call " + nextSequence[part.rank()]
                    + " is the next, once all ranks have made the call before");
        }
        if (part.data().length > MessageCodec.MAX_DATA) {
            throw new ProtocolException("sent a part of rank " + part.rank() + " with " + part.data().length
                    + " bytes; the limit is " + MessageCodec.MAX_DATA);
        }
        slot[part.rank()] = part;
        nextSequence[part.rank()]++;
    }

    /** The ranks that have not contributed to the call yet. */
    IntStream missing(long sequence) {
        Contribution[] slot = slot(sequence);
        return IntStream.range(0, slot.length).filter(rank -> slot[rank] == null);
    }

    /** The parts of a call that nobody is missing from, by rank. Frees its slot. */
    Contribution[] take(long sequence) {
        Contribution[] parts = slot(sequence).clone();
        Arrays.fill(slot(sequence), null);
        return parts;
    }

    private Contribution[] slot(long sequence) {
        return slots[(int) (sequence & (IN_FLIGHT - 1))];
    }
}
