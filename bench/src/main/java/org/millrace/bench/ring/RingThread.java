package org.millrace.bench.ring;

import java.util.HashMap;
import java.util.Map;
import org.millrace.bench.measure.Cores;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Partner;

/** A ring's other side on another thread of this process. */
public final class RingThread implements OtherSide {

    private final RingMemory ring;
    private final Map<RingRole, Loop> loops = new HashMap<>();
    private final Partner partner = new Partner(Cores.ofThisProcess());

    /**
     * Starts the thread.
     *
     * @param ring ring between the two threads
     */
    public RingThread(RingMemory ring) {
        this.ring = ring;
    }

    @Override
    public RingMemory ring() {
        return ring;
    }

    @Override
    public void start(RingRole role, long count) {
        partner.start(loops.computeIfAbsent(role, each -> each.loop(ring)), count);
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
