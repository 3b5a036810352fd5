package org.millrace.bench;

import org.millrace.bench.measure.Loop;
import org.millrace.proxy.ProxyAgent;

/** The proxies' benchmarks as loops, for the runner that compares them with C. */
public final class ProxyBench {

    private static final long SLOT_BYTES = 4096;

    private ProxyBench() {}

    /**
     * Returns an agent's passes over connections without work.
     *
     * @param connections number of connections, half of them sending
     * @return the loop
     */
    public static Loop idlePass(int connections) {
        ProxyAgent agent = new ProxyAgent("benchmark");
        for (int pair = 0; pair < connections / 2; pair++) {
            ProxyPair proxies = new ProxyPair(pair, SLOT_BYTES);
            proxies.announce();
            agent.add(proxies.proxies());
            agent.doWork(); // the agent takes the proxies from its queue
        }
        return count -> {
            long work = 0;
            for (long i = 0; i < count; i++) {
                work += agent.doWork();
            }
            return work;
        };
    }

    /**
     * Returns slices that move end to end.
     *
     * @param payload size of a slice, in bytes
     * @return the loop
     */
    public static Loop step(int payload) {
        ProxyAgent agent = new ProxyAgent("benchmark");
        ProxyPair proxies = new ProxyPair(0, Math.max(payload, SLOT_BYTES) / ProxyPair.SLICE_STEPS);
        proxies.announce();
        agent.add(proxies.proxies());
        agent.doWork(); // the agent takes the proxies from its queue
        return count -> {
            long consumed = 0;
            for (long i = 0; i < count; i++) {
                consumed = proxies.move(agent, payload);
            }
            return consumed;
        };
    }
}
