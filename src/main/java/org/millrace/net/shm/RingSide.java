package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;
import org.millrace.net.DeviceRegion;
import org.millrace.net.FrameHeader;
import org.millrace.net.connection.LastWords;

/** One side of a ring: its position, and the last known position of the other side. One thread. */
abstract sealed class RingSide {

    final RingMemory memory;
    final long capacity;
    final ShmConnection connection;
    private final boolean produces;
    /** Position of the next byte to write or to read. The other side learns it by publish or release. */
    long position;
    /** Last known position of the other side. It is read again only if this value is not sufficient. */
    long otherSeen;
    int sequence;

    private RingSide(boolean produces, long capacity, ShmConnection connection) {
        this.produces = produces;
        this.memory = connection.ring();
        this.capacity = capacity;
        this.connection = connection;
        position = memory.getLong(RingLayout.FIRST);
        otherSeen = position;
    }

    /** Announces that no data follows, and the lost process that is the reason, if any. */
    final void shutDown(long state) {
        int lostPeer = produces ? RingLayout.PRODUCER_LOST_PEER : RingLayout.CONSUMER_LOST_PEER;
        LastWords.write(connection.blamed(), (i, word) -> memory.putLong(lostPeer + i * Long.BYTES, word));
        memory.putLongRelease(produces ? RingLayout.PRODUCER_STATE : RingLayout.CONSUMER_STATE, state);
    }

    /** Returns the state of the other side. */
    final long otherState() {
        return memory.getLongAcquire(produces ? RingLayout.CONSUMER_STATE : RingLayout.PRODUCER_STATE);
    }

    /** Returns the process that the other side has lost, if that was the reason of its shutdown. */
    final @Nullable String otherLostPeer() {
        int lostPeer = produces ? RingLayout.CONSUMER_LOST_PEER : RingLayout.PRODUCER_LOST_PEER;
        return LastWords.read(i -> memory.getLong(lostPeer + i * Long.BYTES));
    }

    final long place() {
        return RingLayout.DATA_OFFSET + (position & capacity - 1);
    }

    /** Returns the number of bytes before the end of the ring's data; the remaining ones are at its beginning. */
    final long untilEnd(long place, long bytes) {
        return Math.min(bytes, RingLayout.DATA_OFFSET + capacity - place);
    }

    /** Writes frames to a ring. */
    static final class Producer extends RingSide {

        Producer(long capacity, ShmConnection connection) {
            super(true, capacity, connection);
        }

        /** Returns whether a number of bytes may be written. All earlier writes must be published. */
        boolean hasRoom(long bytes) {
            return capacity - (position - otherSeen) >= bytes || lookForRoom() >= bytes;
        }

        private long lookForRoom() {
            long consumed = memory.getLongAcquire(RingLayout.CONSUMER_POSITION);
            long unread = position - consumed;
            if (unread < 0 || consumed - otherSeen < 0 || (consumed & RingLayout.ALIGNMENT - 1) != 0) {
                throw connection.corrupt("the consumer's position is " + consumed + " after " + otherSeen
                        + ", and the producer's " + position);
            }
            otherSeen = consumed;
            return capacity - unread;
        }

        void writeHeader(FrameHeader header) {
            FrameLayout.write(memory, place(), sequence++, header, FrameLayout.Payload.IN_RING);
            position += FrameLayout.HEADER_BYTES;
        }

        /**
         * Writes a header, and the place of its payload.
         *
         * @param ticket ticket of the device memory, to which the address is relative; null for memory of this process
         * @return position of that place, for {@link #move}
         */
        long writeHeader(FrameHeader header, long address, DeviceRegion.@Nullable Ticket ticket) {
            FrameLayout.write(memory, place(), sequence++, header,
                    ticket == null ? FrameLayout.Payload.IN_PLACE : FrameLayout.Payload.ON_DEVICE);
            position += FrameLayout.HEADER_BYTES;
            long place = place();
            FrameLayout.writePlace(memory, place, address, ticket);
            position += RingLayout.ALIGNMENT;
            return place;
        }

        /** Returns the position up to which the consumer has read. */
        long consumed() {
            lookForRoom();
            return otherSeen;
        }

        /**
         * Copies a payload that stayed in place into the ring's file, and records the position in its line. The
         * consumer then stops reading the sender's memory, or discards the data. Only for frames that the consumer has
         * not read, as far as this side knows: their lines, and all earlier writes, still belong to the ring.
         */
        void move(long place, MemorySegment from, long offset, long bytes) throws IOException {
            memory.putLongRelease(place + FrameLayout.MOVED_OFFSET, memory.append(from, offset, bytes));
            VarHandle.fullFence(); // pairs with the consumer's acquire fence in readInPlace
        }

        /** Writes a piece of a payload. Only the last piece of a payload may end within a line. */
        void writePayload(MemorySegment from, long offset, long bytes) {
            long place = place();
            long first = untilEnd(place, bytes);
            memory.copyIn(place, from, offset, first);
            if (first < bytes) {
                memory.copyIn(RingLayout.DATA_OFFSET, from, offset + first, bytes - first);
            }
            position += RingLayout.align(bytes);
        }

        /** Publishes all written bytes to the consumer. */
        void publish() {
            memory.putLongRelease(RingLayout.PRODUCER_POSITION, position);
        }

        /** Returns whether the consumer cannot map device memory. */
        boolean consumerRefusesDevices() {
            return memory.getLongAcquire(RingLayout.CONSUMER_REFUSES_DEVICES) != 0;
        }

        /** Announces that no data follows, and that this process's memory must not be read any longer. */
        void abandon() {
            shutDown(RingLayout.ABANDONED);
            VarHandle.fullFence(); // pairs with the consumer's acquire fence in readInPlace
        }
    }

    /** Reads frames from a ring. Its contents are untrusted until checked. */
    static final class Consumer extends RingSide {

        /**
         * Neither a number of bytes nor an error number: a payload is in the ring's file, not in the sender's memory.
         */
        static final long MOVED = Long.MIN_VALUE;

        /** Position of the line of the last header's payload, if that stayed in place. */
        private long inPlaceAt;

        Consumer(long capacity, ShmConnection connection) {
            super(false, capacity, connection);
        }

        /** Returns the number of readable bytes: whole lines, and more than 0 if any are available. */
        long available() {
            long known = otherSeen - position;
            return known != 0 ? known : lookForMore();
        }

        private long lookForMore() {
            long produced = memory.getLongAcquire(RingLayout.PRODUCER_POSITION);
            long more = produced - position;
            if (more < 0 || more > capacity || (more & RingLayout.ALIGNMENT - 1) != 0) {
                throw connection.corrupt("the producer's position is " + produced + ", and the consumer's " + position
                        + " in a ring of " + capacity + " bytes");
            }
            otherSeen = produced;
            return more;
        }

        /**
         * Reads the next header, which stays in the ring until {@link #skipHeader}. Returns the place of its payload.
         */
        FrameLayout.Payload readHeader(FrameHeader header) {
            long place = place();
            FrameLayout.Payload payload = FrameLayout.read(memory, place, sequence, header);
            if (payload == null) {
                throw connection.corrupt("no frame's header at position " + position + ": "
                        + FrameLayout.describe(memory, place, sequence));
            }
            return payload;
        }

        /** Skips a header, and the line with its payload's place. Returns the payload's address. */
        long skipHeaderInPlace() {
            skipHeader();
            if (otherSeen == position) {
                throw connection.corrupt("a header without the address of its payload, at position " + position);
            }
            inPlaceAt = place();
            position += RingLayout.ALIGNMENT;
            return memory.getLong(inPlaceAt);
        }

        /**
         * Like {@link PeerMemory#read}, for a payload that stayed in place; {@link #MOVED} if it is in the ring's file.
         */
        long readInPlace(PeerMemory peer, long address, long bytes) {
            long read = peer.read(address, bytes);
            VarHandle.acquireFence(); // pairs with the producer's fences in move and abandon
            return isMoved() ? MOVED : read;
        }

        /** Returns whether the payload with the last read place is in the ring's file. */
        boolean isMoved() {
            return movedTo() != 0;
        }

        private long movedTo() {
            return memory.getLongAcquire(inPlaceAt + FrameLayout.MOVED_OFFSET);
        }

        /** Returns whether that payload is in the memory of a ticket. */
        boolean isOf(DeviceRegion.Ticket ticket) {
            return FrameLayout.isOf(memory, inPlaceAt, ticket);
        }

        /** Returns the ticket of that payload's device memory. */
        DeviceRegion.Ticket ticket() {
            return FrameLayout.ticket(memory, inPlaceAt);
        }

        /** Makes the producer move all payloads in device memory to the ring's file. */
        void refuseDevices() {
            memory.putLongRelease(RingLayout.CONSUMER_REFUSES_DEVICES, 1);
        }

        /** Reads a part of a payload that was moved to the ring's file. */
        void readMoved(MemorySegment to, long offset, long from, long bytes) throws IOException {
            memory.readAppended(movedTo() + from, to, offset, bytes);
        }

        void skipHeader() {
            sequence++;
            position += FrameLayout.HEADER_BYTES;
        }

        /** Reads an available piece of a payload. */
        void readPayload(MemorySegment to, long offset, long bytes) {
            long place = place();
            long first = untilEnd(place, bytes);
            memory.copyOut(place, to, offset, first);
            if (first < bytes) {
                memory.copyOut(RingLayout.DATA_OFFSET, to, offset + first, bytes - first);
            }
            position += RingLayout.align(bytes);
        }

        /** Returns the room of all read data to the producer. */
        void release() {
            release(position);
        }

        /** Returns the room of the data read up to a position to the producer. */
        void release(long end) {
            memory.putLongRelease(RingLayout.CONSUMER_POSITION, end);
        }
    }
}
