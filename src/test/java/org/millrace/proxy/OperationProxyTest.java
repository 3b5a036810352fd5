package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
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
import org.millrace.abi.SendMem;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.OperationSignature;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyException;
import org.millrace.proxy.spi.ProxyOp;

/** Both proxies of one connection. This test runs their passes, and acts as the device at both ends. */
class OperationProxyTest {

    private static final int SLOT = 256;
    private static final int CHUNK_STEPS = 4;
    private static final int SLICE_STEPS = 2;
    private static final long SIGNATURE =
            OperationSignature.pack(Operation.ALL_REDUCE, DataType.INT32, ReduceOp.SUM, 0);

    private static final ConnectionLayout LAYOUT = new ConnectionLayout(8 * 64, 8 * 2048, 8 * SLOT);

    private final Arena arena = Arena.ofConfined();

    @AfterEach
    void free() {
        arena.close();
    }

    /** Memory of one end, and state of the device that the test imitates at this end. */
    private static final class End {
        final ConnectionInfo info;
        final MemorySegment buffer;
        final SendMem sendMem;
        final RecvMem recvMem;
        final AbortFlag abort;
        final OperationQueue queue = new OperationQueue();
        long step;

        End(Arena arena, long firstStep) {
            info = ConnectionInfo.allocate(arena, LAYOUT, firstStep);
            abort = AbortFlag.of(arena.allocate(AbortFlag.BYTES, AbortFlag.BYTES));
            buffer = info.buffer(Protocol.SIMPLE);
            sendMem = info.sendMem();
            recvMem = info.recvMem();
            step = firstStep;
        }
    }

    private static final class Pair {
        final End from;
        final End to;
        final MemoryFrames frames = new MemoryFrames(null);
        final SendProxy send;
        final ReceiveProxy receive;
        Throwable stoppedBy;

        Pair(Arena arena, long firstStep) {
            from = new End(arena, firstStep);
            to = new End(arena, firstStep);
            send = SendProxy.sharing(null, ConnectionName.ofRing(0, 1, 0, true), from.info,
                    MemoryFrames.region(from.info.buffers()), from.queue, frames.sender(), this::stopped);
            receive = ReceiveProxy.sharing(null, null, ConnectionName.ofRing(1, 0, 0, false), to.info,
                    MemoryFrames.region(to.info.buffers()), MemoryFrames.staging(arena, LAYOUT), to.queue,
                    frames.receiver(), this::stopped);
            send.abortedBy(from.abort);
            receive.abortedBy(to.abort);
        }

        void stopped(ProxyConnection connection, Throwable failure) {
            stoppedBy = failure;
        }

        void announce(long steps) {
            ProxyOp op = new ProxyOp(7, SIGNATURE, 100, steps, CHUNK_STEPS, SLICE_STEPS);
            from.queue.add(op);
            to.queue.add(op);
        }

        void post(long bytes) {
            from.recvMem.sizePlain(ConnectionLayout.slot(from.step), bytes);
            from.step += SLICE_STEPS;
            from.recvMem.tailRelease(from.step);
        }

        void progress() {
            while (send.progress() + receive.progress() > 0) {
                // The loop ends when neither proxy has work.
            }
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {0, (1L << 31) - 8, (1L << 32) - 8, Long.MAX_VALUE - 7, -8})
    void stepsRunThroughTheirWraps(long firstStep) {
        Pair pair = new Pair(arena, firstStep);
        pair.announce(64);
        for (int slice = 0; slice < 32; slice++) {
            long at = ConnectionLayout.slot(pair.from.step) * SLOT;
            pair.from.buffer.set(ValueLayout.JAVA_INT, at, slice);
            pair.post(4);
            pair.progress();
            assertEquals(firstStep + 2 * slice + 2, pair.to.recvMem.tailAcquire(), "the receiver's tail");
            assertEquals(firstStep + 2 * slice + 2, pair.from.sendMem.headAcquire(), "the sender's head");
            assertEquals(slice, pair.to.buffer.get(ValueLayout.JAVA_INT, at));
            pair.to.step += SLICE_STEPS;
            pair.to.sendMem.headRelease(pair.to.step);
        }
        assertTrue(pair.send.drained() && pair.receive.drained());
    }

    /**
     * After an abort a receiving proxy accepts no frame, because the user may already have freed the offered memory.
     */
    @Test
    void afterAnAbortNoFrameGetsAPlace() {
        Pair pair = new Pair(arena, 0);
        MemorySegment user = arena.allocate(2 * Integer.BYTES, Integer.BYTES);
        pair.from.queue.add(new ProxyOp(7, SIGNATURE, 100, 4, CHUNK_STEPS, SLICE_STEPS));
        pair.to.queue.add(new ProxyOp(7, SIGNATURE, 100, 4, CHUNK_STEPS, SLICE_STEPS, Protocol.SIMPLE,
                MemoryFrames.region(user)));
        for (int slice = 0; slice < 2; slice++) {
            int slot = slice * SLICE_STEPS;
            pair.to.recvMem.ptrPlain(slot, user.address() + slice * Integer.BYTES);
            pair.to.recvMem.sizeRelease(slot, Integer.BYTES);
        }
        pair.from.buffer.set(ValueLayout.JAVA_INT, 0, 1);
        pair.post(4);
        pair.progress();
        assertEquals(1, user.get(ValueLayout.JAVA_INT, 0));
        pair.to.abort.raise();
        pair.from.buffer.set(ValueLayout.JAVA_INT, (long) SLICE_STEPS * SLOT, 2);
        pair.post(4);
        pair.progress();
        assertEquals(2, pair.frames.offered());
        assertEquals(0, user.get(ValueLayout.JAVA_INT, Integer.BYTES));
        assertEquals(SLICE_STEPS, pair.to.recvMem.tailAcquire());
    }

    /**
     * After an abort a sending proxy sends nothing, because the kernel has exited. The proxy also frees no slot,
     * because the user may reuse the memory that the kernel copied.
     */
    @Test
    void afterAnAbortNothingIsSentAndNoSlotIsGivenBack() {
        Pair pair = new Pair(arena, 0);
        pair.announce(8);
        pair.post(4);
        assertEquals(1, pair.send.progress());
        pair.receive.progress(); // the frame of the first slice can now complete
        pair.from.abort.raise();
        pair.post(4);
        assertEquals(0, pair.send.progress());
        assertEquals(1, pair.frames.offered(), "frames");
        assertEquals(0, pair.from.sendMem.headAcquire());
        assertEquals(4, pair.from.recvMem.sizeAcquire(0));
    }

    /** After an abort the operands belong to the user again, so the network must not read a frame's payload again. */
    @Test
    void afterAnAbortWhatIsUnderWayIsNotReadAgain() {
        Pair pair = new Pair(arena, 0);
        pair.announce(2);
        pair.post(4);
        assertEquals(1, pair.send.progress());
        pair.from.abort.raise();
        assertFalse(pair.send.drained());
        pair.send.stopped(null);
        assertTrue(pair.frames.senderGaveUp());
    }

    /**
     * An abort does not interrupt a running pass, because the memory exists until the proxies have stopped. The next
     * pass does nothing.
     */
    @Test
    void aPassThatIsUnderWayGoesToItsEnd() {
        Pair pair = new Pair(arena, 0);
        pair.announce(8);
        pair.post(4);
        pair.post(4);
        pair.frames.onOffer(pair.from.abort::raise); // The abort comes after the pass has read the abort flag.
        assertEquals(2, pair.send.progress());
        assertEquals(2, pair.frames.offered(), "frames of the pass");
        pair.receive.progress();
        pair.post(4);
        assertEquals(0, pair.send.progress());
        assertEquals(2, pair.frames.offered(), "frames behind the pass");
        assertEquals(0, pair.from.sendMem.headAcquire());
    }

    @Test
    void afterAnAbortWhatArrivesIsNotToldToTheDevice() {
        Pair pair = new Pair(arena, 0);
        pair.announce(8);
        pair.post(4);
        pair.send.progress();
        assertEquals(1, pair.receive.progress(), "a frame was given its slot");
        pair.to.abort.raise();
        assertEquals(0, pair.receive.progress());
        assertEquals(0, pair.to.recvMem.tailAcquire());
    }

    @ParameterizedTest
    @ValueSource(longs = {0, (1L << 32) - 8, Long.MAX_VALUE - 7})
    void aReceivingDevicesHeadMayNotGoBackNorBehindWhatWasAnnounced(long firstStep) {
        Pair pair = new Pair(arena, firstStep);
        pair.announce(16);
        for (int slice = 0; slice < 4; slice++) {
            pair.post(4);
        }
        pair.progress();
        pair.to.sendMem.headRelease(firstStep + 8);
        pair.progress();
        pair.to.sendMem.headRelease(firstStep - 1);
        String back = assertThrows(ProxyException.class, pair.receive::progress).getMessage();
        assertTrue(back.contains("head is " + (firstStep - 1)), back);
        pair.to.sendMem.headRelease(firstStep + 16 + ConnectionLayout.SLOTS + 1);
        String behind = assertThrows(ProxyException.class, pair.receive::progress).getMessage();
        assertTrue(behind.contains("announced to step " + (firstStep + 16)), behind);
    }

    @Test
    void aSendingDevicesTailMayNotPassItsCredits() {
        Pair pair = new Pair(arena, 0);
        pair.announce(16);
        pair.from.recvMem.sizePlain(0, 4);
        pair.from.recvMem.tailRelease(ConnectionLayout.SLOTS + 1);
        String thrown = assertThrows(ProxyException.class, pair.send::progress).getMessage();
        assertTrue(thrown.contains("tail is 9, and its credits end at step 8"), thrown);
        assertEquals(0, pair.frames.offered());
    }

    @Test
    void anOperationBeginsAtAWholeChunk() {
        Pair pair = new Pair(arena, 5);
        pair.announce(4);
        pair.from.step = 8; // the device rounds its first step up to a whole chunk
        pair.to.sendMem.headRelease(8);
        pair.post(4);
        pair.progress();
        assertEquals(10, pair.to.recvMem.tailAcquire());
    }

    @Test
    void theReceiverWaitsForTheDeviceToEmptyItsSlots() {
        Pair pair = new Pair(arena, 0);
        pair.announce(16);
        for (int slice = 0; slice < 4; slice++) {
            pair.post(8);
        }
        pair.progress();
        assertEquals(8, pair.to.recvMem.tailAcquire());
        assertEquals(8, pair.from.sendMem.headAcquire());
        pair.post(8);
        pair.progress();
        assertEquals(8, pair.to.recvMem.tailAcquire(), "slot 0 is still full");
        pair.to.sendMem.headRelease(2);
        pair.progress();
        assertEquals(10, pair.to.recvMem.tailAcquire());
    }

    @Test
    void sizesAreClearedBeforeTheSlotGoesBack() {
        Pair pair = new Pair(arena, 0);
        pair.announce(4);
        pair.post(8);
        assertEquals(8, pair.from.recvMem.sizePlain(0));
        pair.progress();
        assertEquals(RecvMem.EMPTY, pair.from.recvMem.sizePlain(0));
    }

    @Test
    void emptySlicesRideAlong() {
        Pair pair = new Pair(arena, 0);
        pair.announce(8);
        pair.post(8);
        pair.post(0);
        pair.post(0);
        pair.post(0);
        pair.progress();
        assertEquals(2, pair.frames.offered(), "one frame a chunk");
        assertEquals(8, pair.to.recvMem.tailAcquire());
    }

    @Test
    void theReceiveSideNeverWritesSizes() {
        Pair pair = new Pair(arena, 0);
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            pair.to.recvMem.sizePlain(slot, 1000 + slot);
        }
        pair.announce(8);
        pair.post(8);
        pair.post(8);
        pair.progress();
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            assertEquals(1000 + slot, pair.to.recvMem.sizePlain(slot));
        }
    }

    @Test
    void aPeerThatIsAheadWaits() {
        Pair pair = new Pair(arena, 0);
        pair.from.queue.add(new ProxyOp(7, SIGNATURE, 100, 4, CHUNK_STEPS, SLICE_STEPS));
        pair.post(8);
        pair.progress();
        assertEquals(0, pair.to.recvMem.tailAcquire());
        assertFalse(pair.send.drained());
        pair.to.queue.add(new ProxyOp(7, SIGNATURE, 100, 4, CHUNK_STEPS, SLICE_STEPS));
        pair.progress();
        assertEquals(2, pair.to.recvMem.tailAcquire());
    }

    @Test
    void ranksThatDisagreeAreToldWhoRunsWhat() {
        Pair pair = new Pair(arena, 0);
        long other = OperationSignature.pack(Operation.ALL_REDUCE, DataType.FLOAT64, ReduceOp.MAX, 0);
        pair.from.queue.add(new ProxyOp(7, other, 50, 4, CHUNK_STEPS, SLICE_STEPS));
        pair.to.queue.add(new ProxyOp(7, SIGNATURE, 100, 4, CHUNK_STEPS, SLICE_STEPS));
        pair.post(8);
        ProxyException thrown = assertThrows(ProxyException.class, pair::progress);
        assertTrue(thrown.getMessage()
                .contains("rank 1 <- rank 0, channel 0: the ranks disagree: "
                        + "rank 1 runs operation 7: all_reduce of 100 int32, sum; rank 0 runs operation 7: all_reduce of 50 double, max"),
                thrown.getMessage());
    }

    @Test
    void aFrameOutOfSequenceIsRefusedBeforeAnythingIsWritten() {
        for (long[] falsified : new long[][] {{2, 4, 2, 8}, {0, 0, 2, 8}, {0, 16, 2, 8}, {0, 2, 0, 8},
                {0, 2, 2, 1 << 20}, {-2, 0, 2, 8}}) {
            Pair pair = new Pair(arena, 0);
            pair.announce(8);
            pair.post(8);
            pair.send.progress();
            StepHeader.step(pair.frames.lastOffered(), falsified[0], falsified[1], (int) falsified[2]);
            pair.frames.lastOffered().payloadBytes(falsified[3]);
            ProxyException thrown = assertThrows(ProxyException.class, pair::progress);
            assertTrue(thrown.getMessage().contains("unexpected frame"), thrown.getMessage());
            assertEquals(0, pair.to.recvMem.tailAcquire());
        }
    }

    @Test
    void aDeviceThatSaysAnImpossibleSizeIsAnError() {
        Pair pair = new Pair(arena, 0);
        pair.announce(8);
        pair.post(2 * SLOT + 1);
        ProxyException thrown = assertThrows(ProxyException.class, pair::progress);
        assertTrue(thrown.getMessage().contains("posted a size of 513 bytes"), thrown.getMessage());
    }
}
