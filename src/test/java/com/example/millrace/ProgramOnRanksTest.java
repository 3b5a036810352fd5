package com.example.millrace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.millrace.AbortedException;
import org.millrace.Millrace;
import org.millrace.ReduceOp;

/**
 * Shows how a program can test its own code. The ranks of the program are threads of the test. One of them fails,
 * leaves or is late.
 */
class ProgramOnRanksTest {

    @Test
    void everyRankHasTheSum() throws Exception {
        List<Long> sums = new CopyOnWriteArrayList<>();
        Millrace.local(4, communicator -> sums.add(communicator.allReduce((long) communicator.rank(), ReduceOp.SUM)));
        assertEquals(List.of(6L, 6L, 6L, 6L), sums);
    }

    @Test
    void oneRankFails() {
        IOException thrown = assertThrows(IOException.class, () -> Millrace.local(3, communicator -> {
            if (communicator.rank() == 2) {
                throw new IOException("no more rows");
            }
            communicator.barrier();
        }));
        assertEquals(2, thrown.getSuppressed().length);
        for (Throwable other : thrown.getSuppressed()) {
            assertEquals(2, assertInstanceOf(AbortedException.class, other).peer().orElseThrow());
        }
    }

    @Test
    void oneRankLeavesEarly() {
        AbortedException thrown = assertThrows(AbortedException.class, () -> Millrace.local(2, communicator -> {
            if (communicator.rank() == 0) {
                communicator.barrier();
            }
        }));
        assertEquals(1, thrown.peer().orElseThrow());
    }

    @Test
    void oneRankIsLate() throws Exception {
        CountDownLatch missed = new CountDownLatch(1);
        List<String> told = new CopyOnWriteArrayList<>();
        Millrace.builder().device("host").stallDeadline(Duration.ofSeconds(2)).onStall(what -> {
            told.add(what);
            missed.countDown();
        }).runLocally(2, communicator -> {
            if (communicator.rank() == 1) {
                missed.await();
            }
            communicator.barrier();
        });
        assertTrue(told.getFirst().contains("rank 1 has not"), told.toString());
    }
}
