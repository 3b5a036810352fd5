package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.millrace.abi.Protocol;
import org.millrace.abi.kernel.PointToPointWork;

/** In protocol Simple, a chunk of a transfer has the communicator's chunk size. In LL, a chunk fills a slot. */
class SendReceiveTest {

    private static final int TRANSFER_CHUNK = 100;

    private static List<ChannelTask> tasks(Arena arena, int sendRank, int flags) {
        PointToPointWork work = PointToPointWork.of(MemorySegment.ofArray(new long[PointToPointWork.BYTES / 8]));
        work.set(1, flags);
        work.send(sendRank, 0, 5000, 1);
        work.receive(sendRank == 0 ? 0 : 1, 0, 250, 1);
        DeviceCommunicator device =
                new DeviceCommunicator(arena, 0, new int[3], Pump.LAYOUT, TRANSFER_CHUNK, 1, 1024, 0);
        return new SendReceive().tasks(0, work.segment(), device, device.channel(0));
    }

    @Test
    void bothHalvesHaveTheirPeerAndChunks() {
        try (Arena arena = Arena.ofConfined()) {
            List<ChannelTask> tasks = tasks(arena, 2, PointToPointWork.SEND_LL);
            long llChunk = ChunkShape.ONE_STEP.in(Protocol.LL).chunkBytes(Pump.LAYOUT);
            assertArrayEquals(new int[] {2}, tasks.getFirst().to());
            assertEquals(Protocol.LL, tasks.getFirst().shape().protocol());
            assertEquals((5000 + llChunk - 1) / llChunk, tasks.getFirst().schedule().chunksSent());
            assertArrayEquals(new int[] {1}, tasks.getLast().from());
            assertEquals(Protocol.SIMPLE, tasks.getLast().shape().protocol());
            assertEquals(3, tasks.getLast().schedule().chunksReceived());
        }
    }

    @Test
    void aRankNeedsNoConnectionWithItself() {
        try (Arena arena = Arena.ofConfined()) {
            assertEquals(List.of(), tasks(arena, 0, 0));
        }
    }
}
