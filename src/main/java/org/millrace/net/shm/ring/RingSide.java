package org.millrace.net.shm.ring;

import java.lang.foreign.MemorySegment;
import org.millrace.net.FrameHeader;

/** One side of a ring: how far it has come, and what it last saw of the other. One thread. */
abstract sealed class RingSide {

    final RingMemory memory;
    final long capacity;
    final ShmConnection connection;
    /** Of the next byte to write or to read; the other side knows of it when it is published or released. */
    long position;
    /** The other side's position when last looked at: it is looked at again only when this does not suffice. */
    long otherSeen;
    int sequence;

    private RingSide(RingMemory memory, long capacity, ShmConnection connection) {
        this.memory = memory;
        this.capacity = capacity;
        this.connection = connection;
        position = RingLayout.first(memory);
        otherSeen = position;
    }

    final long place() {
        return RingLayout.DATA_OFFSET + (position & capacity - 1);
    }

    /** How many of so many bytes lie before the end of the ring's data; the others are at its beginning. */
    final long untilEnd(long place, long bytes) {
        return Math.min(bytes, RingLayout.DATA_OFFSET + capacity - place);
    }

    /** Writes frames to a ring. */
    static final class Producer extends RingSide {

        Producer(RingMemory memory, long capacity, ShmConnection connection) {
            super(memory, capacity, connection);
        }

        /** Whether so many bytes may be written. All that was written must be published. */
        boolean hasRoom(long bytes) {
            return capacity - (position - otherSeen) >= bytes || lookForRoom() >= bytes;
        }

        private long lookForRoom() {
            long consumed = RingLayout.consumerPositionAcquire(memory);
            long unread = position - consumed;
            if (unread < 0 || consumed - otherSeen < 0 || (consumed & RingLayout.ALIGNMENT - 1) != 0) {
                throw connection.corrupt("the consumer's position is " + consumed + " after " + otherSeen
                        + ", and the producer's " + position);
            }
            otherSeen = consumed;
            return capacity - unread;
        }

        void writeHeader(FrameHeader header) {
            FrameLayout.write(memory, place(), sequence++, header);
            position += FrameLayout.HEADER_BYTES;
        }

        /** Writes a piece of payload. Only the last piece of a payload may end within a line. */
        void writePayload(MemorySegment from, long offset, long bytes) {
            long place = place();
            long first = untilEnd(place, bytes);
            memory.copyIn(place, from, offset, first);
            if (first < bytes) {
                memory.copyIn(RingLayout.DATA_OFFSET, from, offset + first, bytes - first);
            }
            position += RingLayout.align(bytes);
        }

        /** Shows the consumer all that was written. */
        void publish() {
            RingLayout.producerPositionRelease(memory, position);
        }

        boolean consumerSaidGoodbye() {
            return RingLayout.consumerStateAcquire(memory) != RingLayout.OPEN;
        }

        /** Tells the consumer that nothing will follow. */
        void sayGoodbye() {
            RingLayout.lastWords(memory, true, connection.blamed());
            RingLayout.producerStateRelease(memory, RingLayout.CLOSED);
        }
    }

    /** Reads frames from a ring, whose contents it does not believe before it has checked them. */
    static final class Consumer extends RingSide {

        Consumer(RingMemory memory, long capacity, ShmConnection connection) {
            super(memory, capacity, connection);
        }

        /** How many bytes can be read: whole lines, and more than 0 if there are any. */
        long available() {
            long known = otherSeen - position;
            return known != 0 ? known : lookForMore();
        }

        private long lookForMore() {
            long produced = RingLayout.producerPositionAcquire(memory);
            long more = produced - position;
            if (more < 0 || more > capacity || (more & RingLayout.ALIGNMENT - 1) != 0) {
                throw connection.corrupt("the producer's position is " + produced + ", and the consumer's " + position
                        + " in a ring of " + capacity + " bytes");
            }
            otherSeen = produced;
            return more;
        }

        /** Reads the header that is next; it stays in the ring until {@link #skipHeader}. */
        void readHeader(FrameHeader header) {
            long place = place();
            if (!FrameLayout.read(memory, place, sequence, header)) {
                throw connection.corrupt("no frame's header at position " + position + ": "
                        + FrameLayout.describe(memory, place, sequence));
            }
        }

        void skipHeader() {
            sequence++;
            position += FrameLayout.HEADER_BYTES;
        }

        /** Reads a piece of payload that is available. */
        void readPayload(MemorySegment to, long offset, long bytes) {
            long place = place();
            long first = untilEnd(place, bytes);
            memory.copyOut(place, to, offset, first);
            if (first < bytes) {
                memory.copyOut(RingLayout.DATA_OFFSET, to, offset + first, bytes - first);
            }
            position += RingLayout.align(bytes);
        }

        /** Whether {@link #readPayload} does: it begins and ends within a payload at multiples of a line. */
        boolean copiesWholeWords() {
            return memory.copiesWholeWords();
        }

        /** Gives the producer the room of all that was read. */
        void release() {
            RingLayout.consumerPositionRelease(memory, position);
        }

        boolean producerSaidGoodbye() {
            return RingLayout.producerStateAcquire(memory) != RingLayout.OPEN;
        }

        /** Tells the producer that nobody will read any more. */
        void sayGoodbye() {
            RingLayout.lastWords(memory, false, connection.blamed());
            RingLayout.consumerStateRelease(memory, RingLayout.CLOSED);
        }
    }
}
