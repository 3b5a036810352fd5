package org.millrace.stress;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.JJJ_Result;
import org.openjdk.jcstress.infra.results.JJ_Result;

/** Lines that carry their flags with them. */
public final class Lines {

    private Lines() {}

    /**
     * Half an LL line is one word of 8 bytes: 4 bytes of data and 4 bytes of flag. A reader never sees a part of the
     * word only.
     */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "nothing yet")
    @Outcome(id = "1, 7", expect = ACCEPTABLE, desc = "flag and data")
    @Outcome(expect = FORBIDDEN, desc = "torn")
    @State
    public static class LLWordsNeverTear {
        private final MemorySegment buffer = Arena.ofAuto().allocate(64, 64);
        private final long[] data = {7 | 8L << Integer.SIZE};

        /** The sender. */
        @Actor
        public void sender() {
            LLLine.storeOpaque(buffer, 0, data, 1, 1);
        }

        /** The receiver. */
        @Actor
        public void receiver(JJ_Result result) {
            long half = LLLine.firstHalfAcquire(buffer, 0);
            result.r1 = LLLine.flagOf(half);
            result.r2 = LLLine.data(half);
        }
    }

    /** A proxy first checks the flags of several LL lines, and then reads their data. All data is then present. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "nothing yet")
    @Outcome(id = "7, 8", expect = ACCEPTABLE, desc = "all flags, all data")
    @Outcome(expect = FORBIDDEN, desc = "a flag came before its data")
    @State
    public static class LLFlagsBringTheirData {
        private static final int LINES = 8;

        private final MemorySegment buffer = Arena.ofAuto().allocate(LINES * LLLine.BYTES, 64);
        private final long[] data = {7, 0, 0, 0, 0, 0, 0, 8L << Integer.SIZE};
        private final long[] halves = new long[2 * LINES];

        /** The sender. */
        @Actor
        public void sender() {
            LLLine.storeOpaque(buffer, 0, data, LINES, 1);
        }

        /** The send proxy. */
        @Actor
        public void receiver(JJ_Result result) {
            if (LLLine.areReadyAcquire(buffer, 0, LINES * LLLine.BYTES, 1, halves)) {
                result.r1 = buffer.get(ValueLayout.JAVA_INT, 0);
                result.r2 = buffer.get(ValueLayout.JAVA_INT, LINES * LLLine.BYTES - Long.BYTES);
            }
        }
    }

    /** The data of an LL128 line is present when its flag is. */
    @JCStressTest
    @Outcome(id = "0, 0, 0", expect = ACCEPTABLE, desc = "nothing yet")
    @Outcome(id = "1, 7, 8", expect = ACCEPTABLE, desc = "flag and data")
    @Outcome(expect = FORBIDDEN, desc = "the flag came before the data")
    @State
    public static class LL128FlagComesLast {
        private final MemorySegment buffer = Arena.ofAuto().allocate(LL128Line.BYTES, LL128Line.BYTES);
        private final MemorySegment data =
                MemorySegment.ofArray(new long[] {7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8});

        /** The receive proxy. */
        @Actor
        public void sender() {
            LL128Line.NCCL.storeRelease(buffer, 0, data, 1, 1);
        }

        /** The receiving device. */
        @Actor
        public void receiver(JJJ_Result result) {
            if (LL128Line.NCCL.areReadyAcquire(buffer, 0, LL128Line.BYTES, 1)) {
                result.r1 = 1;
                result.r2 = buffer.get(ValueLayout.JAVA_LONG, 0);
                result.r3 = buffer.get(ValueLayout.JAVA_LONG, LL128Line.DATA_BYTES - 8);
            }
        }
    }
}
