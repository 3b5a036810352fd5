package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;
import org.millrace.proxy.spi.ConnectionName;

/** A peer that has sent everything may close at once. Its frames are still received. */
class PeerGoneTest {

    private static final ConnectionLayout LAYOUT = new ConnectionLayout(8 * 256, 8 * 2048, 8 * 1024);
    private static final int FRAMES = 3;

    /**
     * Frames without payload, which are complete when they are accepted. The peer's shutdown message follows them
     * directly.
     */
    private static final class LastFrames implements FrameReceiver {
        private final FrameHeader header = new FrameHeader();
        private int accepted;

        @Override
        public FrameHeader poll() {
            if (accepted == FRAMES) {
                throw new PeerClosedException("closed by the peer after " + accepted + " frames");
            }
            StepHeader.step(header, accepted, accepted + 1, Protocol.SIMPLE.id());
            return header;
        }

        @Override
        public void accept(MemoryRegion region, long offset) {
            accepted++;
        }

        @Override
        public int progress() {
            return 0;
        }

        @Override
        public long framesCompleted() {
            return accepted;
        }

        @Override
        public void close() {
            // This test double holds no resources.
        }
    }

    @Test
    void framesThatArriveTogetherWithTheShutdownReachTheDevice() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(LAYOUT.totalBytes(), 4096);
            MemorySegment staging = arena.allocate(LAYOUT.bufferOffset(Protocol.SIMPLE), 128);
            ReceiveProxy proxy = ReceiveProxy.byMemory(ConnectionName.ofRing(1, 0, 0, false),
                    SlotBuffers.inOne(LAYOUT, MemoryFrames.region(memory)), MemoryFrames.region(staging), 0,
                    new LastFrames(), (c, f) -> {});
            assertThrows(PeerClosedException.class, () -> {
                for (int pass = 0; pass < 10; pass++) {
                    proxy.progress();
                }
            });
            assertEquals(FRAMES, LAYOUT.recvMem(memory).tailAcquire());
        }
    }

    /** A sender whose peer acknowledges one frame and closes directly afterwards. */
    private static final class LastAcknowledgement implements FrameSender {
        private int completed;

        @Override
        public boolean offer(FrameHeader header, MemoryRegion region, long offset) {
            return true;
        }

        @Override
        public int progress() {
            completed++;
            throw new PeerClosedException("closed by the peer after 1 of 1 frames were acknowledged");
        }

        @Override
        public long framesCompleted() {
            return completed;
        }

        @Override
        public void close() {
            // This test double holds no resources.
        }

        @Override
        public void abort() {
            // This test double holds no resources.
        }
    }

    @Test
    void aFrameThatIsAcknowledgedTogetherWithTheShutdownIsNotOwed() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(LAYOUT.totalBytes(), 4096);
            RecvMem device = LAYOUT.recvMem(memory);
            for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
                device.sizeRelease(slot, RecvMem.EMPTY);
            }
            SendProxy proxy = SendProxy.byMemory(ConnectionName.ofRing(0, 1, 0, true),
                    SlotBuffers.inOne(LAYOUT, MemoryFrames.region(memory)), 0, new LastAcknowledgement(), (c, f) -> {});
            device.sizeRelease(0, 64);
            device.tailRelease(1);
            proxy.progress();
            assertFalse(proxy.owesData());
            assertEquals(1, LAYOUT.sendMem(memory).headAcquire());
        }
    }

    /** Sender whose peer accepts one frame. The peer then closes the connection with a shutdown message. */
    private static final class LeavingPeer implements FrameSender {
        private boolean left;

        @Override
        public boolean offer(FrameHeader header, MemoryRegion region, long offset) {
            assertFalse(left, "the end of a connection that is closed is not used");
            return true;
        }

        @Override
        public int progress() {
            assertFalse(left, "the end of a connection that is closed is not used");
            left = true;
            throw new PeerClosedException("closed by the peer after 0 whole frames were sent");
        }

        @Override
        public long framesCompleted() {
            return 0;
        }

        @Override
        public void close() {
            // This test double holds no resources.
        }

        @Override
        public void abort() {
            // This test double holds no resources.
        }
    }

    private static SendProxy toLeavingPeer(MemorySegment memory) {
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            LAYOUT.recvMem(memory).sizeRelease(slot, RecvMem.EMPTY);
        }
        return SendProxy.byMemory(ConnectionName.ofRing(0, 1, 0, true),
                SlotBuffers.inOne(LAYOUT, MemoryFrames.region(memory)), 0, new LeavingPeer(), (c, f) -> {});
    }

    /**
     * A device waits for the credits of its last steps, which have no data. The device receives the credits although
     * the peer closed before the steps were sent.
     */
    @Test
    void creditsOfStepsWithoutDataReturnAfterThePeerLeft() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(LAYOUT.totalBytes(), 4096);
            RecvMem device = LAYOUT.recvMem(memory);
            SendProxy proxy = toLeavingPeer(memory);
            device.sizeRelease(0, 0);
            proxy.progress();
            assertEquals(1, LAYOUT.sendMem(memory).headAcquire(), "the frame was on its way when the peer left");
            device.sizeRelease(1, 0);
            device.sizeRelease(2, 0);
            proxy.progress();
            assertEquals(3, LAYOUT.sendMem(memory).headAcquire(), "the steps were posted after the peer left");
            assertEquals(RecvMem.EMPTY, device.sizeAcquire(2));
            assertTrue(proxy.drained());
        }
    }

    @Test
    void dataThatIsPostedAfterThePeerLeftFailsTheConnection() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(LAYOUT.totalBytes(), 4096);
            RecvMem device = LAYOUT.recvMem(memory);
            SendProxy proxy = toLeavingPeer(memory);
            proxy.progress();
            device.sizeRelease(0, 64);
            device.tailRelease(1);
            assertThrows(PeerClosedException.class, proxy::progress);
            assertTrue(proxy.owesData());
            assertEquals(0, LAYOUT.sendMem(memory).headAcquire());
        }
    }

    /**
     * A receiving kernel reads no flag and no counter for an LL step without data. The kernel and its communicator may
     * therefore end before the proxy has sent that step.
     */
    @Test
    void onlyDataIsOwedToAPeerThatLeft() {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment memory = arena.allocate(LAYOUT.totalBytes(), 4096);
            RecvMem device = LAYOUT.recvMem(memory);
            for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
                device.sizeRelease(slot, RecvMem.EMPTY);
            }
            SendProxy proxy = SendProxy.byMemory(ConnectionName.ofRing(0, 1, 0, true),
                    SlotBuffers.inOne(LAYOUT, MemoryFrames.region(memory)), 0, new MemoryFrames(null).sender(),
                    (c, f) -> {});
            assertFalse(proxy.owesData());
            device.sizeRelease(0, 0);
            assertFalse(proxy.drained(), "the step was posted");
            assertFalse(proxy.owesData(), "nobody waits for it");
            device.sizeRelease(1, 64);
            assertTrue(proxy.owesData(), "64 bytes were posted");
        }
    }
}
