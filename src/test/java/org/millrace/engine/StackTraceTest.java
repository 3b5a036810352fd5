package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.lang.foreign.MemorySegment;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.Millrace;
import org.millrace.MillraceException;
import org.millrace.Operand;
import org.millrace.ReduceOp;

/** Stack traces of exceptions begin at the call of the program. They omit the frames of Millrace's own methods. */
class StackTraceTest {

    private static void assertBeginsHere(Runnable call) {
        StackTraceElement[] frames = assertThrows(RuntimeException.class, call::run).getStackTrace();
        assertEquals(StackTraceTest.class.getName(), frames[0].getClassName());
    }

    @Test
    void refusedArguments() {
        Millrace.local(1, communicator -> {
            assertBeginsHere(() -> communicator.broadcast(Operand.of(new int[1]), 7));
            assertBeginsHere(() -> communicator.allGather(Operand.of(new int[2]), Operand.of(new int[3])));
            try (DeviceStream stream = communicator.device().newStream()) {
                assertBeginsHere(() -> communicator.allGather(Operand.of(new int[2]), Operand.of(new int[3]), stream));
                assertBeginsHere(() -> communicator.allReduce(MemorySegment.NULL, MemorySegment.NULL, -1, DataType.INT8,
                        ReduceOp.SUM, stream));
            }
        });
    }

    @Test
    void failuresOfTheCommunicator() {
        Millrace.local(1, communicator -> {
            DeviceStream stream = communicator.device().newStream();
            communicator.close();
            assertBeginsHere(() -> communicator.allReduce(1, ReduceOp.SUM));
            assertBeginsHere(() -> communicator.barrier(Duration.ofSeconds(1)));
            assertBeginsHere(() -> communicator.allReduce(MemorySegment.NULL, MemorySegment.NULL, 0, DataType.INT8,
                    ReduceOp.SUM, stream));
        });
        assertBeginsHere(() -> Millrace.local(2, StackTraceTest::fail));
    }

    private static void fail(Communicator communicator) {
        throw new MillraceException("planted");
    }
}
