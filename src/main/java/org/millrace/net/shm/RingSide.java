package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;
import org.millrace.net.DeviceRegion;
import org.millrace.net.FrameHeader;
import org.millrace.net.connection.LastWords;

/** One side of a ring: how far it has come, and what it last saw of the other. One thread. */
abstract sealed class RingSide {

    final RingMemory memory;
    final long capacity;
    final ShmConnection connection;
    private final boolean produces;
    /** Of the next byte to write or to read; the other side knows of it when it is published or released. */
    long position;
    /** The other side's position when last looked at: it is looked at again only when this does not suffice. */
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

    /** Tells the other side that nothing will follow, and which process this one has lost, if it ends for that. */
    final void shutDown(long state) {
        int lostPeer = produces ? RingLayout.PRODUCER_LOST_PEER : RingLayout.CONSUMER_LOST_PEER;
        LastWords.write(connection.blamed(), (i, word) -> memory.putLong(lostPeer + i * Long.BYTES, word));
        memory.putLongRelease(produces ? RingLayout.PRODUCER_STATE : RingLayout.CONSUMER_STATE, state);
    }

    /** The state of the other side. */
    final long otherState() {
        return memory.getLongAcquire(produces ? RingLayout.CONSUMER_STATE : RingLayout.PRODUCER_STATE);
    }

    /** The process that the other side has lost, if that has shut down for it. */
    final @Nullable String otherLostPeer() {
        int lostPeer = produces ? RingLayout.CONSUMER_LOST_PEER : RingLayout.PRODUCER_LOST_PEER;
        return LastWords.read(i -> memory.getLong(lostPeer + i * Long.BYTES));
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

        Producer(long capacity, ShmConnection connection) {
            super(true, capacity, connection);
        }

        /** Whether so many bytes may be written. All that was written must be published. */
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
         * Writes a header, and where its payload is.
         *
         * @param ticket of the device's memory where it is, from whose beginning the address counts; null if it is in
         *               this process's own
         * @return the place of that, for {@link #move}
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

        /** How far the consumer has read. */
        long consumed() {
            lookForRoom();
            return otherSeen;
        }

        /**
         * Copies a payload that was left in place into the ring's file, and says so at its place: the consumer reads
         * the sender's memory no more, or does not use what it read. Only for frames that the consumer has not read, as
         * far as this side knows: the place is the ring's still, as all that was written before it is.
         */
        void move(long place, MemorySegment from, long offset, long bytes) throws IOException {
            memory.putLongRelease(place + FrameLayout.MOVED_OFFSET, memory.append(from, offset, bytes));
            VarHandle.fullFence(); // pairs with the consumer's acquire fence in readInPlace
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
            memory.putLongRelease(RingLayout.PRODUCER_POSITION, position);
        }

        /** Whether the consumer cannot map memory of devices. */
        boolean consumerRefusesDevices() {
            return memory.getLongAcquire(RingLayout.CONSUMER_REFUSES_DEVICES) != 0;
        }

        /** Tells the consumer that nothing will follow, and that this process's memory must not be read any more. */
        void abandon() {
            shutDown(RingLayout.ABANDONED);
            VarHandle.fullFence(); // pairs with the consumer's acquire fence in readInPlace
        }
    }

    /** Reads frames from a ring, whose contents it does not believe before it has checked them. */
    static final class Consumer extends RingSide {

        /** No number of bytes, and no error number: a payload is in the ring's file, not in the sender's memory. */
        static final long MOVED = Long.MIN_VALUE;

        /** Where the payload of the header that was read last is, if it was left in place. */
        private long inPlaceAt;

        Consumer(long capacity, ShmConnection connection) {
            super(false, capacity, connection);
        }

        /** How many bytes can be read: whole lines, and more than 0 if there are any. */
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

        /** Reads the next header, which stays in the ring until {@link #skipHeader}; returns where its payload is. */
        FrameLayout.Payload readHeader(FrameHeader header) {
            long place = place();
            FrameLayout.Payload payload = FrameLayout.read(memory, place, sequence, header);
            if (payload == null) {
                throw connection.corrupt("no frame's header at position " + position + ": "
                        + FrameLayout.describe(memory, place, sequence));
            }
            return payload;
        }

        /** Goes past a header, and the line that says where its payload is; returns the payload's address. */
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
         * As {@link PeerMemory#read}, of a payload that was left in place; {@link #MOVED} if it is in the ring's file.
         */
        long readInPlace(PeerMemory peer, long address, long bytes) {
            long read = peer.read(address, bytes);
            VarHandle.acquireFence(); // pairs with the producer's fences in move and abandon
            return isMoved() ? MOVED : read;
        }

        /** Whether the payload whose place was read last is in the ring's file. */
        boolean isMoved() {
            return movedTo() != 0;
        }

        private long movedTo() {
            return memory.getLongAcquire(inPlaceAt + FrameLayout.MOVED_OFFSET);
        }

        /** Whether that payload is in the memory of a ticket. */
        boolean isOf(DeviceRegion.Ticket ticket) {
            return FrameLayout.isOf(memory, inPlaceAt, ticket);
        }

        /** The ticket of the device's memory where that payload is. */
        DeviceRegion.Ticket ticket() {
            return FrameLayout.ticket(memory, inPlaceAt);
        }

        /** Has the producer move all payloads that are in memory of its device to the ring's file. */
        void refuseDevices() {
            memory.putLongRelease(RingLayout.CONSUMER_REFUSES_DEVICES, 1);
        }

        /** Reads some of a payload that was moved to the ring's file. */
        void readMoved(MemorySegment to, long offset, long from, long bytes) throws IOException {
            memory.readAppended(movedTo() + from, to, offset, bytes);
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

        /** Gives the producer the room of all that was read. */
        void release() {
            release(position);
        }

        /** Gives the producer the room of what was read up to a position. */
        void release(long end) {
            memory.putLongRelease(RingLayout.CONSUMER_POSITION, end);
        }
    }
}
