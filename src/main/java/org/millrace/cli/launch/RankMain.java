package org.millrace.cli.launch;

import java.io.IOException;
import java.io.InputStream;
import java.io.PrintStream;
import java.time.Duration;
import java.util.function.Consumer;
import java.util.function.Function;

/** What a rank does that is a process of its own. */
public final class RankMain {

    /**
     * For the communicator to tell its peers. Shorter than the parent's patience, which then need not terminate this
     * process.
     */
    private static final Duration PATIENCE = Duration.ofSeconds(2);

    private RankMain() {}

    /**
     * Runs the rank to its end. Never throws: failures are events too.
     *
     * @param rank makes what the rank does, which reports to what it is given
     */
    public static void run(Function<Consumer<RankEvent>, RankWorker> rank) {
        RankWorker worker = rank.apply(toParent());
        watchParent(worker::abort);
        worker.run();
    }

    /**
     * What takes events to the parent. From then on standard output is for them: what others print there must not come
     * between.
     */
    static Consumer<RankEvent> toParent() {
        PrintStream events = System.out;
        System.setOut(System.err);
        return event -> {
            synchronized (events) {
                events.println(EventCodec.encode(event));
                events.flush();
            }
        };
    }

    /** Ends this process when the parent has closed its end or is gone. */
    static void watchParent(Runnable abort) {
        Thread.ofPlatform().daemon().name("parent-watch").start(() -> {
            awaitEnd(System.in);
            endEarly(abort);
        });
    }

    private static void endEarly(Runnable action) {
        Thread abort = Thread.ofPlatform().daemon().name("abort").start(action);
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
