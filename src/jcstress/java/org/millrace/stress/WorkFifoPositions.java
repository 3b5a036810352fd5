package org.millrace.stress;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.AbortFlag;
import org.millrace.abi.kernel.WorkCounters;
import org.millrace.abi.kernel.WorkFifoCounters;
import org.millrace.device.WorkFifo;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.JJJ_Result;
import org.openjdk.jcstress.infra.results.JJ_Result;

/** The data that the work FIFO's counters, the abort flag and the work counters publish. */
public final class WorkFifoPositions {

    private WorkFifoPositions() {}

    /** The counters cross 2^32. A work item is present when the position of produced work is beyond it. */
    @JCStressTest
    @Outcome(id = "0, 0, 0", expect = ACCEPTABLE, desc = "nothing yet")
    @Outcome(id = "32, 7, 8", expect = ACCEPTABLE, desc = "both units of the item, before and behind the wrap")
    @Outcome(expect = FORBIDDEN, desc = "the position came before the item")
    @State
    public static class ProducedComesAfterTheItem {
        private final MemorySegment ring = Arena.ofAuto().allocate(64, 64);
        private final WorkFifoCounters counters =
                WorkFifoCounters.of(Arena.ofAuto().allocate(WorkFifoCounters.BYTES, WorkFifoCounters.ALIGNMENT));
        private final WorkFifo fifo = new WorkFifo(ring, counters, -16);
        private final MemorySegment item = MemorySegment.ofArray(new long[] {7, 7, 8, 8});

        /** The host. */
        @Actor
        public void host() {
            fifo.put(item);
        }

        /** The kernel. */
        @Actor
        public void kernel(JJJ_Result result) {
            result.r1 = counters.producedAcquire() + 16;
            if (result.r1 != 0) {
                result.r2 = ring.get(ValueLayout.JAVA_LONG, 48);
                result.r3 = ring.get(ValueLayout.JAVA_LONG, 8);
            }
        }
    }

    /** A full FIFO: the host overwrites an item only when the kernel that reads it has exited. */
    @JCStressTest
    @Outcome(id = "[01], 7", expect = ACCEPTABLE, desc = "the kernel has read its own item")
    @Outcome(expect = FORBIDDEN, desc = "the item was overwritten under the kernel")
    @State
    public static class ConsumedComesAfterTheReading {
        private final MemorySegment ring = Arena.ofAuto().allocate(16, 64);
        private final WorkFifoCounters counters =
                WorkFifoCounters.of(Arena.ofAuto().allocate(WorkFifoCounters.BYTES, WorkFifoCounters.ALIGNMENT));

        /** Fills the FIFO with one item. */
        public ConsumedComesAfterTheReading() {
            counters.consumedRelease(-16);
            ring.set(ValueLayout.JAVA_LONG, 0, 7);
            counters.producedRelease(0);
        }

        /** The kernel, and the callback after it. */
        @Actor
        public void kernel(JJ_Result result) {
            result.r2 = ring.get(ValueLayout.JAVA_LONG, 0);
            counters.consumedRelease(0);
        }

        /** The host. */
        @Actor
        public void host(JJ_Result result) {
            boolean room = counters.producedAcquire() + 16 - counters.consumedAcquire() <= 16;
            result.r1 = room ? 1 : 0;
            if (room) {
                ring.set(ValueLayout.JAVA_LONG, 0, 8);
            }
        }
    }

    /** A kernel that sees the abort flag also sees the reason. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "goes on")
    @Outcome(id = "1, 7", expect = ACCEPTABLE, desc = "leaves and knows why")
    @Outcome(expect = FORBIDDEN, desc = "leaves and does not know why")
    @State
    public static class TheReasonComesBeforeTheAbort {
        private final AbortFlag flag = AbortFlag.of(Arena.ofAuto().allocate(AbortFlag.BYTES, 64));
        private long reason;

        /** The host. */
        @Actor
        public void host() {
            reason = 7;
            flag.raise();
        }

        /** The kernel. */
        @Actor
        public void kernel(JJ_Result result) {
            if (flag.raisedAcquire()) {
                result.r1 = 1;
                result.r2 = reason;
            }
        }
    }

    /**
     * A host reads the time of a work item while a later item takes its slot. The host gets the correct time or none.
     */
    @JCStressTest
    @Outcome(id = "-1, -1", expect = ACCEPTABLE, desc = "the slot is being written")
    @Outcome(id = "100, -1", expect = ACCEPTABLE, desc = "the work before")
    @Outcome(id = "-1, 6500", expect = ACCEPTABLE, desc = "the later work")
    @Outcome(id = "100, 6500", expect = ACCEPTABLE, desc = "the work before, then the later one")
    @Outcome(expect = FORBIDDEN, desc = "the time of another work")
    @State
    public static class TimesBelongToTheirWork {
        private final WorkCounters counters = WorkCounters.of(Arena.ofAuto().allocate(WorkCounters.BYTES, 64));

        /** Records work item 1. */
        public TimesBelongToTheirWork() {
            counters.note(1, 100);
        }

        /** The kernel. */
        @Actor
        public void kernel() {
            counters.note(65, 6500);
        }

        /** The host. */
        @Actor
        public void host(JJ_Result result) {
            result.r1 = counters.timestamp(1);
            result.r2 = counters.timestamp(65);
        }
    }
}
