package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.fail;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;

/** Threads as ranks. Each wait is bounded. */
final class Ranks {

    /**
     * Control threads that tests of other packages have left in this JVM, for example threads of ranks with planted
     * bugs.
     */
    private static final Set<Thread> LEFT_BEFORE = controlThreads().collect(Collectors.toSet());

    /** Longest wait, far above the duration of any step. A test that reaches it has failed. */
    static final Duration TIMEOUT = Duration.ofSeconds(60);

    @FunctionalInterface
    interface RankCall<T> {
        T call(int rank) throws Exception;
    }

    private Ranks() {}

    /** Returns the default options of a rank with a secret. */
    static JoinOptions options(Duration deadline, @Nullable String secret) {
        JoinOptions usual = JoinOptions.within(deadline);
        return new JoinOptions(deadline, secret, usual.secretRequired(), usual.tls(), usual.run(), usual.sockets(),
                usual.listener(), usual.place());
    }

    /** Runs the call on a new thread. */
    static <T> FutureTask<T> async(Callable<T> call) {
        FutureTask<T> task = new FutureTask<>(call);
        Thread.ofPlatform().daemon().name("test-rank").start(task);
        return task;
    }

    static <T> T get(FutureTask<T> task) throws Exception {
        try {
            return task.get(TIMEOUT.toSeconds(), TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof Exception cause) {
                throw cause;
            }
            throw e;
        } catch (TimeoutException e) {
            return fail("still not done after " + TIMEOUT);
        }
    }

    /** Returns the message of a task's failure. A task without a failure fails the test. */
    static String failureOf(FutureTask<?> task) {
        return assertThrows(MillraceException.class, () -> get(task)).getMessage();
    }

    /** Runs the call once for every rank, all at the same time. Returns the results by rank. */
    static <T> List<T> onEach(int size, RankCall<T> call) throws Exception {
        List<FutureTask<T>> tasks = new ArrayList<>();
        for (int rank = 0; rank < size; rank++) {
            int own = rank;
            tasks.add(async(() -> call.call(own)));
        }
        List<T> results = new ArrayList<>();
        AssertionError failures =
                new AssertionError("not every rank succeeded; what each failed with is suppressed here");
        for (FutureTask<T> task : tasks) {
            try {
                results.add(get(task));
            } catch (Exception | AssertionError e) {
                failures.addSuppressed(e);
            }
        }
        if (failures.getSuppressed().length > 0) {
            throw failures;
        }
        return results;
    }

    static List<ControlPlane> join(String rendezvous, int size) throws Exception {
        return onEach(size, rank -> ControlPlane.join(rendezvous, rank, size, TIMEOUT));
    }

    static void closeAll(List<ControlPlane> planes) {
        planes.forEach(ControlPlane::close);
    }

    /** Actions that must be complete before a deadline. */
    @FunctionalInterface
    interface Attempt {
        void within(Duration deadline) throws Exception;
    }

    /**
     * Runs actions that must be complete before a deadline, because the code under test reacts to the deadline. If an
     * attempt fails, the machine may have been too slow, so the actions run again with a longer deadline. The result of
     * the last attempt counts.
     */
    static void beforeDeadline(Attempt attempt) throws Exception {
        for (Duration deadline : List.of(Duration.ofMillis(400), Duration.ofSeconds(4))) {
            try {
                attempt.within(deadline);
                return;
                // rank 0 may have ended, so the test cannot send messages to it
            } catch (AssertionError | IOException e) {
                System.err.println("with " + deadline + ": " + e.getMessage());
            }
        }
        attempt.within(Duration.ofSeconds(30));
    }

    static void await(String what, BooleanSupplier condition) {
        long end = System.nanoTime() + TIMEOUT.toNanos();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - end > 0) {
                fail(what + ": not after " + TIMEOUT);
            }
            LockSupport.parkNanos(100_000);
        }
    }

    static RemoteFailure awaitFailure(ControlPlane plane) {
        await("rank " + plane.rank() + " learns of a failure", () -> plane.failure() != null);
        return plane.failure();
    }

    static void assertNoThreadLeft() {
        assertEquals(List.of(), threadsLeft(), "threads left behind");
    }

    /** Waits after a test that cancelled a rank, because the rank takes a moment to end. */
    static void awaitNoThreadLeft() {
        await("no rank is left", () -> threadsLeft().isEmpty());
    }

    static List<String> threadsLeft() {
        return controlThreads().filter(thread -> !LEFT_BEFORE.contains(thread)).map(Thread::getName).toList();
    }

    /** Returns the control thread of the rank 0 that the calling test has started. */
    static Thread controlThreadOfRankZero() {
        return controlThreads().filter(thread -> !LEFT_BEFORE.contains(thread))
                .filter(thread -> thread.getName().equals("millrace-control-0"))
                .findFirst()
                .orElseThrow();
    }

    private static Stream<Thread> controlThreads() {
        return Thread.getAllStackTraces()
                .keySet()
                .stream()
                .filter(thread -> thread.getName().startsWith("millrace-control"));
    }

    static int freePort() throws IOException {
        return FreePort.find();
    }

    static String freeTcp() throws IOException {
        return "tcp:127.0.0.1:" + freePort();
    }
}
