package org.millrace.net.shm.ring;

import java.lang.foreign.MemorySegment;
import org.millrace.net.FrameHeader;

/** Writes frames to a ring. One thread. */
public final class RingProducer {

    private final RingMemory ring;
    private final long capacity;
    private final ShmConnection link;
    /** Of the next byte to write; what lies between the published position and this is not visible to the consumer. */
    private long position;
    /** The consumer's position when last looked at: it is looked at again only when this leaves no room. */
    private long consumerSeen;
    private int sequence;

    public RingProducer(RingMemory ring, long capacity, ShmConnection link) {
        this.ring = ring;
        this.capacity = capacity;
        this.link = link;
        position = RingLayout.first(ring);
        consumerSeen = position;
    }

    /** Whether so many bytes may be written. All that was written must be published. */
    boolean hasRoom(long bytes) {
        return capacity - (position - consumerSeen) >= bytes || lookForRoom() >= bytes;
    }

    private long lookForRoom() {
        long consumed = RingLayout.consumerPositionAcquire(ring);
        long unread = position - consumed;
        if (unread < 0 || consumed - consumerSeen < 0 || (consumed & RingLayout.ALIGNMENT - 1) != 0) {
            throw link.corrupt("the consumer's position is " + consumed + " after " + consumerSeen
                    + ", and the producer's " + position);
        }
        consumerSeen = consumed;
        return capacity - unread;
    }

    void writeHeader(FrameHeader header) {
        FrameLayout.write(ring, place(), sequence++, header);
        position += FrameLayout.HEADER_BYTES;
    }

    /**
     * Writes a piece of payload, in two parts where the ring's data ends in between. Only the last piece of a payload
     * may end within a line.
     */
    void writePayload(MemorySegment from, long offset, long bytes) {
        long place = place();
        long untilEnd = Math.min(bytes, RingLayout.DATA_OFFSET + capacity - place);
        ring.copyIn(place, from, offset, untilEnd);
        if (untilEnd < bytes) {
            ring.copyIn(RingLayout.DATA_OFFSET, from, offset + untilEnd, bytes - untilEnd);
        }
        position += RingLayout.align(bytes);
    }

    /** Shows the consumer all that was written. */
    void publish() {
        RingLayout.producerPositionRelease(ring, position);
    }

    private long place() {
        return RingLayout.DATA_OFFSET + (position & capacity - 1);
    }

    boolean consumerSaidGoodbye() {
        return RingLayout.consumerStateAcquire(ring) != RingLayout.OPEN;
    }

    /** Tells the consumer that nothing will follow. */
    void sayGoodbye() {
        RingLayout.producerStateRelease(ring, RingLayout.CLOSED);
    }
}
