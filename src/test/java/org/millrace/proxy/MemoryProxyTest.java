package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.KernelLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyException;
import org.millrace.proxy.spi.Steps;

/**
 * Proxies that know only the memory of a connection, and not its operations. Both ends behave as NCCL's kernels do. On
 * one connection, the tests run operations of all three protocols. The operations include empty steps, rounded first
 * steps, sizes before data, and lines in any order.
 */
@ParameterizedClass
@EnumSource(value = KernelLayout.class, names = {"V31", "RCCL"})
class MemoryProxyTest {

    private static final int LL128_SLOT_BYTES = 2048;

    private final KernelLayout kernel;
    private final LL128Line line;
    private final int lineWords;
    private final ConnectionLayout layout;

    MemoryProxyTest(KernelLayout kernel) {
        this.kernel = kernel;
        line = kernel.ll128Line();
        lineWords = (int) (line.dataBytes() / Long.BYTES);
        layout = new ConnectionLayout(8 * 256, 8 * LL128_SLOT_BYTES, 8 * 1024, line);
    }

    /** One posted part of an operation: a step, or a Simple slice of two steps. */
    private record Piece(long step, int steps, Protocol protocol, long bytes, long seed) {
    }

    /** The memory of one end. */
    private final class End {
        final MemorySegment memory;
        final SendMem sendMem;
        final RecvMem recvMem;

        End(Arena arena, long firstStep) {
            memory = arena.allocate(layout.totalBytes(), 4096);
            // The bytes are not zero, because zeros are the flag of step -1. These bytes are the flag of a much earlier
            // step.
            memory.asSlice(0, layout.bufferOffset(Protocol.SIMPLE)).fill((byte) 0x5a);
            sendMem = layout.sendMem(memory);
            recvMem = RecvMem.of(memory.asSlice(layout.recvMemOffset(), RecvMem.BYTES), kernel);
            sendMem.headRelease(firstStep);
            recvMem.tailRelease(firstStep);
            for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
                recvMem.sizePlain(slot, RecvMem.EMPTY);
            }
        }

        SlotBuffers buffers() {
            MemoryRegion region = MemoryFrames.region(memory);
            return new SlotBuffers(layout, sendMem, recvMem, region, region, region);
        }
    }

    /** The actions of a sending kernel, in stages between which the proxy may run. */
    private final class SendingKernel {
        final End end;
        final Random random;
        final List<Piece> program;
        int next;
        int stage;
        List<Integer> linesLeft = List.of();

        SendingKernel(End end, List<Piece> program, Random random) {
            this.end = end;
            this.program = program;
            this.random = random;
        }

        boolean done() {
            return next == program.size();
        }

        void run() {
            if (done()) {
                return;
            }
            Piece piece = program.get(next);
            switch (stage) {
                case 0 -> { // The kernel waits for credits, and stores the size before any data (NCCL's waitPeer).
                    if (end.sendMem.headAcquire() + ConnectionLayout.SLOTS - (piece.step + piece.steps) < 0) {
                        return;
                    }
                    end.recvMem.sizeRelease(ConnectionLayout.slot(piece.step), piece.bytes);
                    linesLeft = lines(piece);
                    stage = 1;
                }
                case 1 -> {
                    int some = Math.min(linesLeft.size(), 1 + random.nextInt(8));
                    for (int i = 0; i < some; i++) {
                        writeLine(piece, linesLeft.removeLast());
                    }
                    if (linesLeft.isEmpty()) {
                        stage = 2;
                    }
                }
                default -> { // The kernel stores tail (NCCL's postPeer), except for LL.
                    if (piece.protocol != Protocol.LL) {
                        end.recvMem.tailRelease(piece.step + piece.steps);
                    }
                    stage = 0;
                    next++;
                }
            }
        }

        private List<Integer> lines(Piece piece) {
            List<Integer> lines = new ArrayList<>();
            for (int i = 0; i * lineBytes(piece.protocol) < piece.bytes; i++) {
                lines.add(i);
            }
            java.util.Collections.shuffle(lines, random);
            return lines;
        }

        private void writeLine(Piece piece, int line) {
            long at = layout.slotOffset(piece.protocol, piece.step) + line * lineBytes(piece.protocol);
            switch (piece.protocol) {
                case LL -> {
                    int flag = LLLine.flag(piece.step);
                    LLLine.storeOpaque(end.memory, at, LLLine.half((int) word(piece, 2 * line), flag),
                            LLLine.half((int) word(piece, 2 * line + 1), flag));
                }
                case LL128 -> {
                    for (int word = 0; word < lineWords; word++) {
                        end.memory.set(ValueLayout.JAVA_LONG, at + 8 * word, word(piece, lineWords * line + word));
                    }
                    MemoryProxyTest.this.line.flagsRelease(end.memory, at, 1, LL128Line.flag(piece.step));
                }
                case SIMPLE -> end.memory.set(ValueLayout.JAVA_LONG, at, word(piece, line));
            }
        }
    }

    /** The actions of a receiving kernel. */
    private final class ReceivingKernel {
        final End end;
        final List<Piece> program;
        int next;
        long step;

        ReceivingKernel(End end, List<Piece> program, long firstStep) {
            this.end = end;
            this.program = program;
            this.step = firstStep;
        }

        boolean done() {
            return next == program.size();
        }

        void run(long seed) {
            if (done()) {
                return;
            }
            Piece piece = program.get(next);
            // The kernel returns the credits of steps that it skips, because the operation's first step is rounded up.
            if (piece.step != step) {
                step = piece.step;
                end.sendMem.headRelease(step);
            }
            if (!ready(piece)) {
                return;
            }
            for (int line = 0; line * lineBytes(piece.protocol) < piece.bytes; line++) {
                checkLine(piece, line, seed);
            }
            step += piece.steps;
            end.sendMem.headRelease(step);
            next++;
        }

        private boolean ready(Piece piece) {
            long slot = layout.slotOffset(piece.protocol, piece.step);
            switch (piece.protocol) {
                case LL -> { // The kernel polls the flags, and never reads tail.
                    long[] halves = new long[2];
                    for (long at = 0; at < piece.bytes; at += LLLine.BYTES) {
                        if (!LLLine.areReadyAcquire(end.memory, slot + at, LLLine.BYTES, LLLine.flag(piece.step),
                                halves)) {
                            return false;
                        }
                    }
                    return true;
                }
                case LL128 -> {
                    for (long at = 0; at < piece.bytes; at += MemoryProxyTest.this.line.bytes()) {
                        if (!MemoryProxyTest.this.line.areReadyAcquire(end.memory, slot + at,
                                MemoryProxyTest.this.line.bytes(), LL128Line.flag(piece.step))) {
                            return false;
                        }
                    }
                    return true;
                }
                default -> {
                    return end.recvMem.tailAcquire() - (piece.step + piece.steps) >= 0;
                }
            }
        }

        private void checkLine(Piece piece, int line, long seed) {
            long at = layout.slotOffset(piece.protocol, piece.step) + line * lineBytes(piece.protocol);
            String where = piece + ", line " + line + ", seed " + seed;
            switch (piece.protocol) {
                case LL -> {
                    assertEquals((int) word(piece, 2 * line), LLLine.data(LLLine.firstHalfAcquire(end.memory, at)),
                            where);
                    assertEquals((int) word(piece, 2 * line + 1), LLLine.data(LLLine.secondHalfAcquire(end.memory, at)),
                            where);
                }
                case LL128 -> {
                    for (int word = 0; word < lineWords; word++) {
                        assertEquals(word(piece, lineWords * line + word),
                                end.memory.get(ValueLayout.JAVA_LONG, at + 8 * word), where);
                    }
                }
                case SIMPLE -> assertEquals(word(piece, line), end.memory.get(ValueLayout.JAVA_LONG, at), where);
            }
        }
    }

    private long lineBytes(Protocol protocol) {
        return switch (protocol) {
            case LL -> LLLine.BYTES;
            case LL128 -> line.bytes();
            case SIMPLE -> Long.BYTES;
        };
    }

    private static long word(Piece piece, int index) {
        return (piece.seed + index) * 0x9E3779B97F4A7C15L;
    }

    /**
     * Returns operations of several pieces, each of one protocol. Some operations have the form of rings: Simple slices
     * of two steps, rounded to four. The others have one step per piece.
     */
    private List<Piece> program(Random random, long firstStep, int operations) {
        List<Piece> pieces = new ArrayList<>();
        long step = firstStep;
        for (int operation = 0; operation < operations; operation++) {
            Protocol protocol = Protocol.of(random.nextInt(3));
            boolean slices = protocol == Protocol.SIMPLE && random.nextBoolean();
            int steps = slices ? 2 : 1;
            if (slices) {
                step = Steps.roundUp(step, 4);
            }
            int count = slices ? 2 * (1 + random.nextInt(4)) : 1 + random.nextInt(9);
            for (int i = 0; i < count; i++) {
                long bytes = switch (protocol) {
                    case LL -> LLLine.isCleaned(step) ? 256 : 16L * random.nextInt(17);
                    case LL128 -> line.bytes() * random.nextInt((int) (LL128_SLOT_BYTES / line.bytes()) + 1);
                    case SIMPLE -> random.nextInt(3) == 0 ? 0 : 8L * random.nextInt(1 + steps * 128);
                };
                pieces.add(new Piece(step, steps, protocol, bytes, random.nextLong()));
                step += steps;
            }
        }
        return pieces;
    }

    @ParameterizedTest
    @CsvSource({"1, 0", "2, 0", "3, 0", "4, 2147483632", "5, 4294967280", "6, 4294967283", "7, 9223372036854775800",
            "8, -24", "9, 2147483629", "10, 0"})
    void whatIsPostedArrives(long seed, long firstStep) {
        Random random = new Random(seed);
        List<Piece> program = program(random, firstStep, 400);
        try (Arena arena = Arena.ofConfined()) {
            End from = new End(arena, firstStep);
            End to = new End(arena, firstStep);
            MemoryFrames frames = new MemoryFrames(random);
            MemorySegment staging = arena.allocate(layout.bufferOffset(Protocol.SIMPLE), 128);
            SendProxy send = SendProxy.byMemory(ConnectionName.ofRing(0, 1, 0, true), from.buffers(), firstStep,
                    frames.sender(), (c, f) -> {});
            ReceiveProxy receive = ReceiveProxy.byMemory(ConnectionName.ofRing(1, 0, 0, false), to.buffers(),
                    MemoryFrames.region(staging), firstStep, frames.receiver(seed % 2 == 0), (c, f) -> {});
            SendingKernel sending = new SendingKernel(from, program, random);
            ReceivingKernel receiving = new ReceivingKernel(to, program, firstStep);
            int turns = 0;
            while (!receiving.done() || !sending.done()) {
                switch (random.nextInt(4)) {
                    case 0 -> sending.run();
                    case 1 -> receiving.run(seed);
                    case 2 -> send.progress();
                    default -> receive.progress();
                }
                assertTrue(turns++ < 10_000_000, () -> "stuck at piece " + receiving.next + " sender " + send.lastSeen()
                        + " receiver " + receive.lastSeen() + ", seed " + seed);
            }
            for (int i = 0; i < 1000; i++) {
                send.progress();
                receive.progress();
            }
            assertTrue(send.drained() && receive.drained(), "everything posted was sent");
            Piece last = program.getLast();
            assertEquals(last.step + last.steps, from.sendMem.headAcquire(), "all credits are back");
            int stagedBytes = (int) layout.bufferBytes(Protocol.LL);
            boolean linesWereStaged =
                    staging.asSlice(0, stagedBytes).mismatch(MemorySegment.ofArray(new byte[stagedBytes])) >= 0;
            assertEquals(seed % 2 != 0, linesWereStaged,
                    "LL lines go straight into their slots from networks that store whole words, and from no other");
        }
    }

    /**
     * All slots are in flight, and the oldest slot still contains the size 0 of its empty step. The proxy must not take
     * this size for the size of the next step.
     */
    @Test
    void emptyStepsInAllSlotsAreSentOnce() {
        try (Arena arena = Arena.ofConfined()) {
            End from = new End(arena, 0);
            MemoryFrames frames = new MemoryFrames(null);
            SendProxy send = SendProxy.byMemory(ConnectionName.ofRing(0, 1, 0, true), from.buffers(), 0,
                    frames.sender(), (c, f) -> {});
            for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
                from.recvMem.sizeRelease(slot, 0);
            }
            for (int pass = 0; pass < 100; pass++) {
                send.progress();
            }
            assertEquals(ConnectionLayout.SLOTS, frames.offered());
            assertEquals(0, from.sendMem.headAcquire(), "nothing is complete: nobody accepted a frame");
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {-1, 1025, 1L << 40})
    void aDeviceThatSaysAnImpossibleSizeIsAnError(long bytes) {
        try (Arena arena = Arena.ofConfined()) {
            End from = new End(arena, 0);
            MemoryFrames frames = new MemoryFrames(null);
            SendProxy send = SendProxy.byMemory(ConnectionName.ofRing(0, 1, 0, true), from.buffers(), 0,
                    frames.sender(), (c, f) -> {});
            from.recvMem.sizePlain(7, bytes == -1 ? -2 : bytes);
            from.recvMem.tailRelease(8);
            assertThrows(ProxyException.class, () -> {
                for (int pass = 0; pass < 10; pass++) {
                    send.progress();
                }
            });
        }
    }

    @Test
    void framesOfAStrangerAreRefusedBeforeAnythingIsWritten() {
        long[][] hostile = {{0, 0, 2, 8}, {9, 10, 2, 8}, {0, 9, 2, 8}, {0, 1, 3, 8}, {0, 1, -1, 8}, {0, 1, 0, 257},
                {0, 1, 1, 2049}, {7, 8, 2, 1025}, {-1, 0, 2, 0}, {0, 0, 2, 0}};
        try (Arena arena = Arena.ofConfined()) {
            for (long[] words : hostile) {
                End from = new End(arena, 0);
                End to = new End(arena, 0);
                MemoryFrames frames = new MemoryFrames(null);
                MemorySegment staging = arena.allocate(layout.bufferOffset(Protocol.SIMPLE), 128);
                SendProxy send = SendProxy.byMemory(ConnectionName.ofRing(0, 1, 0, true), from.buffers(), 0,
                        frames.sender(), (c, f) -> {});
                ReceiveProxy receive = ReceiveProxy.byMemory(ConnectionName.ofRing(1, 0, 0, false), to.buffers(),
                        MemoryFrames.region(staging), 0, frames.receiver(), (c, f) -> {});
                from.recvMem.sizePlain(0, 8);
                from.recvMem.tailRelease(1);
                send.progress();
                StepHeader.step(frames.lastOffered(), words[0], words[1], (int) words[2]);
                frames.lastOffered().payloadBytes(words[3]);
                ProxyException thrown =
                        assertThrows(ProxyException.class, receive::progress, java.util.Arrays.toString(words));
                assertTrue(thrown.getMessage().contains("unexpected frame"), thrown.getMessage());
                assertTrue(thrown instanceof ProxyException.DisagreementException, thrown.toString());
                assertEquals(0, to.recvMem.tailAcquire());
                assertNull(thrown.getCause());
            }
        }
    }
}
