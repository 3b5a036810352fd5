package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyException;
import org.millrace.proxy.spi.ProxyOp;

/**
 * Proxies that are driven by operations. They handle lines, the user's memory, and memory that must be flushed. This
 * test acts as the device at both ends.
 */
class OperationProtocolsTest {

    private static final ConnectionLayout LAYOUT = new ConnectionLayout(8 * 64, 8 * 2048, 8 * 256);

    private final Arena arena = Arena.ofAuto();
    private OperationQueue sends;
    private OperationQueue receives;
    private final MemoryFrames frames = new MemoryFrames(null);
    private ConnectionInfo from;
    private ConnectionInfo to;
    private SendProxy send;
    private ReceiveProxy receive;

    private void connect(long firstStep) {
        sends = new OperationQueue();
        receives = new OperationQueue();
        from = ConnectionInfo.allocate(arena, LAYOUT, firstStep);
        to = ConnectionInfo.allocate(arena, LAYOUT, firstStep);
        send = SendProxy.sharing(null, ConnectionName.ofRing(0, 1, 0, true), from, MemoryFrames.region(from.buffers()),
                sends, frames.sender(), (c, f) -> {});
        receive = ReceiveProxy.sharing(null, null, ConnectionName.ofRing(1, 0, 0, false), to,
                MemoryFrames.region(to.buffers()), MemoryFrames.staging(arena, LAYOUT), receives, frames.receiver(),
                (c, f) -> {});
    }

    private void announce(Protocol protocol, long steps, MemoryRegion sent, MemoryRegion received) {
        sends.add(new ProxyOp(1, 2, 3, steps, 1, 1, protocol, sent));
        receives.add(new ProxyOp(1, 2, 3, steps, 1, 1, protocol, received));
    }

    private void progress() {
        while (send.progress() + receive.progress() > 0) {
            // The loop ends when neither proxy has work.
        }
    }

    private void storeLine(Protocol protocol, long step, int line, long value) {
        if (protocol == Protocol.LL) {
            int flag = LLLine.flag(step);
            LLLine.storeOpaque(from.buffers(), LAYOUT.slotOffset(protocol, step) + line * LLLine.BYTES,
                    LLLine.half((int) value, flag), LLLine.half((int) (value >>> 32), flag));
        } else {
            long at = LAYOUT.slotOffset(protocol, step) + line * LL128Line.BYTES;
            from.buffers().set(ValueLayout.JAVA_LONG, at, value);
            LL128Line.NCCL.flagsRelease(from.buffers(), at, 1, LL128Line.flag(step));
        }
    }

    private static long lineBytes(Protocol protocol) {
        return protocol == Protocol.LL ? LLLine.BYTES : LL128Line.BYTES;
    }

    @ParameterizedTest
    @EnumSource(value = Protocol.class, names = {"LL", "LL128"})
    void aStepIsSentWhenAllItsLinesAreThere(Protocol protocol) {
        connect(0);
        announce(protocol, 1, null, null);
        from.recvMem().sizeRelease(0, 4 * lineBytes(protocol));
        if (protocol == Protocol.LL128) {
            from.recvMem().tailRelease(1); // Tail becomes visible before the lines, as may happen on some GPUs.
        }
        for (int line : new int[] {2, 0, 3}) {
            storeLine(protocol, 0, line, 1000 + line);
            progress();
            assertEquals(0, frames.offered(), "line 1 is missing");
        }
        storeLine(protocol, 0, 1, 1001);
        progress();
        assertEquals(1, frames.offered());
        LineFlags arrived = new LineFlags(LAYOUT, to.buffers());
        assertTrue(protocol == Protocol.LL ? arrived.llReady(0, 4 * LLLine.BYTES)
                : arrived.ll128Ready(0, 4 * LL128Line.BYTES));
        assertEquals(1, from.sendMem().headAcquire());
        assertEquals(RecvMem.EMPTY, from.recvMem().sizeAcquire(0));
    }

    /**
     * A flag has 32 bits, so steps that are 2^32 apart have equal flags. In all runs except the first, the flag or its
     * sign bit wraps within the 24 steps.
     */
    @ParameterizedTest
    @ValueSource(longs = {0, (1L << 31) - 9, (1L << 32) - 9, Long.MAX_VALUE - 8, -9})
    void llStepsRunThroughTheWrapOfTheirFlags(long firstStep) {
        connect(firstStep);
        announce(Protocol.LL, 24, null, null);
        LineFlags arrived = new LineFlags(LAYOUT, to.buffers());
        for (long step = firstStep; step != firstStep + 24; step++) {
            assertFalse(arrived.llReady(step, LLLine.BYTES), "nothing was sent in step " + step);
            from.recvMem().sizeRelease(ConnectionLayout.slot(step), LLLine.BYTES);
            progress();
            assertFalse(arrived.llReady(step, LLLine.BYTES), "only the size was said of step " + step);
            storeLine(Protocol.LL, step, 0, step);
            progress();
            assertTrue(arrived.llReady(step, LLLine.BYTES), "step " + step);
            to.sendMem().headRelease(step + 1);
        }
        assertTrue(send.drained() && receive.drained());
    }

    /**
     * The slot still contains the size of the previous step in this slot, eight steps earlier. The proxy must not
     * mistake this size for the size of the next LL step, which is not posted yet.
     */
    @Test
    void aSizeOfTheLastRoundIsNotThisRounds() {
        connect(0);
        // the receiver has not announced the operation, so the frames stay in flight
        sends.add(new ProxyOp(1, 2, 3, 8, 4, 4, Protocol.SIMPLE, null));
        sends.add(new ProxyOp(2, 2, 3, 8, 1, 1, Protocol.LL, null));
        for (int slot = 0; slot < 8; slot += 4) {
            from.recvMem().sizePlain(slot, 0);
        }
        from.recvMem().tailRelease(8);
        progress();
        assertEquals(2, frames.offered(), "steps that the device has not posted were sent");
        assertEquals(0, from.sendMem().headAcquire());
    }

    @ParameterizedTest
    @EnumSource(value = Protocol.class, names = {"LL", "LL128"})
    void aSizeThatIsNoWholeLineOrDoesNotFitIsAnError(Protocol protocol) {
        for (long size : new long[] {1, -2, lineBytes(protocol) + 1,
                LAYOUT.slotBytes(protocol) + lineBytes(protocol)}) {
            connect(0);
            announce(protocol, 1, null, null);
            from.recvMem().sizeRelease(0, size);
            from.recvMem().tailRelease(1);
            ProxyException thrown = assertThrows(ProxyException.class, send::progress);
            assertTrue(thrown.getMessage().contains("posted a size of " + size), thrown.getMessage());
        }
    }

    @Test
    void aPeerWithAnotherProtocolIsRefused() {
        connect(0);
        sends.add(new ProxyOp(1, 2, 3, 1, 1, 1, Protocol.SIMPLE, null));
        receives.add(new ProxyOp(1, 2, 3, 1, 1, 1, Protocol.LL, null));
        from.recvMem().sizePlain(0, 16);
        from.recvMem().tailRelease(1);
        ProxyException thrown = assertThrows(ProxyException.class, this::progress);
        assertTrue(thrown.getMessage().contains("unexpected frame"), thrown.getMessage());
    }

    @Test
    void theUsersMemoryIsNotTouchedBeforeTheKernelOffersIt() {
        connect(0);
        MemorySegment source = arena.allocate(4096, 8).fill((byte) 7);
        MemorySegment destination = arena.allocate(4096, 8);
        announce(Protocol.SIMPLE, 1, MemoryFrames.region(source), MemoryFrames.region(destination));
        from.recvMem().ptrPlain(0, source.address() + 96);
        from.recvMem().sizePlain(0, 4000);
        from.recvMem().tailRelease(1);
        progress();
        assertEquals(0, to.recvMem().tailAcquire(), "the kernel has not begun");
        assertEquals(4000, from.recvMem().sizeAcquire(0), "the source is still needed");
        to.recvMem().ptrPlain(0, destination.address() + 8);
        to.recvMem().sizeRelease(0, 4000);
        progress();
        assertEquals(1, to.recvMem().tailAcquire());
        assertEquals(-1, destination.asSlice(8, 4000).mismatch(source.asSlice(96, 4000)));
        assertEquals(RecvMem.EMPTY, to.recvMem().sizeAcquire(0), "the offer is used up");
        assertEquals(RecvMem.EMPTY, from.recvMem().sizeAcquire(0), "the source may be changed");
    }

    @ParameterizedTest
    @ValueSource(longs = {-1, 1, 4096, -4096, Long.MIN_VALUE / 2})
    void nothingOutsideTheUsersMemoryIsReadOrWritten(long beside) {
        MemorySegment registered = arena.allocate(3 * 4096, 8).asSlice(4096, 4096);
        connect(0);
        announce(Protocol.SIMPLE, 1, MemoryFrames.region(registered), null);
        from.recvMem().ptrPlain(0, registered.address() + beside);
        from.recvMem().sizePlain(0, 4096);
        from.recvMem().tailRelease(1);
        assertTrue(assertThrows(ProxyException.class, send::progress).getMessage().contains("outside the 4096 bytes"));

        connect(0);
        announce(Protocol.SIMPLE, 1, null, MemoryFrames.region(registered));
        from.recvMem().sizePlain(0, 256);
        from.recvMem().tailRelease(1);
        to.recvMem().ptrPlain(0, registered.address() + (beside < 0 ? beside : 4096 - 256 + beside));
        to.recvMem().sizeRelease(0, 256);
        assertTrue(assertThrows(ProxyException.class, this::progress).getMessage().contains("outside the 4096 bytes"));
    }

    /** Imitates a GPU's memory into which a network card writes. Written data becomes visible only after a flush. */
    private static final class ReorderingMemory implements MemoryRegion {
        final MemorySegment visible;
        final MemorySegment underWay;
        int flushes;

        ReorderingMemory(Arena arena, MemorySegment visible) {
            this.visible = visible;
            this.underWay = arena.allocate(visible.byteSize(), 64);
        }

        @Override
        public MemorySegment segment() {
            return underWay;
        }

        @Override
        public void flush(long offset, long bytes) {
            flushes++;
            MemorySegment.copy(underWay, offset, visible, offset, bytes);
        }

        @Override
        public void close() {
            // The region holds no resources.
        }
    }

    @Test
    void whatTheCardWroteIsFlushedBeforeTail() {
        connect(0);
        ConnectionInfo visible = ConnectionInfo.allocate(arena, LAYOUT, 0);
        ReorderingMemory memory = new ReorderingMemory(arena, visible.buffers());
        OperationQueue queue = new OperationQueue();
        receive = ReceiveProxy.sharing(null, null, ConnectionName.ofRing(1, 0, 0, false), visible, memory,
                MemoryFrames.staging(arena, LAYOUT), queue, frames.receiver(), (c, f) -> {});
        sends.add(new ProxyOp(1, 2, 3, 3, 1, 1));
        queue.add(new ProxyOp(1, 2, 3, 3, 1, 1));
        for (int step = 0; step < 3; step++) {
            long at = LAYOUT.slotOffset(Protocol.SIMPLE, step);
            from.buffers().set(ValueLayout.JAVA_LONG, at, 77 + step);
            from.recvMem().sizePlain(step, step == 1 ? 0 : 8);
            from.recvMem().tailRelease(step + 1);
            progress();
            assertEquals(step + 1, visible.recvMem().tailAcquire());
            assertEquals(step == 1 ? 0 : 77 + step, visible.buffers().get(ValueLayout.JAVA_LONG, at),
                    "the device was told before the data could be seen");
        }
        assertEquals(2, memory.flushes, "a step without data needs none");
    }
}
