package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyOp;

/** A proxy thread allocates no bytes over a million steps of every protocol and buffer mode. */
@Tag("slow")
@Tag("optimized")
class ProxyAllocationTest {

    private static final int SLOT = 64;
    private static final int STEPS = 1_000_000;
    private static final long BYTES = 32;
    private static final ConnectionLayout LAYOUT = new ConnectionLayout(8 * SLOT, 8 * 2048, 8 * SLOT);

    private enum Mode {
        LL(Protocol.LL, 1, 1),
        LL128(Protocol.LL128, 1, 1),
        NORMAL(Protocol.SIMPLE, 4, 2),
        OFFSET(Protocol.SIMPLE, 1, 1),
        PTR(Protocol.SIMPLE, 1, 1);

        final Protocol protocol;
        final int chunkSteps;
        final int sliceSteps;

        Mode(Protocol protocol, int chunkSteps, int sliceSteps) {
            this.protocol = protocol;
            this.chunkSteps = chunkSteps;
            this.sliceSteps = sliceSteps;
        }
    }

    @ParameterizedTest
    @EnumSource
    void aMillionStepsAllocateNothing(Mode mode) {
        aMillionSteps(mode, PayloadCheck.OFF);
    }

    @ParameterizedTest
    @EnumSource
    void aMillionStepsWithChecksumsAllocateNothing(Mode mode) {
        aMillionSteps(mode, PayloadCheck.FAIL);
    }

    private static void aMillionSteps(Mode mode, PayloadCheck check) {
        com.sun.management.ThreadMXBean threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        assertTrue(threads.isThreadAllocatedMemoryEnabled(), "this JVM does not count allocated bytes");
        try (Arena arena = Arena.ofConfined()) {
            SlotPool.Share sendShare = mode == Mode.OFFSET ? pool(arena).attach() : null;
            SlotPool.Share receiveShare = mode == Mode.OFFSET ? pool(arena).attach() : null;
            ConnectionInfo from = connection(arena, sendShare, true);
            ConnectionInfo to = connection(arena, receiveShare, false);
            OperationQueue sends = new OperationQueue();
            OperationQueue receives = new OperationQueue();
            MemoryFrames frames = new MemoryFrames(null);
            ConnectionName out = ConnectionName.ofRing(0, 1, 0, true);
            ConnectionName in = ConnectionName.ofRing(1, 0, 0, false);
            ProxyAgent agent = new ProxyAgent("test");
            agent.add(List.of(
                    SendProxy.sharing(sendShare, out, from, MemoryFrames.region(from.buffers()), sends,
                            StepCheck.of(check, out, true).of(frames.sender()), (c, f) -> {}),
                    ReceiveProxy.sharing(null, receiveShare, in, to, MemoryFrames.region(to.buffers()),
                            MemoryFrames.staging(arena, LAYOUT), receives,
                            StepCheck.of(check, in, true).of(frames.receiver()), (c, f) -> {})));
            MemorySegment user = arena.allocate(BYTES, 8);
            MemoryRegion region = mode == Mode.PTR ? MemoryFrames.region(user) : null;
            ProxyOp op = new ProxyOp(0, 0, 0, 2L * STEPS, mode.chunkSteps, mode.sliceSteps, mode.protocol, region);
            sends.add(op);
            receives.add(op);
            run(mode, agent, from, to, user, 0, STEPS);
            long before = threads.getCurrentThreadAllocatedBytes();
            run(mode, agent, from, to, user, STEPS, 2L * STEPS);
            long allocated = threads.getCurrentThreadAllocatedBytes() - before;
            assertEquals(2L * STEPS - (mode == Mode.OFFSET ? ConnectionLayout.SLOTS : 0), from.sendMem().headAcquire(),
                    "all steps were sent");
            assertEquals(0, allocated, "bytes allocated over " + STEPS + " steps");
        }
    }

    private static SlotPool pool(Arena arena) {
        return new SlotPool(MemoryFrames.region(arena.allocate((long) SLOT * SlotPool.slots(1))), SLOT, 1);
    }

    private static ConnectionInfo connection(Arena arena, SlotPool.Share share, boolean sends) {
        ConnectionInfo own = ConnectionInfo.allocate(arena, LAYOUT, 0);
        return share == null ? own : own.withShared(share.pool().slots(), sends);
    }

    private static void run(Mode mode, ProxyAgent agent, ConnectionInfo from, ConnectionInfo to, MemorySegment user,
            long first, long last) {
        for (long step = first; step < last; step += mode.sliceSteps) {
            int slot = ConnectionLayout.slot(step);
            if (mode == Mode.PTR) {
                to.recvMem().ptrPlain(slot, user.address());
                to.recvMem().sizeRelease(slot, BYTES);
                from.recvMem().ptrPlain(slot, user.address());
            }
            from.recvMem().sizeRelease(slot, mode == Mode.LL128 ? LL128Line.BYTES : BYTES);
            if (mode == Mode.LL) {
                long half = LLLine.half(1, LLLine.flag(step));
                for (long at = 0; at < BYTES; at += LLLine.BYTES) {
                    LLLine.storeOpaque(from.buffers(), LAYOUT.slotOffset(Protocol.LL, step) + at, half, half);
                }
            } else if (mode == Mode.LL128) {
                LL128Line.NCCL.flagsRelease(from.buffers(), LAYOUT.slotOffset(Protocol.LL128, step), 1,
                        LL128Line.flag(step));
            }
            long end = step + mode.sliceSteps;
            if (mode != Mode.LL) {
                from.recvMem().tailRelease(end);
            }
            while (to.recvMem().tailAcquire() < end || agent.doWork() > 0) {
                agent.doWork();
            }
            to.sendMem().headRelease(end);
        }
    }
}
