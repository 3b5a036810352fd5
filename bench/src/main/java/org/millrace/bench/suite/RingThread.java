package org.millrace.bench.suite;

import java.util.HashMap;
import java.util.Map;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.ring.OtherSide;
import org.millrace.bench.ring.RingMemory;
import org.millrace.bench.ring.RingRole;

/** A ring's other side on another thread of this process. */
final class RingThread implements OtherSide {

    private final Partner partner;
    private final Map<RingRole, Loop> loops = new HashMap<>();

    RingThread(RingMemory ring, Bench bench) {
        partner = new Partner(bench.cores());
        RingRole.ALL.forEach(role -> loops.put(role, role.loop(ring, bench.c())));
    }

    @Override
    public void start(RingRole role, long count) {
        partner.start(loops.get(role), count);
    }

    @Override
    public long await() {
        return partner.await();
    }

    @Override
    public void close() {
        partner.close();
    }
}
