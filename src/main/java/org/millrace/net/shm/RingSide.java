package org.millrace.net.shm;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;
import org.millrace.net.DeviceRegion;
import org.millrace.net.FrameHeader;
import org.millrace.net.connection.LostPeerName;

/** One side of a ring, with its position and the last known position of the other side. Used by one thread. */
abstract sealed class RingSide {

    final RingMemory memory;
    final long capacity;
    final ShmConnection connection;
    private final boolean produces;
    /**
     * Position of the next byte to write or read. The producer stores the position in the ring to publish the bytes
     * before it. The consumer stores its position to release the bytes before it.
     */
    long position;
    /**
     * Last known position of the other side. This side reads the position from the ring again only if the last known
     * position is not sufficient.
     */
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

    /**
     * Stores a state, so that the other side learns that this side stops. If the reason is the loss of a peer, first
     * stores the lost peer's name.
     */
    final void shutDown(long state) {
        int lostPeer = produces ? RingLayout.PRODUCER_LOST_PEER : RingLayout.CONSUMER_LOST_PEER;
        LostPeerName.write(connection.blamed(), (i, word) -> memory.putLong(lostPeer + i * Long.BYTES, word));
        memory.putLongRelease(produces ? RingLayout.PRODUCER_STATE : RingLayout.CONSUMER_STATE, state);
    }

    final long otherState() {
        return memory.getLongAcquire(produces ? RingLayout.CONSUMER_STATE : RingLayout.PRODUCER_STATE);
    }

    /**
     * Returns the name of the peer that the other side has lost; null if the other side's shutdown had another reason.
     */
    final @Nullable String otherLostPeer() {
        int lostPeer = produces ? RingLayout.CONSUMER_LOST_PEER : RingLayout.PRODUCER_LOST_PEER;
        return LostPeerName.read(i -> memory.getLong(lostPeer + i * Long.BYTES));
    }

    final long place() {
        return RingLayout.DATA_OFFSET + (position & capacity - 1);
    }

    /**
     * Returns how many of the given bytes fit between an offset in the file and the end of the ring's data. The
     * remaining bytes are at the beginning of the ring's data.
     */
    final long untilEnd(long place, long bytes) {
        return Math.min(bytes, RingLayout.DATA_OFFSET + capacity - place);
    }

    /** The side that writes frames to a ring. */
    static final class Producer extends RingSide {

        /** Position after the newest frame whose payload was moved. */
        private long movedUntil;

        Producer(long capacity, ShmConnection connection) {
            super(true, capacity, connection);
            movedUntil = position;
        }

        /** Returns whether a number of bytes is free in the ring. All earlier writes must already be published. */
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
         * Writes a header and a location line. The payload stays in the memory of this process or in the memory of its
         * device.
         *
         * @param address address of the payload in this process's memory, or offset of the payload in the device memory
         * @param ticket  ticket of the device memory; null for memory of this process
         * @return offset of the location line in the file, for {@link #move}
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

        /** Returns the consumer's position: the position after the bytes that the consumer has released. */
        long consumed() {
            lookForRoom();
            return otherSeen;
        }

        /**
         * Copies a payload from the sender's memory to the ring's file. Writes the offset of the copy to the frame's
         * location line. The consumer then stops reading the sender's memory, or discards the data that it has read.
         * The caller has checked that the last known position of the consumer is before the end of the frame. The
         * location line therefore still belongs to the frame.
         *
         * @param place offset of the location line in the file
         * @param end   position after the frame
         */
        void move(long place, long end, MemorySegment from, long offset, long bytes) throws IOException {
            if (consumed() - movedUntil >= 0) {
                memory.reuseAppended();
            }
            movedUntil = end;
            memory.putLongRelease(place + FrameLayout.MOVED_OFFSET, memory.append(from, offset, bytes));
            VarHandle.fullFence(); // this fence pairs with the consumer's acquire fence in readInPlace
        }

        /** Writes a piece of a payload. Only the last piece of a payload may end in the middle of a line. */
        void writePayload(MemorySegment from, long offset, long bytes) {
            long place = place();
            long first = untilEnd(place, bytes);
            memory.copyIn(place, from, offset, first);
            if (first < bytes) {
                memory.copyIn(RingLayout.DATA_OFFSET, from, offset + first, bytes - first);
            }
            position += RingLayout.align(bytes);
        }

        /** Publishes to the consumer all bytes that were written. */
        void publish() {
            memory.putLongRelease(RingLayout.PRODUCER_POSITION, position);
        }

        boolean consumerRefusesDevices() {
            return memory.getLongAcquire(RingLayout.CONSUMER_REFUSES_DEVICES) != 0;
        }

        /** Announces that no data follows, and that the consumer must no longer read this process's memory. */
        void abandon() {
            shutDown(RingLayout.ABANDONED);
            VarHandle.fullFence(); // this fence pairs with the consumer's acquire fence in readInPlace
        }
    }

    /** The side that reads frames from a ring. The ring's contents are not trusted until they are checked. */
    static final class Consumer extends RingSide {

        /**
         * Result of {@link #readInPlace} if the payload was moved to the ring's file. The value is different from every
         * number of bytes and every error number.
         */
        static final long MOVED = Long.MIN_VALUE;

        /** Offset in the file of the location line that was read last. */
        private long inPlaceAt;

        Consumer(long capacity, ShmConnection connection) {
            super(false, capacity, connection);
        }

        /**
         * Returns a number of bytes that can be read, a multiple of the line length. The actual number of readable
         * bytes may be larger. The result is 0 only if no byte is readable.
         */
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
         * Reads the next header, which stays in the ring until {@link #skipHeader}. Returns the location of the
         * payload.
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

        /** Skips a header and its location line. Returns the payload's address, or its offset in device memory. */
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
         * Reads a payload in the sender's memory. Returns the result of {@link PeerMemory#read}, or {@link #MOVED} if
         * the payload was moved to the ring's file.
         */
        long readInPlace(PeerMemory peer, long address, long bytes) {
            long read = peer.read(address, bytes);
            VarHandle.acquireFence(); // this fence pairs with the producer's full fences in move and abandon
            return isMoved() ? MOVED : read;
        }

        /** Returns whether the payload was moved to the ring's file, for the location line that was read last. */
        boolean isMoved() {
            return movedTo() != 0;
        }

        private long movedTo() {
            return memory.getLongAcquire(inPlaceAt + FrameLayout.MOVED_OFFSET);
        }

        /**
         * Returns whether the location line that was read last refers to the device memory of the given ticket.
         */
        boolean isOf(DeviceRegion.Ticket ticket) {
            return FrameLayout.isOf(memory, inPlaceAt, ticket);
        }

        /** Returns the ticket in the location line that was read last. The ticket describes device memory. */
        DeviceRegion.Ticket ticket() {
            return FrameLayout.ticket(memory, inPlaceAt);
        }

        /**
         * Reports to the producer that payloads cannot stay in device memory. The producer then moves them to the file.
         */
        void refuseDevices() {
            memory.putLongRelease(RingLayout.CONSUMER_REFUSES_DEVICES, 1);
        }

        /**
         * Reads a part of a payload that was moved to the ring's file.
         *
         * @param from offset of the part in the payload
         */
        void readMoved(MemorySegment to, long offset, long from, long bytes) throws IOException {
            memory.readAppended(movedTo() + from, to, offset, bytes);
        }

        void skipHeader() {
            sequence++;
            position += FrameLayout.HEADER_BYTES;
        }

        /** Reads a piece of a payload from the ring. The bytes must be available. */
        void readPayload(MemorySegment to, long offset, long bytes) {
            long place = place();
            long first = untilEnd(place, bytes);
            memory.copyOut(place, to, offset, first);
            if (first < bytes) {
                memory.copyOut(RingLayout.DATA_OFFSET, to, offset + first, bytes - first);
            }
            position += RingLayout.align(bytes);
        }

        /** Releases all data that was read, so that the producer can overwrite it. */
        void release() {
            release(position);
        }

        /** Releases the data that was read, up to a position, so that the producer can overwrite the data. */
        void release(long end) {
            memory.putLongRelease(RingLayout.CONSUMER_POSITION, end);
        }
    }
}
