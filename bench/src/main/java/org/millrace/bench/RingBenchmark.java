package org.millrace.bench;

import java.util.concurrent.TimeUnit;
import org.millrace.abi.ConnectionLayout;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * A step of protocol Simple between two threads, through {@code connFifo}, {@code tail} and {@code head}; no data is
 * moved. Both threads spin, so two free cores are needed: on fewer the operating system's scheduler is what is
 * measured.
 *
 * <pre>
 *   this thread (the device)                   the other (the proxy)
 *   size → connFifo[slot], tail (release) →    tail (acquire), size
 *   head (acquire)                        ←    size = -1, head (release)
 * </pre>
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 5, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 3, time = 1)
public class RingBenchmark {

    /** Number of spins between two checks whether the other thread is alive. */
    private static final int LOOK_INTERVAL = 1 << 20;

    private Connection connection;
    private RingEcho echo;
    private long step;
    private long posted;

    /** Starts the other thread. */
    @Setup
    public void setUp() {
        connection = Connection.allocate(4096);
        step = 0;
        posted = 0;
        echo = new RingEcho(connection);
    }

    /** Stops the other thread, and compares the sizes that it took with the posted ones. */
    @TearDown
    public void tearDown() {
        awaitHead(step);
        long taken = echo.stop();
        if (taken != posted) {
            throw new IllegalStateException("sizes of " + posted + " bytes were posted, but " + taken + " were taken");
        }
    }

    /** Sends one step and waits for its credit. No other step is in flight. */
    @Benchmark
    public void roundTrip() {
        post();
        awaitHead(step);
    }

    /** Sends one step of a stream. The number of steps in flight equals the number of slots. */
    @Benchmark
    public void stream() {
        awaitHead(step + 1 - ConnectionLayout.SLOTS);
        post();
    }

    private void post() {
        posted += step;
        connection.recvMem().sizePlain(ConnectionLayout.slot(step), step);
        connection.recvMem().tailRelease(++step);
    }

    private void awaitHead(long target) {
        int spins = 0;
        while (connection.sendMem().headAcquire() - target < 0) {
            Thread.onSpinWait();
            if (++spins % LOOK_INTERVAL == 0 && !echo.isAlive()) {
                throw new IllegalStateException("the other thread ended while this one waits for step " + target);
            }
        }
    }
}
