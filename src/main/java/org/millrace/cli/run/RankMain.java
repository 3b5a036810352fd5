package org.millrace.cli.run;

import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.time.Duration;

/** Main program of a rank that is a separate process. */
public final class RankMain {

    /**
     * Time for the communicator to notify its peers. The parent process waits longer, so that the parent need not kill
     * this process.
     */
    private static final Duration TIMEOUT = Duration.ofSeconds(2);

    private RankMain() {}

    /** Runs the rank until it ends or the parent process ends. Does not throw: a failure is reported as an event. */
    public static void run(int rank, RankWorker worker) {
        PrintStream events = System.out;
        // Standard output must carry only events. Other output would corrupt the events.
        System.setOut(System.err);
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
            abort.join(TIMEOUT);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
        // Ends the process. The abort alone is not enough, because the rank may wait in a method that an abort does not
        // interrupt, for instance in join.
        System.exit(1);
    }

    /** Returns when the parent process has closed the stream or has ended. */
    private static void awaitEnd(InputStream parent) {
        try {
            while (parent.read() >= 0) {
                // Ignores all bytes, because only the end of the stream has a meaning. The parent writes nothing.
            }
        } catch (IOException gone) {
            // a read error is treated like the end of the stream
        }
    }
}
