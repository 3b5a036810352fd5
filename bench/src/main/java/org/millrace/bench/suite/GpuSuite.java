package org.millrace.bench.suite;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Locale;
import org.millrace.bench.access.Access;
import org.millrace.bench.access.LineMemory;
import org.millrace.bench.gpu.CopyLoops;
import org.millrace.bench.gpu.FlagMemory;
import org.millrace.bench.gpu.FlagTimes;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Pair;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaRuntime;
import org.millrace.cuda.CurrentDevice;
import org.millrace.cuda.PinnedMemory;
import org.millrace.cuda.PinnedMemory.Flag;

/** Memory that a GPU shares: accesses to it, flags that travel back and forth, and copies. */
public final class GpuSuite implements Suite {

    private static final String PINNED = "pinned";
    private static final String WRITE_COMBINED = "write-combined";
    private static final String POLLED = "pinned-polled";
    private static final String FLAGS = "flags";
    private static final String COPIES = "copies";
    private static final int[] COPIED = {8, 1024, 8192};
    private static final long[] DISTANCES = {0, 64, 128};
    private static final List<String> PLACES =
            List.of("Same line polled by the GPU", "Next line polled by the GPU", "A line two away polled by the GPU");
    private static final int LAUNCHES = 20;
    /**
     * Accesses that are omitted on write-combined memory, because a locked access to uncached memory locks the bus for
     * all cores, and the operating system may delay the thread for it. gcc's volatile stores are such accesses (xchg on
     * the word itself). HotSpot's volatile store is not: it is a plain store, and a locked instruction on the stack.
     */
    private static final List<Access> LOCKED =
            List.of(Access.GET_AND_ADD, Access.COMPARE_AND_SET, Access.FAILED_COMPARE_AND_SET);
    private static final List<Access> LOCKED_IN_C =
            List.of(Access.SET_VOLATILE, Access.DATA_VOLATILE, Access.VOLATILE_STORE_LOAD, Access.DATA_VOLATILE_POLL);

    @Override
    public String name() {
        return "gpu";
    }

    @Override
    public String title() {
        return "GPU: pinned memory, flags between GPU and host, and copies";
    }

    @Override
    public String description() {
        return "Accesses as under Fences, to memory of cudaHostAlloc, cached and write-combined, alone and while a "
                + "kernel reads a word of that line all the "
                + "time. Flags: a kernel stores tail and waits for head, the host answers; 'with fence' stores tail "
                + "behind __threadfence_system, as a kernel "
                + "does whose data must be seen first. A batch's time includes one launch. One way: from before the "
                + "kernel's store of tail until the host "
                + "saw it, with the GPU's clock set to the host's by the quickest round trips. Copies: one at a "
                + "time, from the call until the host sees that it was "
                + "made, by a copy engine and by a kernel that stays on the GPU and takes commands from host memory.";
    }

    @Override
    public List<String> variants(boolean full) {
        try {
            return CudaRuntime.load().deviceCount() > 0 ? List.of(PINNED, WRITE_COMBINED, POLLED, FLAGS, COPIES)
                    : List.of();
        } catch (RuntimeException | LinkageError noGpu) {
            return List.of();
        }
    }

    @Override
    public void run(String variant, Bench bench) throws IOException {
        CudaDevice device = CudaRuntime.load().device(0);
        bench.fact("GPU",
                device.name() + ", compute capability " + device.computeCapability() + ", PCI " + device.pciBusId()
                        + ", driver for CUDA " + CudaRuntime.versionText(device.runtime().driverVersion())
                        + ", runtime " + CudaRuntime.versionText(device.runtime().version()));
        try (CurrentDevice _ = device.makeCurrent()) {
            switch (variant) {
                case PINNED ->
                    accesses(bench, PinnedMemory.allocate(device, 4096, Arena.global(), Flag.MAPPED, Flag.PORTABLE));
                case WRITE_COMBINED -> writeCombined(bench, PinnedMemory.allocate(device, 4096, Arena.global(),
                        Flag.MAPPED, Flag.PORTABLE, Flag.WRITE_COMBINED));
                case POLLED -> polled(bench, device);
                case FLAGS -> flags(bench, new FlagMemory(device));
                case COPIES -> copies(bench, new CopyLoops(device));
                default -> throw new IllegalArgumentException("there is no variant " + variant);
            }
        }
    }

    private static void accesses(Bench bench, PinnedMemory memory) {
        LineMemory.choose(memory.host());
        for (Access access : Access.values()) {
            measure(bench, access.id(), access.group(), access, memory, true);
        }
    }

    private static void writeCombined(Bench bench, PinnedMemory memory) {
        LineMemory.choose(memory.host());
        for (Access access : Access.values()) {
            if (!LOCKED.contains(access)) {
                measure(bench, access.id(), access.group(), access, memory, !LOCKED_IN_C.contains(access));
            }
        }
        bench.note("write-combined memory: read-modify-writes, and C's volatile stores, are left out, since they would "
                + "lock the bus");
    }

    private static void polled(Bench bench, CudaDevice device) throws IOException {
        PinnedMemory memory = PinnedMemory.allocate(device, 4096, Arena.global(), Flag.MAPPED, Flag.PORTABLE);
        PinnedMemory stop = PinnedMemory.allocate(device, 4096, Arena.global(), Flag.MAPPED, Flag.PORTABLE);
        LineMemory.choose(memory.host());
        FlagMemory kernels = new FlagMemory(device);
        for (int place = 0; place < DISTANCES.length; place++) {
            for (Access access : FenceSuite.CONTENDED) {
                kernels.startPolling(memory.device().asSlice(DISTANCES[place]), stop);
                measure(bench, "polled." + DISTANCES[place] + "." + access.id(), PLACES.get(place), access, memory,
                        true);
                kernels.stopPolling(stop);
            }
        }
    }

    private static void measure(Bench bench, String id, String group, Access access, PinnedMemory memory,
            boolean withC) {
        bench.measure(Pair.same(id, group, access.title(), access.onSegment(),
                withC ? bench.c().loop(access.symbol(), memory.host(), MemorySegment.NULL) : null));
    }

    private static void copies(Bench bench, CopyLoops loops) {
        for (CopyLoops.Way way : CopyLoops.Way.values()) {
            for (int bytes : COPIED) {
                for (boolean kernel : new boolean[] {false, true}) {
                    String id = "copy." + way.name().toLowerCase(Locale.ROOT) + "." + bytes
                            + (kernel ? ".kernel" : ".engine");
                    bench.measure(Pair.same(id, "Copy, " + way.title(),
                            bytes + " B by " + (kernel ? "a kernel that stays" : "a copy engine"),
                            loops.of(way, bytes, kernel), null).withBytes(bytes));
                }
            }
        }
    }

    private static void flags(Bench bench, FlagMemory memory) {
        for (boolean fence : new boolean[] {false, true}) {
            String with = fence ? "with __threadfence_system" : "without a fence";
            bench.measure(
                    Pair.same(fence ? "roundtrip.fence" : "roundtrip", "Round trip", "GPU to host and back, " + with,
                            memory.answeredByJava(fence, null), memory.answeredByC(fence, null, bench.c())));
            long[] seen = new long[FlagMemory.SAMPLES];
            latencies(bench, fence, "java", memory, memory.answeredByJava(fence, seen), seen);
            if (bench.c().isPresent()) {
                MemorySegment ofC = Arena.global().allocate(ValueLayout.JAVA_LONG, FlagMemory.SAMPLES);
                Loop answer = memory.answeredByC(fence, ofC, bench.c());
                Loop copying = count -> {
                    long result = answer.run(count);
                    MemorySegment.copy(ofC, ValueLayout.JAVA_LONG, 0, seen, 0, (int) count);
                    return result;
                };
                latencies(bench, fence, "c", memory, copying, seen);
            }
        }
    }

    private static void latencies(Bench bench, boolean fence, String side, FlagMemory memory, Loop loop, long[] seen) {
        FlagTimes times = new FlagTimes();
        for (int launch = -2; launch < LAUNCHES; launch++) {
            if (loop.run(seen.length) == Loop.LOST) {
                bench.note("a kernel that posts steps had no answer");
                return;
            }
            if (launch >= 0) {
                times.add(memory, seen);
            }
        }
        String id = fence ? ".fence" : "";
        String with = fence ? ", with __threadfence_system" : ", without a fence";
        bench.add(new Bench.Distribution("latency.roundtrip" + id, "Round trip of a flag, seen by the GPU" + with, side,
                times.roundTrips(), Double.NaN));
        bench.add(new Bench.Distribution("latency.oneway" + id,
                "From the GPU's store of tail until the host sees it" + with, side, times.oneWay(), Double.NaN));
    }
}
