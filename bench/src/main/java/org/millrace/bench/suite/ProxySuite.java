package org.millrace.bench.suite;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.millrace.bench.ProxyBench;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Pair;

/** Passes of a proxy's agent, and steps end to end. */
public final class ProxySuite implements Suite {

    private static final String PASS = "pass";
    private static final String STEP = "step";
    private static final int PAGE = 4096;
    private static final List<Integer> CONNECTIONS = List.of(2, 16, 128);
    private static final List<Integer> PAYLOADS = List.of(0, PAGE, 1 << 20);

    @Override
    public String name() {
        return "proxy";
    }

    @Override
    public String title() {
        return "Proxy";
    }

    @Override
    public String description() {
        return "Pass: ProxyAgent.doWork() over connections, half of them sending, that have an operation and wait "
                + "for its next step; C looks at one tail for "
                + "each. Step: a slice of two steps end to end on one thread, posted, sent, received, consumed, its "
                + "slots free again, over frames in memory; C "
                + "makes the accesses to the shared memory and the copy, and nothing else.";
    }

    @Override
    public List<String> variants(boolean full) {
        return List.of(PASS, STEP);
    }

    @Override
    public void run(String variant, Bench bench) {
        if (variant.equals(PASS)) {
            for (int connections : CONNECTIONS) {
                MemorySegment arguments = Arena.global().allocateFrom(ValueLayout.JAVA_LONG, connections, PAGE);
                bench.measure(Pair.bare("pass." + connections, "A pass that finds nothing",
                        connections + " connections", ProxyBench.idlePass(connections),
                        bench.c()
                                .loop("proxy_pass", Arena.global().allocate((long) connections * PAGE, PAGE),
                                        arguments)));
            }
            return;
        }
        for (int bytes : PAYLOADS) {
            MemorySegment arguments = Arena.global()
                    .allocateFrom(ValueLayout.JAVA_LONG, bytes,
                            Arena.global().allocate(Math.max(bytes, 64), PAGE).address(),
                            Arena.global().allocate(Math.max(bytes, 64), PAGE).address());
            Loop c = bench.c().loop("proxy_step", Arena.global().allocate(4L * PAGE, PAGE), arguments);
            String title = bytes == 0 ? "no payload" : bytes / 1024 + " KiB";
            bench.measure(Pair.bare("step." + bytes, "A slice end to end", title, ProxyBench.step(bytes), c)
                    .withBytes(bytes));
        }
    }
}
