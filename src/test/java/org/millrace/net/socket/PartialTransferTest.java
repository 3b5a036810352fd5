package org.millrace.net.socket;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.net.Connected;
import org.millrace.net.FrameHeader;
import org.millrace.net.MemoryRegion;
import org.millrace.net.RandomFrames;
import org.millrace.net.TestOptions;

/** Socket buffers so small that Linux cuts headers and payloads at any byte. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class PartialTransferTest {

    private static final int SLOTS = 4;

    /**
     * Linux waits for acknowledgements if a socket's buffers are smaller than the packets of the interface (64 KiB over
     * loopback). The cases with the smallest buffers are therefore slow, and send only few frames.
     */
    @ParameterizedTest
    @CsvSource({"1, 4096, 4096, 60, 1", "3, 4096, 4096, 60, 2", "1, 4096, 0, 60, 3", "1, 0, 4096, 60, 4",
            "2, 50000, 30000, 200, 5", "1, 200000, 100000, 1000, 6", "4, 200000, 100000, 1000, 7"})
    void framesArriveWhole(int streams, int sendBuffer, int receiveBuffer, int frames, long seed) {
        try (Arena arena = Arena.ofShared();
                SocketNetwork network =
                        new SocketNetwork(TestOptions.buffers(sendBuffer, receiveBuffer).withStreams(streams, 30_000));
                Connected ends = Connected.make(network, network)) {
            var sending = new RandomFrames.Sending(ends.sender(), network.register(arena.allocate(SLOTS * 150_000L)),
                    SLOTS, seed, frames);
            var receiving = new RandomFrames.Receiving(ends.receiver(),
                    network.register(arena.allocate(SLOTS * 150_000L)), SLOTS, seed, frames);
            RandomFrames.exchange(sending, receiving);
        }
    }

    /**
     * A thread that polls memory for a received number sees the whole new number or the whole old number. Much data is
     * in flight, so each read ends where its buffer ends. Frames of many lengths let a buffer's end fall within a
     * number.
     */
    @ParameterizedTest
    @ValueSource(ints = {Integer.BYTES, Long.BYTES})
    void aNumberArrivesAtOnce(int bytes) {
        int slots = 1024;
        int slotBytes = 256;
        int frames = 100 * slots;
        try (Arena arena = Arena.ofShared();
                SocketNetwork network = new SocketNetwork(TestOptions.frames(slots).withStreams(1, 30_000));
                Connected ends = Connected.make(network, network)) {
            MemoryRegion source = network.register(arena.allocate(slotBytes).fill((byte) -1));
            MemorySegment to = arena.allocate((long) slots * slotBytes, Long.BYTES);
            MemoryRegion destination = network.register(to);
            FrameHeader header = new FrameHeader();
            for (int accepted = 0, offered = 0; ends.receiver().framesCompleted() < frames;) {
                for (; offered < Math.min(frames, ends.sender().framesCompleted() + slots); offered++) {
                    header.payloadBytes(offered % 2 == 0 ? bytes : 1 + offered * 31L % slotBytes);
                    if (!ends.sender().offer(header, source, 0)) {
                        break;
                    }
                }
                ends.sender().progress();
                for (; accepted < ends.receiver().framesCompleted() + slots
                        && ends.receiver().poll() != null; accepted++) {
                    long at = (long) (accepted % slots) * slotBytes;
                    assertEquals(accepted < slots ? 0 : -1, to.get(ValueLayout.JAVA_BYTE, at));
                    to.set(ValueLayout.JAVA_LONG, at, 0);
                    ends.receiver().accept(destination, at);
                    checkWhole(to, at, bytes, accepted);
                }
                ends.receiver().progress();
                for (int frame = Math.max(0, accepted - 2); frame < accepted; frame++) {
                    checkWhole(to, (long) (frame % slots) * slotBytes, bytes, frame);
                }
            }
        }
    }

    private static void checkWhole(MemorySegment memory, long at, int bytes, int frame) {
        long number =
                bytes == Long.BYTES ? memory.get(ValueLayout.JAVA_LONG, at) : memory.get(ValueLayout.JAVA_INT, at);
        assertTrue(frame % 2 != 0 || number == 0 || number == -1,
                () -> "frame " + frame + " in part: " + Long.toHexString(number));
    }
}
