package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.FutureTask;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.AbortedException;
import org.millrace.Communicator;
import org.millrace.CommunicatorException;
import org.millrace.ExcludedException;
import org.millrace.MillraceException;
import org.millrace.ReduceOp;

/** The living ranks of a group continue as a smaller group after losses. */
class ShrinkTest extends EngineFixture {

    private static final Duration LONG = Duration.ofSeconds(30);
    private static final Duration SHORT = Duration.ofMillis(500);

    /** Deletes records of decisions. Ranks keep the records, because an excluded rank may ask for one at any time. */
    @AfterEach
    void deleteDecisions() throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path each : files.filter(file -> file.getParent().toString().contains("millrace-decisions-"))
                    .toList()) {
                Files.delete(each);
            }
        }
    }

    /**
     * Sums 10<sup>n</sup> over all ranks, where n is a rank's number in the first group. The digits of the sum show the
     * members.
     */
    private static long sum(Communicator communicator, int original) {
        return communicator.allReduce((long) Math.pow(10, original), ReduceOp.SUM);
    }

    private void run(int ranks, EngineGroup.RankBody body) throws InterruptedException {
        EngineGroup.ranks(directory, ranks, EngineGroup.settings(), body);
    }

    /**
     * Aborts the ranks in {@code lost}. The other ranks fail in an operation and shrink the group. Returns the smaller
     * group's communicator, or null on an aborted rank.
     */
    private static Communicator loseAndShrink(Communicator communicator, Set<Integer> lost, Duration deadline) {
        int rank = communicator.rank();
        assertEquals((long) (Math.pow(10, communicator.size()) - 1) / 9, sum(communicator, rank));
        communicator.barrier(LONG); // no rank is lost before all ranks have the sum
        if (lost.contains(rank)) {
            communicator.abort();
            return null;
        }
        assertThrows(CommunicatorException.class, () -> {
            while (true) {
                communicator.barrier();
            }
        });
        return communicator.shrink(deadline);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 3})
    void theOthersContinueAfterALoss(int lost) throws Exception {
        run(4, communicator -> {
            try (Communicator smaller = loseAndShrink(communicator, Set.of(lost), LONG)) {
                if (smaller != null) {
                    assertEquals(3, smaller.size());
                    assertEquals(communicator.rank() - (communicator.rank() > lost ? 1 : 0), smaller.rank());
                    assertEquals(1111 - (long) Math.pow(10, lost), sum(smaller, communicator.rank()));
                    assertThrows(MillraceException.class, communicator::barrier);
                }
            }
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"0 1", "0 3", "2 4"})
    void theOthersContinueAfterTwoLossesAtOnce(String both) throws Exception {
        Set<Integer> lost = Set.copyOf(Stream.of(both.split(" ")).map(Integer::valueOf).toList());
        long expected = 11111 - lost.stream().mapToLong(rank -> (long) Math.pow(10, rank)).sum();
        run(5, communicator -> {
            try (Communicator smaller = loseAndShrink(communicator, lost, LONG)) {
                if (smaller != null) {
                    assertEquals(expected, sum(smaller, communicator.rank()));
                }
            }
        });
    }

    @Test
    void aGroupShrinksRepeatedly() throws Exception {
        run(4, communicator -> {
            Communicator current = communicator;
            while (current.size() > 1) {
                Communicator smaller = loseAndShrink(current, Set.of(0), LONG);
                if (smaller == null) {
                    return;
                }
                current = smaller;
            }
            assertEquals(1, sum(current, 0));
            current.close();
        });
    }

    @Test
    void aLateRankIsExcludedAndOperationsOfTheOthersAreRight() throws Exception {
        CountDownLatch done = new CountDownLatch(2);
        run(3, communicator -> {
            if (communicator.rank() == 0) {
                done.await();
                assertThrows(ExcludedException.class, () -> communicator.shrink(LONG));
            } else {
                try (Communicator smaller = communicator.shrink(SHORT)) {
                    assertEquals(110, sum(smaller, communicator.rank()));
                } finally {
                    done.countDown();
                }
            }
        });
    }

    /** An operation without a stream aborts the communicator when the operation's deadline passes. */
    @Test
    void theRankThatDetectsAStallContinues() throws Exception {
        CountDownLatch done = new CountDownLatch(2);
        EngineGroup.ranks(directory, 3,
                EngineGroup.settings("MILLRACE_LATE_DEADLINE", "300ms", "MILLRACE_STALL_DEADLINE", "300ms"),
                communicator -> {
                    if (communicator.rank() == 1) {
                        done.await();
                        assertThrows(ExcludedException.class, communicator::shrink);
                        return;
                    }
                    assertThrows(CommunicatorException.class, () -> communicator.allReduce(1L, ReduceOp.SUM));
                    try (Communicator smaller = communicator.shrink(SHORT)) {
                        assertEquals(101, sum(smaller, communicator.rank()));
                    } finally {
                        done.countDown();
                    }
                });
    }

    @Test
    void aShrinkRevokesTheCommunicatorOnAllRanks() throws Exception {
        run(2, communicator -> {
            if (communicator.rank() == 1) {
                String said = assertThrows(AbortedException.class, () -> {
                    while (true) {
                        communicator.allReduce(1L, ReduceOp.SUM);
                    }
                }).getMessage();
                assertTrue(said.contains("rank 0 shrinks the communicator"), said);
            }
            try (Communicator again = communicator.shrink()) {
                assertEquals(11, sum(again, communicator.rank()));
            }
        });
    }

    @Test
    void aRankThatAbortsIsDeadAndCannotShrink() throws Exception {
        run(2, communicator -> {
            if (communicator.rank() == 1) {
                communicator.abort(new CommunicatorException("given up", 1, CommunicatorException.NO_RANK, null, null));
                String said = assertThrows(AbortedException.class, communicator::shrink).getMessage();
                assertTrue(said.contains("this rank counts as dead"), said);
                assertThrows(AbortedException.class, () -> communicator.agree(true));
                return;
            }
            assertThrows(CommunicatorException.class, () -> {
                while (true) {
                    communicator.barrier();
                }
            });
            try (Communicator alone = communicator.shrink(LONG)) {
                assertEquals(1, alone.size());
            }
        });
    }

    /** The abort waits in the call of the reason's {@code toString()}, before it releases the communicator. */
    @Test
    void aShrinkBesideAnAbortEndsAfterTheRelease() throws Exception {
        run(1, communicator -> {
            CountDownLatch aborts = new CountDownLatch(1);
            CountDownLatch resume = new CountDownLatch(1);
            FutureTask<Void> abort = new FutureTask<>(() -> communicator.abort(new RuntimeException() {

                @Override
                public String toString() {
                    aborts.countDown();
                    assertDoesNotThrow(() -> resume.await());
                    return "given up";
                }
            }), null);
            Thread.ofPlatform().start(abort);
            aborts.await();
            FutureTask<Boolean> isEarly = new FutureTask<>(() -> {
                try (Communicator _ = communicator.shrink(LONG)) {
                    // The abort came too late to end this shrink.
                } catch (AbortedException aborted) {
                    // The abort has ended this shrink.
                }
                return resume.getCount() > 0;
            });
            Thread shrink = Thread.ofPlatform().start(isEarly);
            while (shrink.isAlive() && !isWaiting(shrink)) {
                Thread.onSpinWait();
            }
            resume.countDown();
            abort.get();
            assertFalse(isEarly.get(), "shrink ended before the abort released the communicator");
        });
        joinReleases();
    }

    /** The fixture checks that the abort has ended the threads. */
    @Test
    void anAbortReleasesTheCommunicatorIfItsReasonHasNoText() throws Exception {
        run(1, communicator -> {
            RuntimeException reason = new RuntimeException() {

                @Override
                public String toString() {
                    throw new IllegalCallerException("no text");
                }
            };
            assertThrows(IllegalCallerException.class, () -> communicator.abort(reason));
            assertThrows(AbortedException.class, communicator::shrink);
        });
    }

    private static boolean isWaiting(Thread shrink) {
        return shrink.getState() == Thread.State.WAITING && Stream.of(shrink.getStackTrace())
                .anyMatch(frame -> frame.getClassName().equals(CompletableFuture.class.getName())
                        && frame.getMethodName().equals("join"));
    }

    @Test
    void aFailedCommunicatorAgrees() throws Exception {
        run(3, communicator -> {
            if (communicator.rank() == 0) {
                communicator.abort();
                return;
            }
            assertThrows(CommunicatorException.class, () -> {
                while (true) {
                    communicator.barrier();
                }
            });
            assertTrue(communicator.agree(true));
            assertEquals(false, communicator.agree(communicator.rank() == 2));
            try (Communicator smaller = communicator.shrink()) {
                assertEquals(110, sum(smaller, communicator.rank()));
                assertTrue(smaller.agree(true));
            }
        });
    }

    /** On rank 1, the release of the failed communicator lasts until rank 1 has joined the next group. */
    @Test
    void aSlowReleaseOfAFailedGroupExcludesNoRank() throws Exception {
        try (URLClassLoader services = new URLClassLoader(new URL[] {ShrinkTest.class.getResource("/stuck/")},
                ShrinkTest.class.getClassLoader())) {
            ClassLoader before = Thread.currentThread().getContextClassLoader();
            Thread.currentThread().setContextClassLoader(services);
            CyclicBarrier first = new CyclicBarrier(2, StuckTransport::failOnce);
            run(2, communicator -> {
                assertEquals(11, sum(communicator, communicator.rank()));
                first.await();
                try (Communicator again = communicator.shrink(SHORT)) {
                    assertEquals(11, sum(again, communicator.rank()));
                }
            });
            Thread.currentThread().setContextClassLoader(before);
        }
        joinReleases();
    }

    /** Waits until all failed groups are released. Releases may continue after shrink has returned. */
    private static void joinReleases() throws InterruptedException {
        for (Thread thread : Thread.getAllStackTraces().keySet()) {
            if (thread.getName().startsWith("release-")) {
                thread.join();
            }
        }
    }

    @Test
    void aDeadlineMustBePositive() throws Exception {
        run(1, communicator -> {
            String said =
                    assertThrows(IllegalArgumentException.class, () -> communicator.shrink(Duration.ZERO)).getMessage();
            assertTrue(said.contains("the deadline PT0S must be more than 0"), said);
            communicator.shrink().close();
        });
    }
}
