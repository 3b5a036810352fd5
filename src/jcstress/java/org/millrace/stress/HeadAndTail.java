package org.millrace.stress;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.JJJ_Result;
import org.openjdk.jcstress.infra.results.JJ_Result;

/** The slots that head, tail and size publish. */
public final class HeadAndTail {

    private HeadAndTail() {}

    private static MemorySegment page(long bytes) {
        return Arena.ofAuto().allocate(bytes, 4096);
    }

    /** The device writes a slot and its size, and then moves tail. A proxy that sees tail sees both. */
    @JCStressTest
    @Outcome(id = "0, -?[0-9]+, [0-9]+", expect = ACCEPTABLE, desc = "tail has not moved: nothing is looked at")
    @Outcome(id = "1, 64, 7", expect = ACCEPTABLE, desc = "size and data are there")
    @Outcome(expect = FORBIDDEN, desc = "tail moved before size or data")
    @State
    public static class TailComesAfterSizeAndData {
        private final RecvMem recvMem = RecvMem.of(page(RecvMem.BYTES));
        private final MemorySegment slot = page(64);

        /** The device. */
        @Actor
        public void device() {
            recvMem.sizePlain(0, 64);
            slot.set(ValueLayout.JAVA_LONG, 0, 7);
            recvMem.tailRelease(1);
        }

        /** Its proxy. */
        @Actor
        public void proxy(JJJ_Result result) {
            result.r1 = recvMem.tailAcquire();
            result.r2 = result.r1 == 0 ? 0 : recvMem.sizePlain(0);
            result.r3 = slot.get(ValueLayout.JAVA_LONG, 0);
            if (result.r1 == 0) {
                result.r3 = 0;
            }
        }
    }

    /** The proxy reads a slot, and then moves head. A device that sees head may overwrite the slot. */
    @JCStressTest
    @Outcome(id = "[01], 7", expect = ACCEPTABLE, desc = "the proxy has read what was in the slot")
    @Outcome(expect = FORBIDDEN, desc = "the slot was overwritten before it was read")
    @State
    public static class HeadComesAfterTheSlotWasRead {
        private final SendMem sendMem = SendMem.of(page(SendMem.BYTES));
        private final MemorySegment slot = page(64);

        /** Fills the slot with data to send. */
        public HeadComesAfterTheSlotWasRead() {
            slot.set(ValueLayout.JAVA_LONG, 0, 7);
        }

        /** The proxy. */
        @Actor
        public void proxy(JJ_Result result) {
            result.r2 = slot.get(ValueLayout.JAVA_LONG, 0);
            sendMem.headRelease(1);
        }

        /** The device. */
        @Actor
        public void device(JJ_Result result) {
            result.r1 = sendMem.headAcquire();
            if (result.r1 == 1) {
                slot.set(ValueLayout.JAVA_LONG, 0, 8);
            }
        }
    }
}
