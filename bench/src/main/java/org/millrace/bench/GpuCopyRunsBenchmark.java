package org.millrace.bench;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.millrace.bench.gpu.CopySetting;
import org.millrace.cuda.driver.CopyOrder;
import org.millrace.cuda.driver.CopyQueue;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Copies like those of puts with signals: relaxed copies from pinned memory to the GPU's memory, and a strict copy of 8
 * bytes after each run of them. Many copies are in flight. The runs of several sequences take turns.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 3, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
@Warmup(iterations = 5, time = 100, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 100, timeUnit = TimeUnit.MILLISECONDS)
public class GpuCopyRunsBenchmark {

    private static final int COPIES = 65_536;
    private static final int COPIES_PER_PASS = 64;
    private static final int PLACES = 1024;
    private static final int PLACE_BYTES = 8192;
    private static final Duration LINGER = Duration.ofMillis(1);
    private static final long TIMEOUT_NANOS = Duration.ofSeconds(10).toNanos();

    /** Number of relaxed copies between two strict copies of a sequence. */
    @Param({"3", "63"})
    public int run;

    /** Number of sequences. */
    @Param({"1", "16"})
    public int sequences;

    /** Size of a relaxed copy. */
    @Param({"8", "7168"})
    public int bytes;

    /** Whether the copy kernel makes the copies, and not a copy engine. */
    @Param({"true"})
    public boolean kernel;

    private CopySetting setting;
    private CopyQueue queue;
    private long to;
    private long from;
    private long begun;

    /** Creates memory to copy, and the queue. */
    @Setup
    public void setUp() {
        setting = new CopySetting();
        to = setting.memory(PLACES * PLACE_BYTES, false);
        from = setting.memory(PLACES * PLACE_BYTES, true);
        queue = setting.queue(kernel ? LINGER : Duration.ZERO);
    }

    /** Begins copies as GIN's agent does, pass by pass, and waits for all of them. */
    @Benchmark
    @OperationsPerInvocation(COPIES)
    public void copies() {
        long deadline = System.nanoTime() + TIMEOUT_NANOS;
        long end = begun + COPIES;
        while (begun != end || queue.lastDone() != queue.last()) {
            for (int i = 0; i < COPIES_PER_PASS && begun != end && queue.hasRoom(); i++) {
                begin(begun++);
            }
            queue.submit();
            queue.lastDone();
            if (deadline - System.nanoTime() < 0) {
                throw new IllegalStateException("copies were not made");
            }
        }
    }

    private void begin(long number) {
        long place = number % PLACES * PLACE_BYTES;
        int sequence = (int) (number / (run + 1) % sequences);
        if (number % (run + 1) == run) {
            queue.copyFromHost(to + place, from + place, Long.BYTES, CopyOrder.strict(sequence));
        } else {
            queue.copyFromHost(to + place, from + place, bytes, CopyOrder.relaxed(sequence));
        }
    }

    /** Restores the thread's device. */
    @TearDown
    public void tearDown() {
        setting.close();
    }
}
