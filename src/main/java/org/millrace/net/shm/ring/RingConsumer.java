package org.millrace.net.shm.ring;

import java.lang.foreign.MemorySegment;
import org.millrace.net.FrameHeader;

/** Reads frames from a ring, whose contents it does not believe before it has checked them. One thread. */
public final class RingConsumer {

    private final RingMemory ring;
    private final long capacity;
    private final ShmConnection link;
    /** Of the next byte to read; what lies between the released position and this may not be overwritten yet. */
    private long position;
    /** The producer's position when last looked at: it is looked at again only when all up to it was read. */
    private long producerSeen;
    private int sequence;

    public RingConsumer(RingMemory ring, long capacity, ShmConnection link) {
        this.ring = ring;
        this.capacity = capacity;
        this.link = link;
        position = RingLayout.first(ring);
        producerSeen = position;
    }

    /** How many bytes can be read: whole lines, and more than 0 if there are any. */
    long available() {
        long known = producerSeen - position;
        return known != 0 ? known : lookForMore();
    }

    private long lookForMore() {
        long produced = RingLayout.producerPositionAcquire(ring);
        long more = produced - position;
        if (more < 0 || more > capacity || (more & RingLayout.ALIGNMENT - 1) != 0) {
            throw link.corrupt("the producer's position is " + produced + ", and the consumer's " + position
                    + " in a ring of " + capacity + " bytes");
        }
        producerSeen = produced;
        return more;
    }

    /** Reads the header that is next; it stays in the ring until {@link #skipHeader}. */
    void readHeader(FrameHeader header) {
        long place = place();
        if (!FrameLayout.read(ring, place, sequence, header)) {
            throw link.corrupt(
                    "no frame's header at position " + position + ": " + FrameLayout.describe(ring, place, sequence));
        }
    }

    void skipHeader() {
        sequence++;
        position += FrameLayout.HEADER_BYTES;
    }

    /** Reads a piece of payload that is available, in two parts where the ring's data ends in between. */
    void readPayload(MemorySegment to, long offset, long bytes) {
        long place = place();
        long untilEnd = Math.min(bytes, RingLayout.DATA_OFFSET + capacity - place);
        ring.copyOut(place, to, offset, untilEnd);
        if (untilEnd < bytes) {
            ring.copyOut(RingLayout.DATA_OFFSET, to, offset + untilEnd, bytes - untilEnd);
        }
        position += RingLayout.align(bytes);
    }

    /** Whether {@link #readPayload} does: it begins and ends within a payload at multiples of a line. */
    boolean copiesWholeWords() {
        return ring.copiesWholeWords();
    }

    /** Gives the producer the room of all that was read. */
    void release() {
        RingLayout.consumerPositionRelease(ring, position);
    }

    private long place() {
        return RingLayout.DATA_OFFSET + (position & capacity - 1);
    }

    boolean producerSaidGoodbye() {
        return RingLayout.producerStateAcquire(ring) != RingLayout.OPEN;
    }

    /** Tells the producer that nobody will read any more. */
    void sayGoodbye() {
        RingLayout.consumerStateRelease(ring, RingLayout.CLOSED);
    }
}
