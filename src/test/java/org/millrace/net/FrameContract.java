package org.millrace.net;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.file.ProcessIdentity;

/** Requirements for the frames of every network. */
abstract class FrameContract extends NetworkFixture {

    private static final int SLOTS = 24;
    private static final int SLOT_BYTES = (3 << 20) + 64;
    /** Number of random frames. */
    private static final int FRAMES = 1_000;

    @Test
    void framesArriveInOrderWithTheirWords() {
        MemoryRegion out = memory(4096);
        MemoryRegion in = memory(4096);
        try (Connected ends = Connected.make(network, network)) {
            for (int i = 0; i < 4; i++) {
                out.segment().set(ValueLayout.JAVA_INT, i * 4, 1000 + i);
                assertTrue(ends.sender().offer(header(4, i, -i, Long.MIN_VALUE, Long.MAX_VALUE, 4, 5), out, i * 4));
            }
            for (int i = 0; i < 4; i++) {
                FrameHeader header = ends.nextHeader();
                assertEquals(4, header.payloadBytes());
                assertArrayEquals(new long[] {i, -i, Long.MIN_VALUE, Long.MAX_VALUE, 4, 5}, new long[] {header.word(0),
                        header.word(1), header.word(2), header.word(3), header.word(4), header.word(5)});
                ends.receiver().accept(in, 100 + i * 4);
            }
            ends.until(() -> ends.receiver().framesCompleted() == 4 && ends.sender().framesCompleted() == 4);
            for (int i = 0; i < 4; i++) {
                assertEquals(1000 + i, in.segment().get(ValueLayout.JAVA_INT, 100 + i * 4));
            }
            assertNull(ends.receiver().poll());
        }
    }

    @Test
    void anEmptyPayloadNeedsNoMemory() {
        try (Connected ends = Connected.make(network, network)) {
            assertTrue(ends.sender().offer(header(0, 7), null, 0));
            assertEquals(7, ends.nextHeader().word(0));
            ends.receiver().accept(null, 0);
            ends.until(() -> ends.receiver().framesCompleted() == 1 && ends.sender().framesCompleted() == 1);
        }
    }

    @Test
    void theHeaderIsCopiedWhenAFrameIsOffered() {
        try (Connected ends = Connected.make(network, network)) {
            FrameHeader header = header(0, 1);
            ends.sender().offer(header, null, 0);
            header.word(0, 2);
            assertEquals(1, ends.nextHeader().word(0));
        }
    }

    @Test
    void aHeaderIsShownUntilItIsAccepted() {
        try (Connected ends = Connected.make(network, network)) {
            ends.sender().offer(header(0, 1), null, 0);
            ends.sender().offer(header(0, 2), null, 0);
            FrameHeader first = ends.nextHeader();
            assertEquals(first, ends.nextHeader());
            assertEquals(1, ends.nextHeader().word(0));
            ends.receiver().accept(null, 0);
            assertEquals(2, ends.nextHeader().word(0));
        }
    }

    /**
     * Sends from unregistered memory. A network may map memory in ranges of 1 GiB, and the payload crosses the end of
     * such a range.
     */
    @Test
    void memoryThatNobodyRegisteredIsReachedByItsAddress(@TempDir Path directory) throws IOException {
        long piece = 1L << 30;
        long bytes = 128 << 10;
        try (MemoryRegion all = network.allMemory()) {
            assumeTrue(all != null, "this network needs to know its memory");
        }
        try (MemoryRegion all = network.allMemory();
                Connected ends = Connected.make(network, network);
                FileChannel sparse = FileChannel.open(directory.resolve("sparse"), StandardOpenOption.CREATE_NEW,
                        StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            MemorySegment memory = sparse.map(FileChannel.MapMode.READ_WRITE, 0, piece + 4 * bytes, Arena.ofAuto());
            long boundary = -memory.address() & piece - 1;
            long from = boundary < 2 * bytes ? boundary + piece - bytes / 2 : boundary - bytes / 2;
            long to = from < 2 * bytes ? from + bytes : from - bytes;
            for (long i = 0; i < bytes; i += 8) {
                memory.set(ValueLayout.JAVA_LONG_UNALIGNED, from + i, i * 31);
            }
            assertTrue(ends.sender().offer(header(bytes), all, memory.address() + from));
            ends.nextHeader();
            ends.receiver().accept(all, memory.address() + to);
            ends.until(() -> ends.receiver().framesCompleted() == 1 && ends.sender().framesCompleted() == 1);
            assertEquals(-1, memory.asSlice(from, bytes).mismatch(memory.asSlice(to, bytes)));
        }
    }

    @Test
    void acceptWithoutAHeaderIsAnError() {
        try (Connected ends = Connected.make(network, network)) {
            assertThrows(IllegalStateException.class, () -> ends.receiver().accept(null, 0));
        }
    }

    @Test
    void aDestinationOutOfRangeIsRefusedBeforeAnythingIsWritten() {
        MemoryRegion out = memory(1 << 20);
        MemoryRegion in = memory(1 << 20);
        MemorySegment untouched = in.segment();
        untouched.fill((byte) 1);
        for (int bytes : new int[] {100, 20_000, 300_000}) {
            try (Connected ends = Connected.make(network, network)) {
                ends.sender().offer(header(bytes), out, 0);
                ends.nextHeader();
                for (long offset : new long[] {-1, (1 << 20) - bytes + 1, 1 << 20, Long.MAX_VALUE, Long.MIN_VALUE}) {
                    assertThrows(IndexOutOfBoundsException.class, () -> ends.receiver().accept(in, offset),
                            "offset " + offset);
                }
                assertThrows(IllegalArgumentException.class, () -> ends.receiver().accept(null, 0));
                ends.receiver().progress();
                for (long i = 0; i < untouched.byteSize(); i++) {
                    assertEquals(1, untouched.get(ValueLayout.JAVA_BYTE, i));
                }
                // The invalid calls had no effect, so the receiver can still accept the frame with a valid destination.
                ends.receiver().accept(in, (1 << 20) - bytes);
                ends.until(() -> ends.receiver().framesCompleted() == 1);
                untouched.fill((byte) 1);
            }
        }
    }

    @Test
    void aPayloadOutOfRangeIsRefused() {
        MemoryRegion out = memory(1000);
        try (Connected ends = Connected.make(network, network)) {
            assertThrows(IndexOutOfBoundsException.class, () -> ends.sender().offer(header(1001), out, 0));
            assertThrows(IndexOutOfBoundsException.class, () -> ends.sender().offer(header(1), out, 1000));
            assertThrows(IndexOutOfBoundsException.class, () -> ends.sender().offer(header(1), out, -1));
            assertThrows(IllegalArgumentException.class, () -> ends.sender().offer(header(-1), out, 0));
            assertThrows(IllegalArgumentException.class, () -> ends.sender().offer(header(1), null, 0));
            ends.sender().offer(header(0, 5), null, 0);
            assertEquals(5, ends.nextHeader().word(0));
        }
    }

    @Test
    void aClosedRegionAndMemoryOnTheHeapAreRefused() {
        MemoryRegion out = memory(1000);
        out.close();
        out.close();
        try (Connected ends = Connected.make(network, network)) {
            assertThrows(IllegalStateException.class, () -> ends.sender().offer(header(1), out, 0));
        }
        assertThrows(IllegalArgumentException.class, () -> network.register(MemorySegment.ofArray(new byte[10])));
    }

    @Test
    void aFullConnectionRefusesFramesUntilItMoves() {
        MemoryRegion memory = memory(2 << 20);
        try (Connected ends = Connected.make(network, network)) {
            long offered = 0;
            while (ends.sender().offer(header(1 << 20, offered), memory, 0)) {
                offered++;
                ends.sender().progress();
                assertTrue(offered < 100_000, "a connection that nobody reads takes no end of frames");
            }
            for (long i = 0; i <= offered; i++) {
                assertEquals(i, ends.nextHeader().word(0));
                ends.receiver().accept(memory, 1 << 20);
                if (i == 0) {
                    long last = offered;
                    ends.until(() -> ends.sender().offer(header(1 << 20, last), memory, 0));
                }
            }
            long all = offered + 1;
            ends.until(() -> ends.receiver().framesCompleted() == all && ends.sender().framesCompleted() == all);
        }
    }

    private RandomFrames.Sending sending(Connected ends, long seed) {
        return new RandomFrames.Sending(ends.sender(), memory((long) SLOTS * SLOT_BYTES), SLOTS, seed, FRAMES);
    }

    private RandomFrames.Receiving receiving(Connected ends, long seed) {
        return new RandomFrames.Receiving(ends.receiver(), memory((long) SLOTS * SLOT_BYTES), SLOTS, seed, FRAMES);
    }

    @Test
    void randomFramesInOneThread() {
        long seed = 20_260_801;
        try (Connected ends = Connected.make(network, network)) {
            var sending = sending(ends, seed);
            var receiving = receiving(ends, seed);
            RandomFrames.exchange(sending, receiving);
        }
    }

    @Test
    void randomFramesInTwoThreads() {
        long seed = 4711;
        try (Connected ends = Connected.make(network, network)) {
            var sending = sending(ends, seed);
            var receiving = receiving(ends, seed);
            CompletableFuture<Void> sender = CompletableFuture.runAsync(() -> {
                while (!sending.step()) {
                    Thread.onSpinWait();
                }
            });
            boolean received = false;
            // After the last frame is received, further steps of the receiver send the acknowledgement.
            while (!received || !sender.isDone()) {
                received = receiving.step();
                if (sender.isCompletedExceptionally()) {
                    sender.join();
                }
                Thread.onSpinWait();
            }
            sender.join();
        }
    }

    @Test
    void oneRegionServesSeveralConnectionsInSeveralThreads() {
        MemoryRegion out = memory((long) SLOTS * SLOT_BYTES);
        try (Connected a = Connected.make(network, network); Connected b = Connected.make(network, network)) {
            // The memory is only read: both senders send the same bytes at the same time.
            MemoryRegion inA = memory(3 << 20);
            MemoryRegion inB = memory(3 << 20);
            for (long i = 0; i < out.segment().byteSize(); i += 8) {
                out.segment().set(ValueLayout.JAVA_LONG, i, i * i);
            }
            CompletableFuture<Void> other = CompletableFuture.runAsync(() -> echoCheck(a, out, inA, 5));
            echoCheck(b, out, inB, 11);
            other.join();
        }
    }

    private static void echoCheck(Connected ends, MemoryRegion out, MemoryRegion in, int seed) {
        for (int i = 0; i < 200; i++) {
            long offset = (long) i * 4096 * seed;
            long bytes = 1 + (long) i * 15_000;
            ends.sender().offer(header(bytes), out, offset);
            ends.nextHeader();
            ends.receiver().accept(in, 0);
            long done = i + 1;
            ends.until(() -> ends.receiver().framesCompleted() == done && ends.sender().framesCompleted() == done);
            assertEquals(-1, MemorySegment.mismatch(out.segment(), offset, offset + bytes, in.segment(), 0, bytes));
        }
    }

    /**
     * Returns the number of frames for {@link #manyFramesAllocateNothing}; 0 if this JVM cannot avoid allocation in the
     * network. If several subclasses test one network with different options, some of them may return fewer frames, to
     * save time.
     */
    protected int framesWithoutAllocation() {
        return 1_000_000;
    }

    /** Maximum number of bytes that the network allocates each time it checks whether the peer's process is alive. */
    private static final long LOOK_BYTES = 16 << 10;

    @Test
    @Tag("slow")
    void manyFramesAllocateNothing() {
        int frames = framesWithoutAllocation();
        assumeTrue(frames > 0, "a JVM without its optimizing compiler allocates for calls of the kernel");
        var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        MemoryRegion out = memory(256 << 10);
        MemoryRegion in = memory(256 << 10);
        try (Connected ends = Connected.make(network, network)) {
            long before;
            int rounds = 0;
            do { // uncompiled code allocates, and the machine determines how long the compilation takes
                before = threads.getCurrentThreadAllocatedBytes();
                exchange(ends, out, in, Math.min(frames, 100_000));
            } while (threads.getCurrentThreadAllocatedBytes() - before > 4 << 10 && ++rounds < 20);
            ProcessIdentity.CURRENT.isProvablyDead(); // the first check of a peer's process loads classes
            long begun = System.nanoTime();
            before = threads.getCurrentThreadAllocatedBytes();
            exchange(ends, out, in, frames);
            long allocated = threads.getCurrentThreadAllocatedBytes() - before;
            // The limit is a byte per 16 frames for the compiler and the measurement on this thread, and LOOK_BYTES per
            // half second for a check of the peer's process. One object per frame would be 16 bytes per frame.
            long looks = 1 + (System.nanoTime() - begun) / 500_000_000;
            assertTrue(allocated < frames / 16 + looks * LOOK_BYTES,
                    () -> allocated + " bytes were allocated for " + frames + " frames");
        }
    }

    /**
     * Sends frames: mostly 64 bytes, some long enough to be read in the sender's memory, and some long enough to be
     * divided into pieces.
     */
    private static void exchange(Connected ends, MemoryRegion out, MemoryRegion in, int frames) {
        FrameHeader header = new FrameHeader();
        long first = ends.receiver().framesCompleted();
        int offered = 0;
        int accepted = 0;
        while (ends.receiver().framesCompleted() - first < frames) {
            boolean refused = false;
            if (offered < frames) {
                header.payloadBytes(offered % 512 == 0 ? 200_000 : offered % 64 == 0 ? 20_000 : 64);
                refused = !ends.sender().offer(header, out, offered % 1000);
                offered += refused ? 0 : 1;
            }
            // Makes progress after a refusal, so that earlier frames are sent. Without progress, the network may refuse
            // the next frame forever.
            if (refused || (offered & 3) == 0 || offered == frames) {
                ends.sender().progress();
                ends.receiver().progress();
                while (accepted < offered && ends.receiver().poll() != null) {
                    ends.receiver().accept(in, accepted % 1000);
                    accepted++;
                }
            }
        }
    }
}
