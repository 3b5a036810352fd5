package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;
import org.millrace.net.Forwarding;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.PeerClosedException;
import org.millrace.proxy.MemoryFrames;

/**
 * Rank 1 has received everything that it needs, and closes. Rank 0 still completes all earlier work of both ranks,
 * whether it learns of the shutdown early or late.
 */
class ShutdownTest {

    private static final GinDescriptorFormat FORMAT = GinDescriptorFormat.V30;
    private static final int CHUNK = 64;
    private static final int PASSES = 20;

    private final Arena arena = Arena.ofConfined();
    private final MemoryFrames forth = new MemoryFrames(null);
    private final MemoryFrames back = new MemoryFrames(null);
    private final FrameSender peerSends = back.sender();
    private final FrameReceiver peerReceives = forth.receiver();
    private final StagedDevice device = new StagedDevice(arena.allocate(8 * CHUNK, 64), 8, null);
    private final MemorySegment memory = arena.allocate(4096, 64);
    private final GinPair.Context context = new GinPair.Context(arena, 0, FORMAT, 8, 4, 0);
    private final GinAgent agent = new GinAgent("test");
    private final GinCommunicator communicator =
            new GinCommunicator(0, 0, new FrameSender[] {null, new LeavingSender(forth.sender())},
                    new FrameReceiver[] {null, new LeavingReceiver(back.receiver())},
                    new GinOptions(CHUNK, 8, Duration.ofSeconds(5)), failure -> {});
    private Window window;
    /** Whether rank 1 closes as soon as it has received a frame. */
    private boolean leavesAtOnce;
    private boolean left;

    @AfterEach
    void close() {
        GinPair.remove(communicator, context);
        arena.close();
    }

    /** Behaves like the senders of the networks: it counts all sent frames before it reports the shutdown message. */
    private final class LeavingSender extends Forwarding.Sender {
        LeavingSender(FrameSender inner) {
            super(inner);
        }

        @Override
        public int progress() {
            if (leavesAtOnce) {
                receiveAll();
                left = true;
            }
            while (inner.progress() > 0) {
                // The loop counts all frames that the peer has received.
            }
            if (left) {
                throw new PeerClosedException("closed by the peer");
            }
            return 0;
        }
    }

    private final class LeavingReceiver extends Forwarding.Receiver {
        LeavingReceiver(FrameReceiver inner) {
            super(inner);
        }

        @Override
        public FrameHeader poll() {
            FrameHeader header = inner.poll();
            if (header == null && left) {
                throw new PeerClosedException("closed by the peer");
            }
            return header;
        }
    }

    private void receiveAll() {
        while (peerReceives.poll() != null) {
            peerReceives.accept(MemoryFrames.region(arena.allocate(CHUNK)), 0);
        }
    }

    private void begin(WindowMemory as) {
        agent.add(communicator);
        window = communicator.register(as);
        communicator.add(context.agentSide);
        FrameHeader hello = new FrameHeader();
        GinHeader.hello(hello, 1, 2, CHUNK);
        peerSends.offer(hello, null, 0);
        work();
        receiveAll();
        work();
    }

    private void work() {
        for (int pass = 0; pass < PASSES; pass++) {
            agent.doWork();
        }
        communicator.throwIfFailed();
    }

    private void putAndSignal() {
        FORMAT.begin(context.words, GinOp.PUT | GinOp.SIGNAL_INC | GinOp.COUNTER, 8);
        FORMAT.source(context.words, 1, 0);
        FORMAT.target(context.words, 1, 64);
        FORMAT.completion(context.words, 2, 1, 1);
        context.post(1);
    }

    @Test
    void whatItHasReceivedIsComplete() {
        begin(HostWindowMemory.register(new NoNetwork(), memory));
        putAndSignal();
        leavesAtOnce = true;
        work();
        assertTrue(left);
        assertEquals(1, context.cis.acquire(1));
        assertEquals(1, context.counters.acquire(2));
        assertTrue(communicator.isDrained());
    }

    /**
     * This rank also completes a signal that it has written to shared memory. The peer's kernel may see this signal,
     * and the peer may close, before this rank polls the network again.
     */
    @Test
    void soIsASignalThatNeededNoFrame() {
        SignalMemory theirs = new SignalMemory(arena.allocate(SignalMemory.bytes(2, 1, 4), 128), 2, 4);
        context.agentSide.reach(1, theirs.toward(0, 0));
        begin(HostWindowMemory.register(new NoNetwork(), memory));
        theirs.settled(0, 1); // the peer has received the hello
        FORMAT.begin(context.words, GinOp.PUT | GinOp.SIGNAL_ADD, 0);
        FORMAT.completion(context.words, 0, 1, 7);
        context.post(1);
        leavesAtOnce = true;
        work();
        assertTrue(left);
        assertEquals(7, theirs.signals(0).get(java.lang.foreign.ValueLayout.JAVA_LONG, 8));
        assertEquals(1, context.cis.acquire(1));
    }

    /**
     * The shutdown message arrives first, on the connection from the peer. Afterwards the connection to the peer
     * reports that this rank's frame has arrived.
     */
    @Test
    void soIsWhatIsKnownOfBehindTheShutdown() {
        begin(HostWindowMemory.register(new NoNetwork(), memory));
        putAndSignal();
        work();
        receiveAll();
        left = true;
        work();
        assertEquals(1, context.counters.acquire(2));
    }

    @Test
    void whatItHasSentIsWaitedFor() {
        begin(new StagedMemory(memory, device));
        device.holding = true;
        FrameHeader put = new FrameHeader();
        GinHeader.set(put, GinHeader.PUT, 0, window.handle(), 8, 0);
        put.payloadBytes(8);
        GinHeader.signal(put, 1, 5);
        peerSends.offer(put, MemoryFrames.region(arena.allocate(8).fill((byte) 3)), 0);
        work();
        left = true;
        work();
        assertFalse(communicator.isDrained(), "its last bytes are still being written");
        device.finishHeld();
        work();
        assertTrue(communicator.isDrained());
        assertEquals(5, context.signals.acquire(1));
    }

    /** When a peer closes, this rank drops the peer's get, sends no answer, and can close the window. */
    @Test
    void whatItAskedForHoldsNoWindow() {
        begin(new StagedMemory(memory, device));
        while (device.buffers.takeToSend() >= 0) {
            // takes all staging buffers, so no answer can be sent
        }
        FrameHeader get = new FrameHeader();
        GinHeader.set(get, GinHeader.GET, 0, window.handle(), 8, 8);
        peerSends.offer(get, null, 0);
        work();
        assertFalse(window.isIdle());
        left = true;
        work();
        assertTrue(window.isIdle());
        assertTrue(communicator.isDrained());
    }

    /** A received signal that waits for preceding bytes is written later. The signal's window is in use until then. */
    @Test
    void aSignalOnItsWayHoldsItsWindow() {
        begin(new StagedMemory(memory, device));
        Window other = communicator.register(HostWindowMemory.register(new NoNetwork(), arena.allocate(64, 64)));
        device.holding = true;
        FrameHeader put = new FrameHeader();
        GinHeader.set(put, GinHeader.PUT, 0, window.handle(), 8, 0);
        put.payloadBytes(8);
        peerSends.offer(put, MemoryFrames.region(arena.allocate(8)), 0);
        FrameHeader signal = new FrameHeader();
        GinHeader.set(signal, GinHeader.VA_SIGNAL, 0, other.handle(), 8, 0);
        GinHeader.signal(signal, 0, 5);
        peerSends.offer(signal, null, 0);
        work();
        assertFalse(other.isIdle(), "its memory could be freed, and would be written");
        device.finishHeld();
        work();
        assertTrue(other.isIdle());
    }
}
