package org.millrace.bench;

import java.lang.foreign.Arena;
import java.util.List;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Partner;
import org.millrace.bench.ring.RingMemory;
import org.millrace.bench.ring.RingProtocol;
import org.millrace.bench.ring.RingRole;
import org.millrace.bench.ring.WorkLoops;
import org.openjdk.jmh.annotations.Param;

/** Round trips between two threads: a step over a ring that is a constant for C2, and an item of the work FIFO. */
public class FifoBenchmark extends LoopBenchmark {

    /** Memory between the two threads. */
    @Param({"constant", "work"})
    public String fifo;

    @Override
    Loop loop(CLibrary c) {
        Partner partner = partner();
        if (fifo.equals("work")) {
            WorkLoops work = new WorkLoops();
            return c == null ? partner.with(work.host(), work.device())
                    : partner.with(work.ofC("work_put", c), work.ofC("work_take", c));
        }
        RingMemory ring = new RingMemory(Arena.global().allocate(RingMemory.LAYOUT.totalBytes(), 4096));
        if (c != null) {
            RingRole role = new RingRole(RingProtocol.SIMPLE, 0, true);
            return partner.with(role.device(ring, 1), role.loop(ring));
        }
        List<Loop> java = RingProtocol.constant(ring);
        return partner.with(java.getFirst(), java.getLast());
    }
}
