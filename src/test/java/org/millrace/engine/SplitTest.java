package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.millrace.AbortedException;
import org.millrace.Communicator;
import org.millrace.DataType;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.Operation;
import org.millrace.ReduceOp;

class SplitTest extends EngineFixture {

    private static void use(Communicator communicator, DeviceStream stream, int seed) {
        try (Arena arena = Arena.ofShared()) {
            List<Call.Running> running = new ArrayList<>();
            for (Operation operation : Operation.values()) {
                running.add(new Call(operation, 777, ReduceOp.SUM, 1 % communicator.size(), false, seed).new Running(
                        communicator, stream, arena));
            }
            stream.synchronize(TIMEOUT);
            running.forEach(call -> assertNull(call.wrong()));
        }
    }

    @Test
    void rowsColumnsAndTheWholeWorkAtTheSameTimeOnOneStream() throws Exception {
        EngineGroup.ranks(directory, 6, EngineGroup.settings(), whole -> {
            int rank = whole.rank();
            try (Communicator row = whole.split(rank / 3, 0).orElseThrow();
                    Communicator column = whole.split(rank % 3, -rank).orElseThrow();
                    DeviceStream stream = whole.device().newStream()) {
                assertEquals(List.of(3, rank % 3, 2, 1 - rank / 3),
                        List.of(row.size(), row.rank(), column.size(), column.rank()), "keys order the ranks");
                assertSame(whole.device(), row.device());
                for (int i = 0; i < 3; i++) {
                    use(row, stream, i);
                    use(whole, stream, i);
                    use(column, stream, i);
                }
            }
        });
    }

    @Test
    void whoWantsNoneGetsNoneAndOneAloneIsAGroup() throws Exception {
        EngineGroup.ranks(directory, 3, EngineGroup.settings(), whole -> {
            Optional<Communicator> part = whole.split(whole.rank() - 1, 0);
            assertEquals(whole.rank() == 0, part.isEmpty());
            try (DeviceStream stream = whole.device().newStream()) {
                part.ifPresent(alone -> {
                    assertEquals(1, alone.size());
                    use(alone, stream, 1);
                    alone.close();
                });
                use(whole, stream, 2);
            }
        });
    }

    @Test
    void theNewOneOutlivesTheOldOneAndThreadsAreShared() throws Exception {
        AtomicInteger most = new AtomicInteger();
        AtomicInteger mostConnecting = new AtomicInteger();
        EngineGroup.ranks(directory, 2, EngineGroup.settings("MILLRACE_THREADS", "1"), whole -> {
            List<Communicator> parts = new ArrayList<>();
            for (int i = 0; i < 5; i++) {
                parts.add(whole.split(0, 0).orElseThrow());
            }
            List<String> threads = EngineGroup.threadsAlive();
            int connecting = (int) threads.stream().filter(name -> name.contains("connect")).count();
            int control = (int) threads.stream().filter(name -> name.contains("control")).count();
            most.accumulateAndGet(threads.size() - control - connecting, Math::max);
            mostConnecting.accumulateAndGet(connecting, Math::max);
            DeviceStream stream = whole.device().newStream();
            whole.close();
            for (Communicator part : parts) {
                use(part, stream, 3);
            }
            stream.close();
            parts.forEach(Communicator::close);
        });
        assertTrue(most.get() <= 2, most + " polling threads for 6 communicators of 2 ranks");
        // Each rank has one thread for connections. One more thread restores lost streams for all ranks of the process.
        assertTrue(mostConnecting.get() <= 3, mostConnecting + " threads that make connections");
    }

    @Test
    void aPartThatIsAbortedLeavesTheWholeInOrder() throws Exception {
        EngineGroup.ranks(directory, 4, EngineGroup.settings(), whole -> {
            Communicator half = whole.split(whole.rank() % 2, 0).orElseThrow();
            if (half.rank() == 0 && whole.rank() == 0) {
                half.abort();
            }
            try (DeviceStream stream = whole.device().newStream()) {
                use(whole, stream, 4);
            }
            half.close();
        });
    }

    /**
     * An abort of a communicator also ends the operations of the communicators that were split from it, on all ranks.
     * NCCL has childAbortFlag for this purpose.
     */
    @Test
    void whoAbortsTheWholeAbortsItsParts() throws Exception {
        EngineGroup.ranks(directory, 2, EngineGroup.settings(), whole -> {
            Communicator part = whole.split(0, 0).orElseThrow();
            Communicator ofPart = part.split(0, 0).orElseThrow();
            try (Arena arena = Arena.ofShared(); DeviceStream stream = whole.device().newStream()) {
                MemorySegment word = whole.device().allocate(8, arena);
                if (whole.rank() == 0) {
                    assertTrue(part.asyncError().isEmpty());
                    part.receive(word, 1, DataType.INT64, 1, stream); // rank 1 never sends
                    whole.abort();
                }
                assertThrows(MillraceException.class, () -> {
                    ofPart.receive(word, 1, DataType.INT64, 1 - ofPart.rank(), stream);
                    stream.synchronize(TIMEOUT);
                });
                MillraceException error = ofPart.asyncError().orElseThrow();
                assertInstanceOf(AbortedException.class, error, error.toString());
                assertTrue(error.getMessage().contains("was split from was aborted"), error.getMessage());
            }
            ofPart.close();
            part.close();
        });
    }
}
