package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.OperationSignature;
import org.millrace.proxy.spi.ProxyOp;

class OperationCheckTest {

    private static final long SUM = OperationSignature.pack(Operation.ALL_REDUCE, DataType.FLOAT32, ReduceOp.SUM, 0);

    private final MemorySegment memory = Arena.ofAuto().allocate(OperationCheck.BYTES, 8);
    private final OperationCheck sender = new OperationCheck(ConnectionName.ofRing(0, 1, 0, true), memory, true);
    private final OperationCheck receiver = new OperationCheck(ConnectionName.ofRing(1, 0, 0, false), memory, false);

    private static ProxyOp op(long number, long count) {
        return new ProxyOp(number, SUM, count, 4, 4, 2);
    }

    @Test
    void theSecondFindsTheDifferenceWhicheverSideItIs() {
        assertNull(sender.announce(op(0, 10)));
        assertNull(receiver.announce(op(0, 10)));
        assertNull(receiver.announce(op(1, 20)));
        Throwable found = sender.announce(op(1, 21));
        assertNotNull(found);
        assertTrue(
                found.getMessage()
                        .startsWith("rank 0 -> rank 1, channel 0: the ranks disagree: "
                                + "rank 0 runs operation 1: all_reduce of 21 float, sum; "
                                + "rank 1 runs operation 1: all_reduce of 20 float, sum. All ranks must"),
                found.getMessage());
    }

    @Test
    void anOperationLeftOutIsFound() {
        assertNull(sender.announce(op(0, 10)));
        assertNotNull(receiver.announce(op(1, 10)));
    }

    private static ProxyOp without(long number) {
        return new ProxyOp(number, SUM, 7, 0, 4, 2);
    }

    /**
     * One rank called an operation that moves no data over the connection between the two ranks. Its peer called an
     * operation that moves data over this connection. The rank that announces its operation second detects the
     * difference.
     */
    @Test
    void anOperationWithoutPartIsFoundWhicheverSideIsTheSecond() {
        assertNull(sender.announce(op(0, 10)));
        assertNull(receiver.announce(op(0, 10)));
        assertNull(receiver.announce(without(1)), "the sender has not come so far");
        assertNull(receiver.announce(op(2, 10)));
        assertNull(sender.announce(op(2, 10)), "the sender had none either");
        assertNull(receiver.announce(without(3)));
        assertTrue(sender.announce(op(3, 10)).getMessage().contains("rank 1 runs operation 3: all_reduce of 7 float"));
        assertNotNull(receiver.announce(without(4)), "operation 3 is still not there");
    }

    @Test
    void theSenderMayBeFirst() {
        assertNull(sender.announce(op(5, 10)));
        assertNull(receiver.announce(without(4)));
        assertNotNull(receiver.announce(without(5)));
    }

    /**
     * A rank that is far ahead overwrites records that its peer has not compared yet. The peer skips the overwritten
     * records and compares later records.
     */
    @Test
    void recordsThatWereWrittenOverAreLeftOut() {
        for (int number = 0; number < 1000; number++) {
            assertNull(sender.announce(op(number, number)));
        }
        for (int number = 0; number < 1000 - 256; number++) {
            assertNull(receiver.announce(op(number, -1)), "written over: " + number);
        }
        assertNotNull(receiver.announce(op(744, -1)), "the oldest that is there");
        for (int number = 745; number < 1000; number++) {
            assertNull(receiver.announce(op(number, number)));
        }
    }
}
