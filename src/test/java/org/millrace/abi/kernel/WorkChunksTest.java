package org.millrace.abi.kernel;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.abi.Protocol;
import org.millrace.ffi.device.ncclDevWorkColl;

/** Chunk sizes in work items, in NCCL's packed format. */
class WorkChunksTest {

    /** Expected values, computed by hand from the source of {@code u32fp8Encode} in NCCL's {@code bitops.h}. */
    @ParameterizedTest
    @CsvSource({"0, 0, 0", "7, 7, 7", "8, 8, 8", "9, 9, 9", "15, 15, 15", "16, 16, 16", "17, 16, 16", "18, 17, 18",
            "131072, 120, 131072", "1024000, 143, 983040", "4026531840, 239, 4026531840"})
    void aTransfersChunkHasEightBits(long bytes, int code, long said) {
        assertEquals(code, PointToPointWork.encode(bytes));
        assertEquals(said, PointToPointWork.decode(code));
    }

    @Test
    void nothingIsRoundedUpOrByMoreThanAnEighth() {
        Random random = new Random(1);
        PointToPointWork work = PointToPointWork.of(MemorySegment.ofArray(new long[PointToPointWork.BYTES / 8]));
        for (int i = 0; i < 10_000; i++) {
            long send = random.nextLong(1L << random.nextInt(32));
            long receive = random.nextLong(1L << random.nextInt(32));
            work.chunks(send, receive);
            assertTrue(work.sendChunkBytes() <= send && work.sendChunkBytes() >= send - send / 8, "" + send);
            assertTrue(work.receiveChunkBytes() <= receive && work.receiveChunkBytes() >= receive - receive / 8);
        }
    }

    @Test
    void aCollectivesChunksAreInGrainsForThreeKindsOfChannels() {
        CollectiveWork work = CollectiveWork.of(MemorySegment.ofArray(new long[CollectiveWork.BYTES / 8]));
        assertEquals(0, work.chunkBytes(Protocol.SIMPLE, 0), "not said");
        work.spread(0, 3, 10, 20, 30);
        work.chunks(Protocol.SIMPLE, 512 * 5 + 511, 512 * 6, 512L << 20, 1);
        assertEquals(512 * 5, work.chunkBytes(Protocol.SIMPLE, 0));
        assertEquals(512 * 6, work.chunkBytes(Protocol.SIMPLE, 1));
        assertEquals(512 * 6, work.chunkBytes(Protocol.SIMPLE, 2));
        assertEquals(512L << 20, work.chunkBytes(Protocol.SIMPLE, 3));
        assertEquals(1, work.warps());
        long packed = work.segment()
                .get(ValueLayout.JAVA_LONG_UNALIGNED,
                        ncclDevWorkColl.layout().byteOffset(groupElement("schedule")) + 3 * Long.BYTES);
        assertEquals(5L | 6L << 21 | 1L << 20 + 42, packed);
        work.chunks(Protocol.LL128, 1919, 1920 * 3, 1920 * 4, 1);
        assertEquals(0, work.chunkBytes(Protocol.LL128, 0), "less than a grain");
        assertEquals(1920 * 3, work.chunkBytes(Protocol.LL128, 1));
        assertEquals(10, work.countLow(), "what stands beside it is as it was");
    }
}
