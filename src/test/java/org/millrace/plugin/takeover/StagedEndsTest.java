package org.millrace.plugin.takeover;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.millrace.net.DeviceRegion;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.HostDevice;
import org.millrace.proxy.MemoryFrames;

/**
 * Sometimes a GPU makes no copies for a while, for example behind a long kernel. Such a delay neither fails a
 * connection nor blocks the connection's thread.
 */
class StagedEndsTest {

    private boolean hasRoom;
    private int begun;
    private final DeviceRegion.Copies copies = new DeviceRegion.Copies() {
        @Override
        public boolean hasRoom() {
            return hasRoom;
        }

        @Override
        public long copy(long to, long from, long bytes) {
            assertTrue(hasRoom, "a copy was begun without room");
            return begun++;
        }

        @Override
        public boolean isDone(long number) {
            return true;
        }
    };
    private final MemorySegment memory = Arena.ofAuto().allocate(64);
    private final DeviceRegion device = new HostDevice(memory, copies);
    private final Staging staging =
            new Staging(device, MemoryFrames.region(Arena.ofAuto().allocate(memory.byteSize())));
    private final FrameHeader header = new FrameHeader();

    @Test
    void aPayloadIsOfferedAgainOnceTheDeviceHasRoom() {
        header.payloadBytes(8);
        MemoryFrames wire = new MemoryFrames(null);
        FrameSender sender = new StagedSender(wire.sender(), staging);
        assertFalse(sender.offer(header, device, 0));
        assertEquals(0, begun);
        hasRoom = true;
        assertTrue(sender.offer(header, device, 0));
        sender.progress();
        assertEquals(1, wire.offered());
    }

    @Test
    void aPayloadArrivesOnceTheDeviceHasRoom() {
        header.payloadBytes(8);
        MemoryFrames wire = new MemoryFrames(null);
        assertTrue(wire.sender().offer(header, staging.host(), 0));
        FrameReceiver receiver = new StagedReceiver(wire.receiver(), staging);
        receiver.poll();
        receiver.accept(device, 0);
        receiver.progress();
        assertEquals(0, receiver.framesCompleted());
        hasRoom = true;
        receiver.progress();
        assertEquals(1, receiver.framesCompleted());
        assertEquals(1, begun);
    }
}
