package org.millrace.bench.report;

import org.millrace.bench.access.Access;
import org.millrace.bench.GpuCopyBenchmark;
import org.millrace.bench.idle.Waiting;
import org.millrace.bench.ring.WorkLoops;

/**
 * Place of a benchmark's result in the tables.
 *
 * @param table   name of the table, SUITE:VARIANT
 * @param group   heading shared by the rows of a group, empty for latencies
 * @param title   title for readers
 * @param ofC     whether C was measured
 * @param sameWay whether both sides access memory in the same way. Otherwise C does the minimum of the task
 */
record Row(String table, String group, String title, boolean ofC, boolean sameWay) {

    private static final int KIB = 1024;

    /** Returns the place of a result, null if no table has it. */
    static Row of(JmhResult result) {
        return switch (result.name()) {
            case "AccessBenchmark.loop" -> {
                String memory = result.param("memory");
                Access access = Access.valueOf(result.param("access"));
                yield same(result, (isGpus(memory) ? "gpu:" : "fences:") + memory, access.group(), access.title());
            }
            case "ContendedBenchmark.loop" -> contended(result);
            case "CrossingBenchmark.loop" ->
                bare("crossings:calls", "Calls", call(result.param("call")), result.param("side").equals("C"));
            case "WayBenchmark.loop" -> {
                String[] words = result.param("access").split("\\.");
                yield same(result, "crossings:accesses", way(words[0]), access(words[1]));
            }
            case "StepBenchmark.loop" -> {
                String[] words = result.param("protocol").split("\\.");
                yield same(result, "rings:" + result.param("between"),
                        result.param("inFlight").equals("1") ? "Round trip" : "Stream",
                        words[0] + (words[1].equals("0") ? ", no data" : ", " + words[1] + " bytes"));
            }
            case "FifoBenchmark.loop" -> result.param("fifo").equals("work")
                    ? same(result, "rings:threads", "Work FIFO",
                            "one item of " + WorkLoops.ITEM_BYTES + " bytes, put in, read and given back")
                    : same(result, "rings:threads", "Round trip, segments static final", "SIMPLE, no data");
            case "StepLatencyBenchmark.steps" -> same(result, "rings:" + result.param("between"), "",
                    "Round trip, SIMPLE without data, " + (result.param("latency").equals("measured") ? "as measured"
                            : "corrected for coordinated omission"));
            case "IdleBenchmark.steps" -> {
                boolean busy = result.param("interval").equals("20");
                yield same(result, busy ? "idle:every-20us" : "idle:every-1ms", "",
                        Waiting.valueOf(result.param("idle")).title() + ", a step every "
                                + (busy ? "20 µs" : "millisecond"));
            }
            case "IdlePassBenchmark.pass" ->
                result.param("waitsFor").equals("STEP") ? proxy("pass", result.param("connections"), false) : null;
            case "ProxyStepBenchmark.slice" -> proxy("step", result.param("payload"), false);
            case "ProxyInCBenchmark.loop" -> {
                String[] words = result.param("work").split("\\.");
                yield proxy(words[0], words[1], true);
            }
            case "FrameBenchmark.loop" -> !result.param("inFlight").equals("0") ? null
                    : bare("frames:" + result.param("network"),
                            result.param("shape").equals("stream") ? "Stream" : "Round trip",
                            size(result.param("bytes")), result.param("side").equals("C"));
            case "GpuFlagBenchmark.loop" ->
                same(result, "gpu:flags", "Round trip", "GPU to host and back, " + fence(result));
            case "GpuFlagLatencyBenchmark.steps" -> same(result, "gpu:flags", "",
                    (result.param("flag").equals("oneway") ? "From the GPU's store of tail until the host sees it, "
                            : "Round trip of a flag, seen by the GPU, ") + fence(result));
            case "GpuCopyBenchmark.copy" ->
                new Row("gpu:copies", "Copy, " + GpuCopyBenchmark.Way.valueOf(result.param("way")).title(),
                        result.param("bytes") + " B by "
                                + (result.param("kernel").equals("true") ? "a kernel that stays" : "a copy engine"),
                        false, true);
            default -> null;
        };
    }

    private static Row same(JmhResult result, String table, String group, String title) {
        return new Row(table, group, title, result.param("side").equals("C"), true);
    }

    private static Row bare(String table, String group, String title, boolean ofC) {
        return new Row(table, group, title, ofC, false);
    }

    private static Row contended(JmhResult result) {
        String memory = result.param("memory");
        String place = switch (result.param("distance")) {
            case "0" -> "Same line ";
            case "64" -> "Next line ";
            default -> "A line two away ";
        };
        return same(result, isGpus(memory) ? "gpu:" + memory + "-polled" : "fences:" + memory + "-contended",
                place + result.param("other") + (isGpus(memory) ? " by the GPU" : ""),
                Access.valueOf(result.param("access")).title());
    }

    private static Row proxy(String work, String size, boolean ofC) {
        return work.equals("pass") ? bare("proxy:pass", "A pass that finds nothing", size + " connections", ofC)
                : bare("proxy:step", "A slice end to end", size(size), ofC);
    }

    private static boolean isGpus(String memory) {
        return memory.equals("pinned") || memory.equals("write-combined");
    }

    private static String call(String call) {
        return switch (call) {
            case "plain" -> "downcall";
            case "critical" -> "downcall, critical";
            case "errno" -> "downcall, errno captured";
            default -> "upcall from a loop of C";
        };
    }

    private static String way(String way) {
        return switch (way) {
            case "static" -> "segment, static final";
            case "local" -> "segment, instance field copied to a local variable";
            case "instance" -> "segment, instance field";
            case "buffer" -> "direct ByteBuffer, view VarHandle, instance field";
            case "array" -> "long[], static final";
            case "atomics" -> "AtomicLongArray, instance field";
            case "chronicle" -> "Chronicle Bytes, PointerBytesStore, instance field";
            default -> "Descriptors of org.millrace.abi, instance fields";
        };
    }

    private static String access(String access) {
        return switch (access) {
            case "get_and_add" -> "getAndAdd";
            case "head_release" -> "SendMem.headRelease";
            case "tail_acquire" -> "RecvMem.tailAcquire";
            case "size_acquire" -> "RecvMem.sizeAcquire";
            case "size_plain" -> "RecvMem.sizePlain (store)";
            default -> access.replace('_', ' ');
        };
    }

    private static String fence(JmhResult result) {
        return result.param("fence").equals("true") ? "with __threadfence_system" : "without a fence";
    }

    private static String size(String bytes) {
        int size = Integer.parseInt(bytes);
        return size == 0 ? "no payload" : size < KIB ? size + " bytes" : size / KIB + " KiB";
    }
}
