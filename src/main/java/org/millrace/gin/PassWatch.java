package org.millrace.gin;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;

/**
 * Reports that an agent has been in one pass for too long. The agent reports all other stalls itself, but cannot report
 * a long pass, because the agent's thread is blocked. An example is a driver call that waits for a kernel, while the
 * kernel waits for the agent. Runs on its own thread.
 */
public final class PassWatch implements AutoCloseable {

    private static final long LOOK_NANOS = 250_000_000;
    private static final int FRAMES = 12;

    private final GinAgent agent;
    private final Thread served;
    private final StallDetector stall;
    private final long patienceMillis;
    private final Consumer<String> report;
    private final Thread thread;
    private volatile boolean running = true;
    private long seen = -1;

    /**
     * Starts to watch an agent.
     *
     * @param served   thread that executes the agent's passes
     * @param patience duration of a pass after which it is reported. The report is repeated after each further period
     *                 of this duration.
     * @param report   consumer of the reports, called on the watch's thread
     */
    public PassWatch(GinAgent agent, Thread served, Duration patience, Consumer<String> report) {
        this.agent = agent;
        this.served = served;
        this.stall = new StallDetector(patience);
        this.patienceMillis = patience.toMillis();
        this.report = report;
        this.thread = Thread.ofPlatform().daemon().name("millrace-" + agent.name() + "-watch").start(this::run);
    }

    private void run() {
        while (running) {
            LockSupport.parkNanos(Math.min(LOOK_NANOS, patienceMillis * 1_000_000));
            look(System.nanoTime());
        }
    }

    private void look(long now) {
        long passes = agent.passes();
        if (passes != seen) {
            seen = passes;
            stall.reset();
        }
        if (stall.isLong(now) && running) {
            report.accept("thread " + served.getName() + " has been in one pass for " + patienceMillis
                    + " ms and serves no communicator meanwhile; it is at " + where());
        }
    }

    private String where() {
        StackTraceElement[] frames = served.getStackTrace();
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < Math.min(frames.length, FRAMES); i++) {
            text.append(i == 0 ? "" : " < ").append(frames[i]);
        }
        return text.toString();
    }

    @Override
    public void close() {
        running = false;
        LockSupport.unpark(thread);
    }
}
