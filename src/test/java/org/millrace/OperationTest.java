package org.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OperationTest {

    private static final int RANKS = 4;
    private static final int RANK = 3;
    private static final long COUNT = 10;

    /** {@code nccl_common.h} defines the codes. {@code nccl.h} defines the operands and the meaning of "in place". */
    @ParameterizedTest
    @CsvSource({"ALL_REDUCE, 4, 10, 10, 0, 0", "ALL_GATHER, 2, 10, 40, 30, 0", "REDUCE_SCATTER, 3, 40, 10, 0, 30",
            "BROADCAST, 0, 10, 10, 0, 0", "REDUCE, 1, 10, 10, 0, 0", "ALL_TO_ALL, 5, 40, 40, ,",
            "GATHER, 5, 10, 40, 30, 0", "SCATTER, 5, 40, 10, 0, 30", "SEND_RECEIVE, 5, 10, 10, ,"})
    void isWhatNcclSays(Operation operation, int code, long sent, long received, Long sendOffset, Long receiveOffset) {
        assertEquals(code, operation.code());
        assertEquals(sent, operation.sendCount(COUNT, RANKS));
        assertEquals(received, operation.receiveCount(COUNT, RANKS));
        assertEquals(Math.max(sent, received) / COUNT, operation.parts(RANKS));
        assertEquals(sendOffset != null, operation.hasInPlace());
        if (operation.hasInPlace()) {
            assertEquals(sendOffset, operation.sendOffset(COUNT, RANK));
            assertEquals(receiveOffset, operation.receiveOffset(COUNT, RANK));
        }
    }

    @Test
    void aCodeNamesTheOperationThatRuns() {
        for (Operation operation : Operation.values()) {
            boolean runsItself = operation.code() < Operation.SEND_RECEIVE.code();
            assertSame(runsItself ? operation : Operation.SEND_RECEIVE, Operation.ofCode(operation.code()));
        }
        assertThrows(IllegalArgumentException.class, () -> Operation.ofCode(-1));
        assertThrows(IllegalArgumentException.class, () -> Operation.ofCode(6));
    }

    @Test
    void aCountThatNoMemoryHoldsIsRefused() {
        assertThrows(ArithmeticException.class, () -> Operation.ALL_GATHER.receiveCount(Long.MAX_VALUE / 2, RANKS));
        assertThrows(ArithmeticException.class, () -> Operation.SCATTER.sendCount(Long.MAX_VALUE / 2, RANKS));
    }
}
