package org.millrace.bench;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.millrace.bench.gpu.CopySetting;
import org.millrace.cuda.driver.CopyQueue;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** Copies like GIN's, one at a time, from the call until the host sees the completion. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 3, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
@Warmup(iterations = 5, time = 200, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 10, time = 100, timeUnit = TimeUnit.MILLISECONDS)
public class GpuCopyBenchmark {

    private static final long BYTES = 8192;
    private static final Duration LINGER = Duration.ofMillis(1);
    private static final long TIMEOUT_NANOS = Duration.ofSeconds(5).toNanos();

    /** Direction of a copy. */
    public enum Way {
        /** From the GPU's memory to pinned memory. */
        OUT("GPU to host"),
        /** From pinned memory to the GPU's. */
        IN("host to GPU"),
        /** Within the GPU's memory. */
        WITHIN("within the GPU");

        private final String title;

        Way(String title) {
            this.title = title;
        }

        /** {@return the title for readers} */
        public String title() {
            return title;
        }
    }

    /** Direction of a copy. */
    @Param
    public Way way;

    /** Size of a copy. */
    @Param({"8", "1024", "8192"})
    public int bytes;

    /** Whether a kernel that stays on the GPU and takes commands from host memory copies, and not a copy engine. */
    @Param({"false", "true"})
    public boolean kernel;

    private CopySetting setting;
    private CopyQueue queue;
    private long to;
    private long from;

    /** Creates memory to copy, and the copier. */
    @Setup
    public void setUp() {
        setting = new CopySetting();
        to = setting.memory(BYTES, way == Way.OUT);
        from = setting.memory(BYTES, way == Way.IN);
        queue = setting.queue(kernel ? LINGER : Duration.ZERO);
    }

    /**
     * Copies once.
     *
     * @return the copy's number
     */
    @Benchmark
    public long copy() {
        long number = queue.copy(to, from, bytes);
        long begin = System.nanoTime();
        while (!queue.isDone(number)) {
            if (System.nanoTime() - begin > TIMEOUT_NANOS) {
                throw new IllegalStateException("a copy was not made");
            }
            Thread.onSpinWait();
        }
        return number;
    }

    /** Restores the thread's device. */
    @TearDown
    public void tearDown() {
        setting.close();
    }
}
