package org.millrace.bench;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.millrace.proxy.ProxyAgent;
import org.millrace.proxy.spi.ProxyConnection;
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
import org.openjdk.jmh.annotations.Warmup;

/**
 * Cost of idle connections. {@code pass} is an agent's pass that finds no work: the time until a proxy polls a
 * connection again while nothing moves. {@code busyStep} is a step of one busy connection among the idle ones. An
 * iteration of a second has more than a million busy steps.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 2, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
public class IdlePassBenchmark {

    private static final long SLOT_BYTES = 64;

    /** Number of idle connections. Every second one sends, the others receive. */
    @Param({"2", "16", "128", "1024"})
    int connections;

    /** Event that the idle proxies wait for: an operation, or the device's next step within one. */
    @Param
    WaitsFor waitsFor;

    private final ProxyAgent agent = new ProxyAgent("benchmark");
    private ProxyPair busy;

    /** Event that an idle proxy polls for. */
    public enum WaitsFor {
        /** The operations' queue is empty. */
        OPERATION,
        /** The sender polls {@code tail}, the receiver the network. */
        STEP
    }

    /** Makes the connections. */
    @Setup
    public void setUp() {
        List<ProxyConnection> idle = new ArrayList<>();
        while (idle.size() < connections) {
            ProxyPair proxies = new ProxyPair(idle.size(), SLOT_BYTES);
            if (waitsFor == WaitsFor.STEP) {
                proxies.announce();
            }
            idle.addAll(proxies.proxies());
        }
        agent.add(idle.subList(0, connections));
        agent.doWork(); // the agent takes the proxies from its queue
        busy = new ProxyPair(connections, SLOT_BYTES);
    }

    /** One pass. */
    @Benchmark
    public int pass() {
        return agent.doWork();
    }

    /** Moves one slice of two steps without data, end to end, on one more connection, which is busy. */
    @Benchmark
    public long busyStep() {
        if (busy.posted() == 0) {
            busy.announce();
            agent.add(busy.proxies());
        }
        return busy.move(agent, 0);
    }
}
