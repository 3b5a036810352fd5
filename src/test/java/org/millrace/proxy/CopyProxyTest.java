package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.AbortFlag;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.OperationSignature;
import org.millrace.proxy.spi.ProxyOp;

/**
 * A proxy that copies between two devices. The test acts as the sending device, the receiving device and the copy
 * engine.
 */
class CopyProxyTest {

    private static final int SLOT = (int) CopyProxy.SlotCopies.InPieces.BYTES_A_PASS;
    private static final ConnectionLayout LAYOUT = new ConnectionLayout(8 * 64, 8 * 2048, 8 * SLOT);
    private static final long SIGNATURE =
            OperationSignature.pack(Operation.ALL_REDUCE, DataType.INT32, ReduceOp.SUM, 0);

    private final Arena arena = Arena.ofConfined();
    private final AbortFlag abort = AbortFlag.of(arena.allocate(AbortFlag.BYTES, AbortFlag.BYTES));
    private final OperationQueue queue = new OperationQueue();
    private final LateCopies copies = new LateCopies();
    private ConnectionInfo from;
    private ConnectionInfo to;
    private CopyProxy proxy;

    /** Copies that complete when the test decides. */
    private static final class LateCopies implements CopyProxy.SlotCopies {
        int begun;
        int completed;
        int passes;

        @Override
        public void begin(Protocol protocol, long offset, long bytes) {
            begun++;
        }

        @Override
        public int progress() {
            passes++;
            return 0;
        }

        @Override
        public long completed() {
            return completed;
        }
    }

    private void open(long firstStep, boolean late) {
        from = ConnectionInfo.allocate(arena, LAYOUT, firstStep);
        to = ConnectionInfo.allocate(arena, LAYOUT, firstStep);
        ConnectionName name = ConnectionName.ofRing(0, 1, 0, true);
        proxy = late ? new CopyProxy(name, from, to, queue, (_, _) -> {}, copies)
                : new CopyProxy(name, from, to, queue, (_, _) -> {});
        proxy.abortedBy(abort);
    }

    @AfterEach
    void close() {
        arena.close();
    }

    private void announce(long steps, int sliceSteps) {
        queue.add(new ProxyOp(7, SIGNATURE, 100, steps, sliceSteps, sliceSteps));
    }

    private void post(long step, long bytes) {
        from.recvMem().sizePlain(ConnectionLayout.slot(step), bytes);
        from.recvMem().tailRelease(step + 1);
    }

    @ParameterizedTest
    @ValueSource(longs = {0, (1L << 32) - 3, Long.MAX_VALUE - 3})
    void eightCopiesAreUnderWayAndCompleteInTheirOrder(long firstStep) {
        open(firstStep, true);
        announce(16, 1);
        for (int step = 0; step < ConnectionLayout.SLOTS; step++) {
            post(firstStep + step, 10 + step);
        }
        assertEquals(ConnectionLayout.SLOTS, proxy.progress(), "all that were posted begin in one pass");
        assertEquals(ConnectionLayout.SLOTS, copies.begun);
        assertEquals(firstStep, to.recvMem().tailAcquire(), "nothing is there yet");
        assertEquals(firstStep, from.sendMem().headAcquire(), "no slot is read yet");
        copies.completed = 3;
        assertEquals(3, proxy.progress());
        assertEquals(firstStep + 3, to.recvMem().tailAcquire());
        assertEquals(firstStep + 3, from.sendMem().headAcquire());
        assertEquals(12, to.recvMem().sizePlain(ConnectionLayout.slot(firstStep + 2)));
        assertEquals(RecvMem.EMPTY, from.recvMem().sizePlain(ConnectionLayout.slot(firstStep + 2)));
        assertEquals(13, from.recvMem().sizePlain(ConnectionLayout.slot(firstStep + 3)));
        assertFalse(proxy.drained());
        post(firstStep + 8, 18);
        assertEquals(0, proxy.progress(), "the consumer has emptied no slot");
        to.sendMem().headRelease(firstStep + 1);
        assertEquals(1, proxy.progress());
        assertEquals(9, copies.begun);
    }

    @Test
    void afterAnAbortNoCopyBeginsAndNoneIsToldOf() {
        open(0, true);
        announce(16, 1);
        post(0, 4);
        proxy.progress();
        copies.completed = 1;
        abort.raise();
        post(1, 4);
        int passes = copies.passes;
        assertEquals(0, proxy.progress());
        assertEquals(1, copies.begun);
        assertEquals(passes, copies.passes, "nor does one go on");
        assertEquals(0, to.recvMem().tailAcquire());
        assertEquals(0, from.sendMem().headAcquire());
    }

    /**
     * The proxy copies one slot per pass. If it copied all slots in one pass, other connections of the thread would
     * wait for a long copy.
     */
    @Test
    void aSliceOfSeveralSlotsIsCopiedInSeveralPasses() {
        open(0, false);
        announce(4, 4);
        MemorySegment data = from.buffer(Protocol.SIMPLE);
        long bytes = 3 * SLOT + 4;
        for (long at = 0; at < bytes; at += Integer.BYTES) {
            data.set(ValueLayout.JAVA_INT, at, (int) at + 1);
        }
        from.recvMem().sizePlain(0, bytes);
        from.recvMem().tailRelease(4);
        for (int pass = 0; pass < 3; pass++) {
            assertTrue(proxy.progress() > 0);
            assertEquals(0, to.recvMem().tailAcquire(), "after pass " + pass);
        }
        assertTrue(proxy.progress() > 0);
        assertEquals(4, to.recvMem().tailAcquire());
        assertEquals(-1, data.asSlice(0, bytes).mismatch(to.buffer(Protocol.SIMPLE).asSlice(0, bytes)));
        assertTrue(proxy.drained());
    }
}
