package org.millrace.cli.run;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import org.apache.logging.log4j.LogManager;

/** Ranks that are threads of this process. */
public final class ThreadRanks implements Ranks {

    /** Maximum duration of an abort. The communicator notifies its peers and waits for its own threads. */
    private static final Duration TIMEOUT = Duration.ofSeconds(3);

    private final List<RankWorker> workers = new ArrayList<>();
    private final List<Thread> threads = new ArrayList<>();
    private final AtomicBoolean stopped = new AtomicBoolean();

    public ThreadRanks(int size, IntFunction<? extends RankWorker> worker, Consumer<RankEvent> events) {
        for (int rank = 0; rank < size; rank++) {
            RankWorker each = worker.apply(rank);
            RankWorker.Reporter reporter = new RankWorker.Reporter(rank, events);
            workers.add(each);
            // daemon threads, because a rank that does not end must not keep the process alive
            threads.add(Thread.ofPlatform().daemon().name("rank-" + rank).unstarted(() -> reporter.run(each)));
        }
    }

    @Override
    public void start() {
        // Loads Log4j before the ranks need it. If a rank were interrupted while it loads Log4j, Log4j would print a
        // stack trace.
        LogManager.getContext(false);
        threads.forEach(Thread::start);
    }

    @Override
    public void stop() {
        if (awaitEnd(Duration.ZERO) || !stopped.compareAndSet(false, true)) {
            return;
        }
        List<Thread> aborts = workers.stream()
                .map(worker -> Thread.ofPlatform().daemon().name("abort").start(worker::abort))
                .toList();
        await(aborts, TIMEOUT);
        // ends the waits of ranks that no communicator can abort, for example in join
        threads.forEach(Thread::interrupt);
        awaitEnd(TIMEOUT);
    }

    @Override
    public boolean awaitEnd(Duration patience) {
        return await(threads, patience);
    }

    private static boolean await(List<Thread> threads, Duration patience) {
        RunDeadline deadline = RunDeadline.after(patience);
        try {
            for (Thread thread : threads) {
                if (!thread.join(deadline.remaining())) {
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
