package org.millrace.net.ucx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.millrace.net.Connected;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.Pending;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.socket.SocketOptions;

/** The network over UCX's shared memory. Its endpoints do not detect that their peers are gone. */
@Tag("optimized")
class UcxNetworkTest extends NetworkContract {

    @Override
    protected Network newNetwork() {
        Ucx.assumeUsable();
        return new UcxNetwork(UcxContext.get(Optional.empty(), Map.of("TLS", "posix,sysv,cma,self")),
                new SocketNetwork(SocketOptions.defaults()));
    }

    /** The description of a pending UCX connection names the event that its socket connection awaits. */
    @Test
    void aPendingConnectionIsDescribedWithItsPhase() {
        try (Listener listener = network.listen();
                Pending<FrameSender> pending = network.connect(listener.address(), Connected.newKey())) {
            String text = pending.describe();
            assertTrue(text.startsWith("UCX, found by socket connection ") && !text.contains("its other end"), text);
        }
    }

    /**
     * A payload of up to one slot is sent eagerly: the sender completes the frame before the receiver has accepted it.
     * The first frame is not sent eagerly, because it is offered before the handshake is complete.
     */
    @Test
    void aSlotIsSentBeforeItHasADestination() {
        try (Connected ends = Connected.make(network, network)) {
            MemoryRegion out = memory(2 * UcxContext.EAGER_BYTES);
            MemoryRegion in = memory(2 * UcxContext.EAGER_BYTES);
            fill(out.segment());
            exchange(ends, out, in, 8);
            ends.sender().offer(header(UcxContext.EAGER_BYTES, 2), out, 0);
            ends.nextHeader();
            ends.until(() -> ends.sender().framesCompleted() == 2);
            assertEquals(1, ends.receiver().framesCompleted());
            ends.receiver().accept(in, 0);
            ends.until(() -> ends.receiver().framesCompleted() == 2);
            assertEquals(-1,
                    out.segment()
                            .asSlice(0, UcxContext.EAGER_BYTES)
                            .mismatch(in.segment().asSlice(0, UcxContext.EAGER_BYTES)));
            exchange(ends, out, in, 2 * UcxContext.EAGER_BYTES);
            assertEquals(-1, out.segment().mismatch(in.segment()));
        }
    }

    private static void exchange(Connected ends, MemoryRegion out, MemoryRegion in, int bytes) {
        long before = ends.receiver().framesCompleted();
        ends.sender().offer(header(bytes, 1), out, 0);
        ends.nextHeader();
        ends.receiver().accept(in, 0);
        ends.until(() -> ends.receiver().framesCompleted() == before + 1);
    }

    private static void fill(MemorySegment memory) {
        for (long at = 0; at < memory.byteSize(); at += Long.BYTES) {
            memory.set(ValueLayout.JAVA_LONG, at, at * 0x9e3779b97f4a7c15L);
        }
    }

    @Override
    protected int framesWithoutAllocation() {
        return 200_000;
    }
}
