package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.Connected;
import org.millrace.net.ConnectionException;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;
import org.millrace.net.TestOptions;

/** A sender that closes while the socket buffers are full of unread frames. */
@Timeout(value = 60, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ShutdownTest {

    private static final int BYTES = 30_000;

    @Test
    void aShutdownGetsThroughBehindAnyNumberOfFrames() {
        try (Arena arena = Arena.ofShared();
                SocketNetwork network = new SocketNetwork(TestOptions.buffers(4096, 65_536))) {
            MemoryRegion memory = network.register(arena.allocate(BYTES));
            int frames = 1;
            while (closesAfter(network, memory, frames)) {
                frames++;
            }
            assertTrue(frames > 1 && frames < 100, frames + " frames filled the buffers");
        }
    }

    /** Closes a sender after the given number of frames. Returns false if the socket buffers cannot hold so many. */
    private static boolean closesAfter(SocketNetwork network, MemoryRegion memory, int frames) {
        FrameHeader header = new FrameHeader();
        header.payloadBytes(BYTES);
        try (Connected ends = Connected.make(network, network)) {
            for (int i = 0; i < frames; i++) {
                assertTrue(ends.sender().offer(header, memory, 0));
                ends.sender().progress();
                if (ends.sender().framesCompleted() <= i) {
                    return false;
                }
            }
            ends.sender().close();
            for (int i = 0; i < frames; i++) {
                while (ends.receiver().poll() == null) {
                    Thread.onSpinWait();
                }
                ends.receiver().accept(memory, 0);
                while (ends.receiver().framesCompleted() <= i) {
                    ends.receiver().progress();
                }
            }
            ConnectionException end = Connected.failureOf(() -> assertEquals(null, ends.receiver().poll()));
            assertInstanceOf(PeerClosedException.class, end, () -> "after " + frames + " frames: " + end.getMessage());
            return true;
        }
    }
}
