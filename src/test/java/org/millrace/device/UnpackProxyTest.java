package org.millrace.device;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.UnpackHandle;
import org.millrace.abi.UnpackMeta;
import org.millrace.proxy.BouncePages;
import org.millrace.proxy.MemoryFrames;
import org.millrace.proxy.ReceiveProxy;
import org.millrace.proxy.SendProxy;
import org.millrace.proxy.SliceLists;
import org.millrace.proxy.SlotBuffers;
import org.millrace.proxy.UnpackReceiveSource;
import org.millrace.proxy.spi.ConnectionName;

/**
 * Slices of two steps, some of them empty, pass through a sending and a receiving proxy into pages. A device gathers
 * the slices from the pages. More slices are sent than the 16 lists of pages can describe at once, so the lists are
 * used again. In some runs the step counter and the slice counter wrap.
 */
@Tag("slow")
class UnpackProxyTest {

    private static final ConnectionLayout LAYOUT = new ConnectionLayout(8 * 256, 8 * 2048, 8 * 12288);
    private static final int SLICES = 400;
    private static final int SLICE_BYTES = 2 * 12288;

    private final Arena arena = Arena.ofAuto();

    @ParameterizedTest
    @CsvSource({"0, 0", "2147483600, 2147483640", "4294967248, 4294967290", "9223372036854775760, 9223372036854775800",
            "-48, -8"})
    void slicesArriveThroughTheirLists(long firstStep, long firstSlice) {
        long seed = firstStep ^ 0x5eed;
        Random random = new Random(seed);
        ConnectionInfo from = ConnectionInfo.allocate(arena, LAYOUT, firstStep);
        ConnectionInfo to = ConnectionInfo.allocate(arena, LAYOUT, firstStep);
        MemorySegment bounce = arena.allocate(1 << 20, 4096);
        MemorySegment meta = arena.allocate(UnpackMeta.BYTES, 16);
        MemorySegment handle = arena.allocate(UnpackHandle.BYTES, 16);
        UnpackHandle.of(handle).set(meta.address(), bounce.address(), firstSlice - 1);
        int[] offsets = new int[BouncePages.needed(LAYOUT.slotBytes(Protocol.SIMPLE))];
        for (int i = 0; i < offsets.length; i++) {
            offsets[i] = 4096 + 4096 * i;
        }
        UnpackReceiveSource.UnpackMemory memory = new UnpackReceiveSource.UnpackMemory(
                new BouncePages(MemoryFrames.region(bounce), offsets, LAYOUT.slotBytes(Protocol.SIMPLE)),
                new SliceLists(meta, handle, bounce.byteSize(), firstSlice), firstSlice);
        MemoryFrames frames = new MemoryFrames(random);
        SendProxy sends = SendProxy.byMemory(ConnectionName.of("a"),
                SlotBuffers.inOne(LAYOUT, MemoryFrames.region(from.buffers())), firstStep, frames.sender(),
                (proxy, failure) -> {});
        ReceiveProxy receives = ReceiveProxy.byMemory(ConnectionName.of("b"),
                SlotBuffers.inOne(LAYOUT, MemoryFrames.region(to.buffers())), MemoryFrames.staging(arena, LAYOUT),
                firstStep, frames.receiver(), (proxy, failure) -> {},
                slots -> new UnpackReceiveSource(ConnectionName.of("b"), memory, slots));
        ReceivePort.SliceGather gather =
                new ReceivePort.SliceGather(new UnpackHandle.UnpackMemory(meta, handle, bounce, 0));
        int[] sizes = new int[SLICES];
        for (int chunk = 0; chunk < SLICES; chunk += 2) {
            sizes[chunk] = random.nextInt(3) == 0 ? 0 : 1 + random.nextInt(SLICE_BYTES);
            sizes[chunk + 1] = sizes[chunk] == 0 || random.nextInt(3) == 0 ? 0 : 1 + random.nextInt(SLICE_BYTES);
        }
        int sent = 0;
        int received = 0;
        for (int pass = 0; received < SLICES; pass++) {
            assertTrue(pass < 1_000_000, "stuck at slice " + received + ", seed " + seed);
            if (sent < SLICES && random.nextBoolean() && send(from, firstStep + 2L * sent, sizes[sent], sent)) {
                sent++;
            }
            sends.progress();
            receives.progress();
            long step = firstStep + 2L * received;
            if (random.nextBoolean() && to.recvMem().tailAcquire() - step >= 2) {
                long slot = LAYOUT.slotOffset(Protocol.SIMPLE, step);
                gather.next(to.buffers(), slot, sizes[received]);
                for (int i = 0; i < sizes[received]; i++) {
                    assertEquals((byte) (31 * received + i), to.buffers().get(ValueLayout.JAVA_BYTE, slot + i),
                            "slice " + received + ", byte " + i + ", seed " + seed);
                }
                to.sendMem().headRelease(step + 2);
                received++;
                if (received % 2 == 0 && random.nextInt(4) == 0) {
                    gather.leave();
                }
            }
        }
    }

    /** Sends a slice as a kernel does: the size, the data, then tail. */
    private static boolean send(ConnectionInfo info, long step, int bytes, int number) {
        if (info.sendMem().headAcquire() + ConnectionLayout.SLOTS - (step + 2) < 0) {
            return false;
        }
        info.recvMem().sizeRelease(ConnectionLayout.slot(step), bytes);
        long slot = LAYOUT.slotOffset(Protocol.SIMPLE, step);
        for (int i = 0; i < bytes; i++) {
            info.buffers().set(ValueLayout.JAVA_BYTE, slot + i, (byte) (31 * number + i));
        }
        info.recvMem().tailRelease(step + 2);
        return true;
    }
}
