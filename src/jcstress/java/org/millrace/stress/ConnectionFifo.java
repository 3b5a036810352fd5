package org.millrace.stress;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.lang.foreign.Arena;
import org.millrace.abi.RecvMem;
import org.millrace.abi.SendMem;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.JJ_Result;

/** Fields of connFifo are written by plain stores. In each test, the release of a counter or size publishes a field. */
public final class ConnectionFifo {

    private ConnectionFifo() {}

    /** Both halves of a connection's control memory. */
    @State
    public static class Control {
        final SendMem sendMem = SendMem.of(Arena.ofAuto().allocate(SendMem.BYTES, 4096));
        final RecvMem recvMem = RecvMem.of(Arena.ofAuto().allocate(RecvMem.BYTES, 4096));

        /** Sets the size of the slot to 64 bytes, as before a send. */
        public Control() {
            recvMem.sizePlain(0, 64);
        }
    }

    /** The send proxy empties the size, and then moves head. A device that sees head finds no old size in the slot. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "head has not moved: nothing is looked at")
    @Outcome(id = "1, -1", expect = ACCEPTABLE, desc = "the entry is empty")
    @Outcome(expect = FORBIDDEN, desc = "head moved before the size was emptied")
    public static class SizeIsEmptyBeforeHead {

        /** The proxy. */
        @Actor
        public void proxy(Control control) {
            control.recvMem.sizePlain(0, RecvMem.EMPTY);
            control.sendMem.headRelease(1);
        }

        /** The device. */
        @Actor
        public void device(Control control, JJ_Result result) {
            result.r1 = control.sendMem.headAcquire();
            result.r2 = result.r1 == 0 ? 0 : control.recvMem.sizePlain(0);
        }
    }

    /** A device may poll only the size to learn that the proxy has read a slot. It then overwrites the slot. */
    @JCStressTest
    @Outcome(id = "(64|-1), 0", expect = ACCEPTABLE, desc = "the proxy has read what was to be sent")
    @Outcome(expect = FORBIDDEN, desc = "it read what the device wrote afterwards")
    public static class SizeIsEmptyAfterTheSlotWasRead {

        /** The proxy. It reads the pointer in place of the slot's data. */
        @Actor
        public void proxy(Control control, JJ_Result result) {
            result.r2 = control.recvMem.ptrPlain(0);
            control.recvMem.sizeRelease(0, RecvMem.EMPTY);
        }

        /** The device. */
        @Actor
        public void device(Control control, JJ_Result result) {
            result.r1 = control.recvMem.sizeAcquire(0);
            if (result.r1 == RecvMem.EMPTY) {
                control.recvMem.ptrPlain(0, 8);
            }
        }
    }

    /** Mode OFFSET, sending: the proxy stores the offset of a slot of the pool, and then grants the slot by head. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "nothing is granted")
    @Outcome(id = "1, 4096", expect = ACCEPTABLE, desc = "the place is said")
    @Outcome(expect = FORBIDDEN, desc = "head moved before the offset")
    public static class OffsetComesBeforeHead {

        /** The proxy. */
        @Actor
        public void proxy(Control control) {
            control.recvMem.offsetPlain(0, 4096);
            control.sendMem.headRelease(1);
        }

        /** The device. */
        @Actor
        public void device(Control control, JJ_Result result) {
            result.r1 = control.sendMem.headAcquire();
            result.r2 = result.r1 == 0 ? 0 : control.recvMem.offsetPlain(0);
        }
    }

    /** Mode OFFSET, receiving: the proxy stores the offset of the data, and then announces the data by tail. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "nothing is announced")
    @Outcome(id = "1, 4096", expect = ACCEPTABLE, desc = "the place is said")
    @Outcome(expect = FORBIDDEN, desc = "tail moved before the offset")
    public static class OffsetComesBeforeTail {

        /** The proxy. */
        @Actor
        public void proxy(Control control) {
            control.recvMem.offsetPlain(0, 4096);
            control.recvMem.tailRelease(1);
        }

        /** The device. */
        @Actor
        public void device(Control control, JJ_Result result) {
            result.r1 = control.recvMem.tailAcquire();
            result.r2 = result.r1 == 0 ? 0 : control.recvMem.offsetPlain(0);
        }
    }

    /** Mode PTR, sending: the device stores the address of the user's data, and then announces the data by tail. */
    @JCStressTest
    @Outcome(id = "0, 0", expect = ACCEPTABLE, desc = "nothing is announced")
    @Outcome(id = "1, 8192", expect = ACCEPTABLE, desc = "the address is said")
    @Outcome(expect = FORBIDDEN, desc = "tail moved before the pointer")
    public static class PointerComesBeforeTail {

        /** The device. */
        @Actor
        public void device(Control control) {
            control.recvMem.ptrPlain(0, 8192);
            control.recvMem.tailRelease(1);
        }

        /** The proxy. */
        @Actor
        public void proxy(Control control, JJ_Result result) {
            result.r1 = control.recvMem.tailAcquire();
            result.r2 = result.r1 == 0 ? 0 : control.recvMem.ptrPlain(0);
        }
    }

    /** Mode PTR, receiving: the device stores an address, and then offers the memory by storing its size. */
    @JCStressTest
    @Outcome(id = "64, 0", expect = ACCEPTABLE, desc = "no offer")
    @Outcome(id = "128, 8192", expect = ACCEPTABLE, desc = "the address is there")
    @Outcome(expect = FORBIDDEN, desc = "size came before the pointer")
    public static class PointerComesBeforeSize {

        /** The device. */
        @Actor
        public void device(Control control) {
            control.recvMem.ptrPlain(0, 8192);
            control.recvMem.sizeRelease(0, 128);
        }

        /** The proxy. */
        @Actor
        public void proxy(Control control, JJ_Result result) {
            result.r1 = control.recvMem.sizeAcquire(0);
            result.r2 = result.r1 == 64 ? 0 : control.recvMem.ptrPlain(0);
        }
    }
}
