package org.millrace.bench;

import java.util.concurrent.TimeUnit;
import org.millrace.proxy.ProxyAgent;
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
 * A slice end to end on one thread: posted by the sending device, sent by its proxy, received by the other proxy,
 * consumed by the receiving device, until its slots are free again. The network in between is a copy. The time is
 * therefore the proxies' own cost plus one copy of the payload. With 0 bytes it is their cost alone.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(value = 2, jvmArgsAppend = "--enable-native-access=ALL-UNNAMED")
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
public class ProxyStepBenchmark {

    /** Size of a slice, in bytes. */
    @Param({"0", "4096", "1048576"})
    int payload;

    private ProxyAgent agent;
    private ProxyPair proxies;

    /** Makes the connection and announces an operation that never ends. */
    @Setup
    public void setUp() {
        agent = new ProxyAgent("benchmark");
        proxies = new ProxyPair(0, Math.max(payload, 4096) / ProxyPair.SLICE_STEPS);
        proxies.announce();
        agent.add(proxies.proxies());
        agent.doWork(); // the agent takes the proxies from its queue
    }

    /** One slice. */
    @Benchmark
    public long slice() {
        return proxies.move(agent, payload);
    }
}
