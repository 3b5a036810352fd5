package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.ReduceOp;

/**
 * Number of bytes that one operation allocates on one rank, summed over all threads of the rank. An operation creates
 * one or two objects for each item that it passes to another thread. The garbage collector frees these objects.
 * Repeated small operations are planned only once. Each limit is the measured allocation of interpreted code (258, 284,
 * 5,547 or 585 bytes) plus a fifth. The limits hold in any state of the JIT compiler.
 */
@Tag("slow")
@Tag("optimized")
class EngineAllocationTest extends EngineFixture {

    private static final com.sun.management.ThreadMXBean THREADS =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final int OPERATIONS = 2000;
    /** Number of operations before each wait. */
    private static final int AT_A_TIME = 100;

    /** Enqueues one operation. */
    private interface Operation {
        void enqueue(Communicator communicator, MemorySegment send, MemorySegment receive, DeviceStream stream);
    }

    @BeforeAll
    static void counts() {
        assertTrue(THREADS.isThreadAllocatedMemoryEnabled(), "this JVM does not count allocated bytes");
    }

    @Test
    void anAllReduceAroundARing() throws Exception {
        assertBytes(2, 310, EngineAllocationTest::allReduce);
    }

    @Test
    void anAllReduceOverTrees() throws Exception {
        assertBytes(3, 340, EngineAllocationTest::allReduce);
    }

    @Test
    void anAllToAll() throws Exception {
        assertBytes(2, 6650, (communicator, send, receive, stream) -> communicator.allToAll(send, receive, 1,
                DataType.INT64, stream));
    }

    @Test
    void aSendAndAReceive() throws Exception {
        assertBytes(2, 700, (communicator, send, receive, stream) -> {
            communicator.send(send, 1, DataType.INT64, 1 - communicator.rank(), stream);
            communicator.receive(receive, 1, DataType.INT64, 1 - communicator.rank(), stream);
        });
    }

    private static void allReduce(Communicator communicator, MemorySegment send, MemorySegment receive,
            DeviceStream stream) {
        communicator.allReduce(send, receive, 1, DataType.INT64, ReduceOp.SUM, stream);
    }

    /** @param most maximum number of bytes for each operation on each rank */
    private void assertBytes(int ranks, long most, Operation operation) throws Exception {
        CyclicBarrier together = new CyclicBarrier(ranks);
        EngineGroup.ranks(directory, ranks, EngineGroup.settings(), (communicator, stream, arena) -> {
            MemorySegment send = communicator.device().allocate((long) ranks * Long.BYTES, arena);
            MemorySegment receive = communicator.device().allocate((long) ranks * Long.BYTES, arena);
            send.fill((byte) 1);
            run(communicator, operation, send, receive, stream);
            together.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
            long before = allocated();
            together.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
            run(communicator, operation, send, receive, stream);
            together.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
            long each = (allocated() - before) / OPERATIONS / ranks;
            together.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
            assertTrue(receive.get(ValueLayout.JAVA_LONG, 0) > 0, "nothing was received");
            assertTrue(each > 0, "nothing was counted");
            assertTrue(each <= most, each + " bytes for each operation on each rank; " + most + " were enough");
        });
    }

    private static void run(Communicator communicator, Operation operation, MemorySegment send, MemorySegment receive,
            DeviceStream stream) {
        for (int i = 0; i < OPERATIONS; i += AT_A_TIME) {
            for (int j = 0; j < AT_A_TIME; j++) {
                operation.enqueue(communicator, send, receive, stream);
            }
            stream.synchronize(TIMEOUT);
        }
    }

    /**
     * Returns the bytes that all ranks' threads have allocated so far. The trace's thread is not counted, because its
     * allocation depends on the time that has passed.
     */
    private static long allocated() {
        long bytes = 0;
        for (ThreadInfo thread : THREADS.getThreadInfo(THREADS.getAllThreadIds())) {
            if (thread != null
                    && (thread.getThreadName().startsWith("test-rank-")
                            || thread.getThreadName().startsWith("millrace-"))
                    && !thread.getThreadName().equals("millrace-trace")) {
                bytes += THREADS.getThreadAllocatedBytes(thread.getThreadId());
            }
        }
        return bytes;
    }
}
