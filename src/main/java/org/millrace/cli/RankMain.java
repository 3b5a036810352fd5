package org.millrace.cli;

import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.time.Duration;

/** What a rank does that is a process of its own. */
final class RankMain {

    /**
     * For the communicator to tell its peers. Shorter than the parent's patience, which then need not terminate this
     * process.
     */
    private static final Duration PATIENCE = Duration.ofSeconds(2);

    private RankMain() {}

    /** Runs the rank to its end, or until the parent ends. Never throws: failures are events too. */
    static void run(int rank, RankWorker worker) {
        PrintStream events = System.out;
        System.setOut(System.err); // standard output is for events: what others print there must not come between
        Thread.ofPlatform().daemon().name("parent-watch").start(() -> {
            awaitEnd(System.in);
            endEarly(worker);
        });
        new RankWorker.Reporter(rank, event -> {
            synchronized (events) {
                events.println(EventCodec.encode(event));
                events.flush();
            }
        }).run(worker);
    }

    private static void endEarly(RankWorker worker) {
        Thread abort = Thread.ofPlatform().daemon().name("abort").start(worker::abort);
        try {
            abort.join(PATIENCE);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
        System.exit(1); // the rank may wait where an abort does not reach it, as in join
    }

    /** Returns when the parent has closed its end or is gone. */
    private static void awaitEnd(InputStream parent) {
        try {
            while (parent.read() >= 0) {
                // the parent writes nothing
            }
        } catch (IOException gone) {
            // as good as the end
        }
    }
}
