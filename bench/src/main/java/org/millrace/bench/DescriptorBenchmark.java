package org.millrace.bench;

import java.util.concurrent.TimeUnit;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Accesses through the descriptors, as proxies make them. The descriptor is an instance field, and no other thread
 * accesses the line. {@code baseline} is the cost of JMH's loop and of reading a heap field.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 2, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
public class DescriptorBenchmark {

    private final Connection connection = Connection.allocate(4096);
    private final SendMem sendMem = connection.sendMem();
    private final RecvMem recvMem = connection.recvMem();
    private long step;

    /** Counts in a heap field. */
    @Benchmark
    public long baseline() {
        return ++step;
    }

    /** Reads {@code head}, acquire. */
    @Benchmark
    public long headAcquire() {
        return sendMem.headAcquire();
    }

    /** Stores {@code head}, release. */
    @Benchmark
    public void headRelease() {
        sendMem.headRelease(++step);
    }

    /** Reads {@code tail}, acquire. */
    @Benchmark
    public long tailAcquire() {
        return recvMem.tailAcquire();
    }

    /** Stores {@code tail}, release. */
    @Benchmark
    public void tailRelease() {
        recvMem.tailRelease(++step);
    }

    /** Reads a slot's size, acquire. */
    @Benchmark
    public long sizeAcquire() {
        return recvMem.sizeAcquire(ConnectionLayout.slot(++step));
    }

    /** Stores a slot's size, release. */
    @Benchmark
    public void sizeRelease() {
        recvMem.sizeRelease(ConnectionLayout.slot(++step), step);
    }

    /** Reads a slot's size, plain. */
    @Benchmark
    public long sizePlainRead() {
        return recvMem.sizePlain(ConnectionLayout.slot(++step));
    }

    /** Stores a slot's size, plain. */
    @Benchmark
    public void sizePlainWrite() {
        recvMem.sizePlain(ConnectionLayout.slot(++step), step);
    }

    /**
     * Makes the accesses of a device that posts a step, and of the proxy that takes it: stores of size and tail, then
     * loads of tail and size.
     */
    @Benchmark
    public long postAndTake() {
        int slot = ConnectionLayout.slot(step++);
        recvMem.sizePlain(slot, step);
        recvMem.tailRelease(step);
        return recvMem.tailAcquire() + recvMem.sizePlain(slot);
    }
}
