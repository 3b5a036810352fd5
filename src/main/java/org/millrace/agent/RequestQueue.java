package org.millrace.agent;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * Commands and requests of other threads for one agent. Commands run before a pass. Requests are attempted after each
 * pass until they are answered. Any thread may add commands and requests, and may call {@link #wakeBy}. The other
 * methods are called on the agent's thread.
 */
public final class RequestQueue {

    private final Queue<Runnable> commands = new ConcurrentLinkedQueue<>();
    private final List<Request> pending = new ArrayList<>();
    private volatile Runnable wake = () -> {};

    /** Creates an empty queue. */
    public RequestQueue() {}

    /** Sets the action that wakes the agent's thread after each later addition. */
    public void wakeBy(Runnable wake) {
        this.wake = wake;
    }

    /** Adds a command, which runs once on the agent's thread, before one of the next passes. */
    public void add(Runnable command) {
        commands.add(command);
        wake.run();
    }

    /** Adds a request, which runs after the commands that were added before. Each request may be added only once. */
    public <T extends Request> T ask(T request) {
        add(() -> pending.add(request));
        return request;
    }

    /**
     * Runs the oldest command, before a pass. Only one command runs before each pass, so that many commands do not
     * delay the passes. Returns the number of commands that ran.
     */
    public int runOne() {
        Runnable command = commands.poll();
        if (command == null) {
            return 0;
        }
        command.run();
        return 1;
    }

    /** Attempts all unanswered requests. Called after a pass. */
    public void answer() {
        if (!pending.isEmpty()) {
            pending.removeIf(Request::attempt);
        }
    }

    /**
     * Request of another thread. That thread waits for the answer. The agent's thread attempts the request after each
     * pass until it is answered. When {@link #await} has returned true, the agent's thread no longer uses the request.
     */
    public static abstract class Request {

        private final CountDownLatch answered = new CountDownLatch(1);
        /** Whether the request was carried out. Written before the latch opens; the opening publishes the value. */
        private boolean fulfilled;

        protected Request() {}

        /**
         * Carries out the request if that is possible now, or gives it up. Called on the agent's thread. Returns true
         * if it called {@link #answer}. Returns false if the request must be attempted again after the next pass.
         */
        protected abstract boolean attempt();

        /**
         * Ends the request. {@code done} is true if the request was carried out, and false if it was given up. Always
         * returns true, so that {@link #attempt} can return the result.
         */
        protected final boolean answer(boolean done) {
            fulfilled = done;
            answered.countDown();
            return true;
        }

        /**
         * Returns true if the request was carried out, and false if it was given up. To be called after {@link #await}
         * has returned true.
         */
        public final boolean isFulfilled() {
            return fulfilled;
        }

        /**
         * Waits for the answer, even if the waiting thread is interrupted, because that thread is about to free memory
         * that the agent uses. The interrupt status is restored afterwards.
         *
         * @return false if the maximum time passed without an answer; the caller must then not free the memory
         */
        public final boolean await(Duration time) {
            long deadline = System.nanoTime() + time.toNanos();
            boolean interrupted = false;
            try {
                while (true) {
                    try {
                        return answered.await(deadline - System.nanoTime(), TimeUnit.NANOSECONDS);
                    } catch (InterruptedException e) {
                        interrupted = true;
                    }
                }
            } finally {
                if (interrupted) {
                    Thread.currentThread().interrupt();
                }
            }
        }
    }
}
