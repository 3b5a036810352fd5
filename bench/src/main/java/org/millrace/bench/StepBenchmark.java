package org.millrace.bench;

import java.io.IOException;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.ring.OtherSide;
import org.millrace.bench.ring.RingProtocol;
import org.millrace.bench.ring.RingRole;
import org.openjdk.jmh.annotations.Param;

/**
 * A step through {@code connFifo}, {@code tail} and {@code head}. One side posts a step as a device does. The other
 * takes it and frees its slot as a proxy does. Both spin. Java's sides use the descriptors of {@code org.millrace.abi}
 * as the proxies do, with their addresses in instance fields.
 */
public class StepBenchmark extends LoopBenchmark {

    /** Location of the two sides: {@code threads} of this process, or {@code processes}. */
    @Param({"threads", "processes"})
    public String between;

    /** Number of steps in flight: 1 is a round trip of a step and its credit, 8 a stream through all slots. */
    @Param({"1", "8"})
    public int inFlight;

    /** Protocol, and bytes of a step. */
    @Param({"SIMPLE.0", "SIMPLE.480", "LL.480", "LL128.480"})
    public String protocol;

    @Override
    Loop loop(CLibrary c) throws IOException {
        String[] words = protocol.split("\\.");
        RingRole role = new RingRole(RingProtocol.valueOf(words[0]), Integer.parseInt(words[1]), c != null);
        OtherSide other = opened(OtherSide.of(between));
        return other.with(role.device(other.ring(), inFlight), role);
    }
}
