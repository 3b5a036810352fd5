package org.millrace.cli.gin;

import java.io.PrintWriter;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.millrace.MillraceException;
import org.millrace.cli.console.FailureText;
import org.millrace.config.DurationType;
import org.millrace.engine.GinRank;
import org.millrace.gin.queue.GinServed;

/** Ranks as threads, from their meeting to their end. */
final class GinRun {

    private static final Duration SETTLE = Duration.ofSeconds(5);

    /** What a rank threw. */
    private record Failure(int rank, Throwable thrown) {
    }

    private final String rendezvous;
    private final GinPlan plan;
    private final Map<String, String> settings;
    private final ConcurrentLinkedQueue<Failure> failures = new ConcurrentLinkedQueue<>();
    private final ConcurrentLinkedQueue<GinRank> joined = new ConcurrentLinkedQueue<>();
    private final AtomicReferenceArray<GinServed> served;
    /** Why nobody may go on; null while the run has time. */
    private volatile MillraceException ended;

    GinRun(String rendezvous, GinPlan plan, Map<String, String> settings) {
        this.rendezvous = rendezvous;
        this.plan = plan;
        this.settings = settings;
        this.served = new AtomicReferenceArray<>(plan.ranks());
    }

    /** Runs all ranks; false if one failed, which has been said then. */
    boolean run(GinPattern pattern, Duration deadline, PrintWriter out, PrintWriter err, boolean traces) {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < plan.ranks(); i++) {
            int rank = i;
            threads.add(Thread.ofPlatform().daemon().name("rank-" + rank).start(() -> rank(pattern, rank, out)));
        }
        if (!await(threads, deadline)) {
            ended = new MillraceException("not finished after " + DurationType.text(deadline) + " (--deadline)");
            failures.add(new Failure(-1, ended));
            joined.forEach(rank -> rank.communicator().fail(ended));
            await(threads, SETTLE);
        }
        for (Failure failure : failures) {
            err.println("millrace: " + (failure.rank < 0 ? "" : "rank " + failure.rank + ": ")
                    + FailureText.of(failure.thrown));
            if (traces) {
                failure.thrown.printStackTrace(err);
            }
        }
        err.flush();
        for (int rank = 0; failures.isEmpty() && rank < plan.ranks(); rank++) {
            out.println("# rank " + rank + ": " + served.get(rank));
        }
        out.flush();
        return failures.isEmpty();
    }

    private void rank(GinPattern pattern, int number, PrintWriter out) {
        try (Arena arena = Arena.ofShared(); GinRank rank = GinRank.join(rendezvous, number, plan.ranks(), settings)) {
            joined.add(rank); // before the look at `ended`, which is set before the joined are looked at: one of the
                              // two sees the other (Dekker)
            try {
                if (ended != null) {
                    throw ended;
                }
                pattern.run(plan, rank, arena, out);
                rank.barrier();
                served.set(number, rank.communicator().served());
            } catch (Throwable thrown) {
                rank.communicator().fail(thrown); // the other ranks are not to wait for this one
                throw thrown;
            }
        } catch (Throwable thrown) { // whatever it is, it ends the run
            failures.add(new Failure(number, thrown));
        }
    }

    private static boolean await(List<Thread> threads, Duration patience) {
        long end = System.nanoTime() + patience.toNanos();
        try {
            for (Thread thread : threads) {
                if (!thread.join(Duration.ofNanos(Math.max(0, end - System.nanoTime())))) {
                    return false;
                }
            }
            return true;
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
