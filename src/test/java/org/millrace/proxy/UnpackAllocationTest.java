package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;
import org.millrace.net.Forwarding;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameReceiver.Pages;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.spi.ConnectionName;

/**
 * A proxy thread allocates no bytes while it receives for a device that unpacks. It receives slices with data, empty
 * slices, and lines.
 */
@Tag("slow")
@Tag("optimized")
class UnpackAllocationTest {

    private static final ConnectionLayout LAYOUT = new ConnectionLayout(8 * 64, 8 * 2048, 8 * 12288);
    /** Steps per turn: two slices of two steps, and four steps of lines. In odd turns, the second slice is empty. */
    private static final int STEPS_A_TURN = 8;
    private static final int TURNS = 50_000;
    /**
     * Number of rounds; the test uses the round with the fewest allocated bytes. If other tests of this JVM used the
     * code in another way, the JVM compiles the code again. Before that compilation, the JVM allocates one or two
     * objects on this thread, in only one round. Allocations of the code itself appear in every round.
     */
    private static final int ROUNDS = 4;
    private static final long SLICE_BYTES = 5000;
    private static final long LINES_BYTES = 32;
    /** First step, chosen so that the counters wrap during the test. */
    private static final long FIRST_STEP = -4L * TURNS;

    private final Arena arena = Arena.ofAuto();
    private final ConnectionInfo to = ConnectionInfo.allocate(arena, LAYOUT, FIRST_STEP);
    private final MemorySegment meta = arena.allocate(UnpackMeta.BYTES, 16);
    private final UnpackMeta lists = UnpackMeta.of(meta);
    private final MemoryRegion payload = MemoryFrames.region(arena.allocate(SLICE_BYTES, 8));
    private final MemoryFrames frames = new MemoryFrames(null);
    private final FrameSender peer = frames.sender();
    private final FrameHeader header = new FrameHeader();
    private long step = FIRST_STEP;
    private long slice = FIRST_STEP;
    private int scattered;

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void stepsOfAllKindsAllocateNothing(boolean scatters) {
        com.sun.management.ThreadMXBean threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        assertTrue(threads.isThreadAllocatedMemoryEnabled(), "this JVM does not count allocated bytes");
        ReceiveProxy proxy = ReceiveProxy.byMemory(ConnectionName.of("unpacking"),
                SlotBuffers.inOne(LAYOUT, MemoryFrames.region(to.buffers())), MemoryFrames.staging(arena, LAYOUT),
                FIRST_STEP, scatters ? new Scattering() : frames.receiver(), (c, f) -> {},
                slots -> new UnpackReceiveSource(ConnectionName.of("unpacking"), unpack(), slots));
        run(proxy);
        long least = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            long before = threads.getCurrentThreadAllocatedBytes();
            run(proxy);
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
        }
        long runs = 1L + ROUNDS;
        assertEquals(FIRST_STEP + runs * TURNS * STEPS_A_TURN, to.recvMem().tailAcquire(), "all steps were received");
        assertEquals(scatters ? runs * TURNS * 3 / 2 : 0, scattered, "slices that were scattered");
        assertEquals(0, least,
                "bytes allocated over " + (long) TURNS * STEPS_A_TURN + " steps, in the best of " + ROUNDS + " rounds");
    }

    private UnpackReceiveSource.UnpackMemory unpack() {
        MemorySegment bounce = arena.allocate(1 << 20, 4096);
        MemorySegment handle = arena.allocate(UnpackHandle.BYTES, 16);
        UnpackHandle.of(handle).set(meta.address(), bounce.address(), slice - 1);
        int[] offsets = new int[BouncePages.needed(LAYOUT.slotBytes(Protocol.SIMPLE))];
        for (int i = 0; i < offsets.length; i++) {
            offsets[i] = BouncePages.PAGE_BYTES * i;
        }
        return new UnpackReceiveSource.UnpackMemory(
                new BouncePages(MemoryFrames.region(bounce), offsets, LAYOUT.slotBytes(Protocol.SIMPLE)),
                new SliceLists(meta, handle, bounce.byteSize(), slice), slice);
    }

    /** Fills consecutive pages as if they were scattered. */
    private final class Scattering extends Forwarding.Receiver {
        Scattering() {
            super(frames.receiver());
        }

        @Override
        public boolean scatters() {
            return true;
        }

        @Override
        public void acceptScattered(Pages pages, int first) {
            scattered++;
            inner.accept(pages.region(), pages.offset(first, 0));
        }
    }

    private void run(ReceiveProxy proxy) {
        for (int turn = 0; turn < TURNS; turn++) {
            simple(proxy, SLICE_BYTES);
            simple(proxy, turn % 2 == 0 ? SLICE_BYTES : 0);
            for (int i = 0; i < 4; i++) {
                lines(proxy);
            }
        }
    }

    private void simple(ReceiveProxy proxy, long bytes) {
        receive(proxy, Protocol.SIMPLE, 2, bytes);
        if (bytes > 0 && lists.countAcquire((int) slice & UnpackMeta.SLICES - 1) != 2) {
            throw new AssertionError("no list of two pages was published");
        }
        slice++;
    }

    private void lines(ReceiveProxy proxy) {
        long half = LLLine.half(1, LLLine.flag(step));
        for (long at = 0; at < LINES_BYTES; at += LLLine.BYTES) {
            LLLine.storeOpaque(payload.segment(), at, half, half);
        }
        receive(proxy, Protocol.LL, 1, LINES_BYTES);
    }

    private void receive(ReceiveProxy proxy, Protocol protocol, int steps, long bytes) {
        long end = step + steps;
        StepHeader.step(header, step, end, protocol.id());
        StepHeader.posted(header, true);
        header.payloadBytes(bytes);
        if (!peer.offer(header, payload, 0)) {
            throw new AssertionError("the connection is full");
        }
        for (int pass = 0; to.recvMem().tailAcquire() != end; pass++) {
            if (pass == 100) {
                throw new AssertionError("steps that do not arrive");
            }
            proxy.progress();
        }
        peer.progress();
        to.sendMem().headRelease(end);
        step = end;
    }
}
