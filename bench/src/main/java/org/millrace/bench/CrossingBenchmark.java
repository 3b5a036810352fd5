package org.millrace.bench;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.crossing.Calls;
import org.millrace.bench.measure.Loop;
import org.openjdk.jmh.annotations.Param;

/**
 * Calls between Java and C. A function that adds 1 is called from Java, and a Java method that adds 1 is called from C.
 * The loop of C calls the same function through a pointer that it reads anew for each call.
 */
public class CrossingBenchmark extends LoopBenchmark {

    /** Kind of call: downcalls, and an upcall from a loop of C. */
    @Param({"plain", "critical", "errno", "upcall"})
    public String call;

    @Override
    Loop loop(CLibrary c) {
        if (c != null) {
            return call.equals("errno") ? calls("crossing_call_errno", c.address("crossing_failing"))
                    : calls("crossing_call", c.address("crossing_callee"));
        }
        return switch (call) {
            case "plain" -> Calls::plain;
            case "critical" -> Calls::critical;
            case "errno" -> Calls::withErrno;
            case "upcall" -> calls("crossing_call", Calls.upcall());
            default -> throw new IllegalArgumentException("there is no call " + call);
        };
    }

    private static Loop calls(String symbol, MemorySegment function) {
        MemorySegment pointer = Arena.global().allocate(ValueLayout.ADDRESS);
        pointer.set(ValueLayout.ADDRESS, 0, function);
        return CLibrary.ofThisJvm().loop(symbol, MemorySegment.NULL, pointer);
    }
}
