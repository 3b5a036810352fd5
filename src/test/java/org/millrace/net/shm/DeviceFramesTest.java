package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.MillraceException;
import org.millrace.net.Connected;
import org.millrace.net.FrameHeader;
import org.millrace.net.HostDevice;

/**
 * A device that completes no copies, for example during a long kernel, delays only its own connection. No thread waits.
 */
@Timeout(60)
class DeviceFramesTest {

    private static final int BYTES = 64;
    private static final int FRAMES = 3;

    /**
     * Host memory that imitates device memory. A copy begins if the queue has room. It completes unless a kernel blocks
     * the device.
     */
    private static final class PlayedDevice extends HostDevice {
        private boolean hasRoom = true;
        private boolean blocked;
        private boolean mappable = true;
        private long begun;

        PlayedDevice(Arena arena) {
            super(arena.allocate((long) FRAMES * BYTES, 64), null);
        }

        @Override
        public Ticket ticket() {
            return new Ticket(0, address() + bytes(), address());
        }

        @Override
        public long map(long process, Ticket ticket) {
            if (!mappable) {
                throw new MillraceException("not mapped by the test");
            }
            return ticket.offset();
        }

        @Override
        public Copies copies() {
            return new Copies() {
                @Override
                public boolean hasRoom() {
                    return hasRoom;
                }

                @Override
                @SuppressWarnings("restricted")
                public long copy(long to, long from, long bytes) {
                    assertTrue(hasRoom, "a copy was begun without room");
                    MemorySegment.ofAddress(to)
                            .reinterpret(bytes)
                            .copyFrom(MemorySegment.ofAddress(from).reinterpret(bytes));
                    return begun++;
                }

                @Override
                public boolean isDone(long number) {
                    return !blocked;
                }
            };
        }
    }

    private static void offerAll(Connected ends, PlayedDevice out) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(BYTES);
        for (int i = 0; i < FRAMES; i++) {
            out.segment().set(ValueLayout.JAVA_INT, (long) i * BYTES, 100 + i);
            assertTrue(ends.sender().offer(header, out, (long) i * BYTES));
        }
    }

    private static void assertArrived(Connected ends, PlayedDevice in) {
        ends.until(() -> ends.receiver().framesCompleted() == FRAMES && ends.sender().framesCompleted() == FRAMES);
        for (int i = 0; i < FRAMES; i++) {
            assertEquals(100 + i, in.segment().get(ValueLayout.JAVA_INT, (long) i * BYTES));
        }
    }

    @Test
    void framesWaitForRoomWithoutHoldingUpTheirThread() {
        try (ShmNetwork network = new ShmNetwork(ShmOptions.defaults());
                Arena arena = Arena.ofShared();
                Connected ends = Connected.make(network, network)) {
            PlayedDevice out = new PlayedDevice(arena);
            PlayedDevice in = new PlayedDevice(arena);
            in.hasRoom = false;
            offerAll(ends, out);
            for (int i = 0; i < FRAMES; i++) {
                ends.nextHeader();
                ends.receiver().accept(in, (long) i * BYTES);
            }
            assertEquals(0, ends.receiver().progress());
            assertEquals(0, in.begun, "no copy has begun");
            in.hasRoom = true;
            assertArrived(ends, in);
        }
    }

    @Test
    void payloadsThatTheHostCarriesWaitForBothDevicesWithoutHoldingUpTheirThreads() {
        try (ShmNetwork network = new ShmNetwork(ShmOptions.defaults());
                Arena arena = Arena.ofShared();
                Connected ends = Connected.make(network, network)) {
            PlayedDevice out = new PlayedDevice(arena);
            PlayedDevice in = new PlayedDevice(arena);
            in.mappable = false;
            out.hasRoom = false;
            in.blocked = true;
            offerAll(ends, out);
            ends.nextHeader();
            ends.receiver().accept(in, 0);
            ends.sender().progress();
            assertEquals(0, out.begun, "the sender's device has no room");
            out.hasRoom = true;
            out.blocked = true;
            ends.sender().progress();
            assertEquals(1, out.begun);
            assertEquals(0, ends.receiver().progress(), "the sender's device still copies");
            out.blocked = false;
            ends.sender().progress();
            ends.receiver().progress();
            assertEquals(1, in.begun);
            assertEquals(0, ends.receiver().framesCompleted(), "the receiver's device still copies");
            in.blocked = false;
            for (int i = 1; i < FRAMES; i++) {
                ends.nextHeader();
                ends.receiver().accept(in, (long) i * BYTES);
            }
            assertArrived(ends, in);
        }
    }
}
