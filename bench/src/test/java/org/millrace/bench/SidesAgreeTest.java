package org.millrace.bench;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.millrace.bench.access.Access;
import org.millrace.bench.access.LineMemory;
import org.millrace.bench.comparator.CLibrary;
import org.millrace.bench.comparator.CompiledLibrary;
import org.millrace.bench.measure.Cores;
import org.millrace.bench.measure.Loop;
import org.millrace.bench.measure.Partner;
import org.millrace.bench.ring.OtherSide;
import org.millrace.bench.ring.RingMemory;
import org.millrace.bench.ring.RingProtocol;
import org.millrace.bench.ring.RingRole;
import org.millrace.bench.ring.RingThread;
import org.millrace.bench.ring.WorkLoops;

/** Both sides of a pair must do the same work, because a ratio would otherwise be meaningless. */
class SidesAgreeTest {

    private static final int COUNT = 1003;
    /**
     * Number of steps between two threads, with which every ring wraps. On a busy machine each may cost time slices.
     */
    private static final int STEPS = 99;

    private static CLibrary c;

    @BeforeAll
    static void compile() {
        assumeTrue(CompiledLibrary.version() != null, "no C compiler here: nothing was compared with C");
        c = CLibrary.ofThisJvm();
    }

    @Test
    void everyAccessLeavesTheSameMemoryAndSum() {
        MemorySegment line = Arena.global().allocate(LineMemory.BYTES, LineMemory.BYTES);
        LineMemory.choose(line);
        for (Access access : Access.values()) {
            line.fill((byte) 0);
            long ofJava = access.loop().run(COUNT);
            byte[] byJava = line.toArray(ValueLayout.JAVA_BYTE);
            line.fill((byte) 0);
            assertEquals(ofJava, c.loop(access.symbol(), line, MemorySegment.NULL).run(COUNT), access.title());
            assertArrayEquals(byJava, line.toArray(ValueLayout.JAVA_BYTE), access.title());
        }
    }

    @Test
    void javaAndCUnderstandEachOtherOverEveryProtocol() {
        RingMemory ring = new RingMemory(Arena.global().allocate(RingMemory.LAYOUT.totalBytes(), 4096));
        long steps = 0;
        try (OtherSide other = new RingThread(ring)) {
            for (RingRole role : RingRole.ALL) {
                for (boolean deviceOfC : new boolean[] {false, true}) {
                    Loop device = role.protocol().device(ring, role.bytes(), 8, deviceOfC ? c : null);
                    other.start(role, STEPS);
                    assertEquals(STEPS, device.run(STEPS), role.toString());
                    assertEquals((long) STEPS * role.bytes(), other.await(), role + ": the sizes that were taken");
                    steps += STEPS;
                }
            }
        }
        assertEquals(steps, ring.segment().get(ValueLayout.JAVA_LONG, RingMemory.LAYOUT.sendMemOffset()),
                "head counts all steps");
    }

    @Test
    void theConstantRingIsTheSameRing() {
        RingMemory ring = new RingMemory(Arena.global().allocate(RingMemory.LAYOUT.totalBytes(), 4096));
        List<Loop> java = RingProtocol.constant(ring);
        RingRole ofC = new RingRole(RingProtocol.SIMPLE, 0, true);
        try (Partner partner = new Partner(Cores.ofThisProcess())) {
            assertEquals(STEPS, partner.with(java.getFirst(), ofC.loop(ring)).run(STEPS), "Java's device, C's proxy");
            assertEquals(STEPS, partner.with(ofC.device(ring, 1), java.getLast()).run(STEPS),
                    "C's device, Java's proxy");
        }
    }

    @Test
    void workItemsPassBetweenJavaAndC() {
        try (Partner partner = new Partner(Cores.ofThisProcess())) {
            WorkLoops first = new WorkLoops();
            assertEquals(STEPS, partner.with(first.host(), first.ofC("work_take", c)).run(STEPS),
                    "Java's host, C's device");
            WorkLoops second = new WorkLoops();
            assertEquals(STEPS, partner.with(second.ofC("work_put", c), second.device()).run(STEPS),
                    "C's host, Java's device");
        }
    }

    @Test
    void timedStepsHaveTimes() {
        RingMemory ring = new RingMemory(Arena.global().allocate(RingMemory.LAYOUT.totalBytes(), 4096));
        MemorySegment times = Arena.global().allocate(ValueLayout.JAVA_LONG, STEPS);
        long[] ofJava = new long[STEPS];
        try (OtherSide other = new RingThread(ring)) {
            RingRole role = new RingRole(RingProtocol.SIMPLE, 0, false);
            assertNotEquals(Loop.LOST, other.with(RingProtocol.timedDevice(ring, times, c), role).run(STEPS));
            assertNotEquals(Loop.LOST, other.with(RingProtocol.timedDevice(ring, ofJava), role).run(STEPS));
        }
        for (int step = 1; step < STEPS; step++) {
            assertTrue(times.getAtIndex(ValueLayout.JAVA_LONG, step) > 0 && ofJava[step] > 0, "step " + step);
        }
    }
}
