package org.millrace.agent;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * What other threads want of one agent: commands, which run before a pass, and requests, which are attempted after each
 * pass until they are answered. Any thread may add; the agent's thread does the rest.
 */
public final class RequestQueue {

    private final Queue<Runnable> commands = new ConcurrentLinkedQueue<>();
    private final List<Request> pending = new ArrayList<>();
    private volatile Runnable wake = () -> {};

    /** A queue with nothing in it. */
    public RequestQueue() {}

    /** Has the agent's thread woken by what is added from now on. */
    public void wakeBy(Runnable wake) {
        this.wake = wake;
    }

    /** Has something done once, on the agent's thread, before one of the next passes. */
    public void add(Runnable command) {
        commands.add(command);
        wake.run();
    }

    /** Asks for something, once, behind the commands that were added before. */
    public <T extends Request> T ask(T request) {
        add(() -> pending.add(request));
        return request;
    }

    /** Runs the oldest command, before a pass: one a pass, so that many do not hold up what is served. */
    public int runOne() {
        Runnable command = commands.poll();
        if (command == null) {
            return 0;
        }
        command.run();
        return 1;
    }

    /** Attempts all requests that are not answered, after a pass. */
    public void answer() {
        if (!pending.isEmpty()) {
            pending.removeIf(Request::attempt);
        }
    }

    /**
     * Something that another thread wants of an agent and waits for. The agent's thread attempts it after each pass
     * until it is answered; when {@link #await} has returned true, the agent's thread is done with it.
     */
    public static abstract class Request {

        private final CountDownLatch answered = new CountDownLatch(1);
        /** Written before the latch opens, which publishes it. */
        private boolean fulfilled;

        /** A request that was not asked yet. */
        protected Request() {}

        /**
         * Carries the request out if that is possible now, or gives it up, on the agent's thread; true if it called
         * {@link #answer}, false to be asked again after the next pass.
         */
        protected abstract boolean attempt();

        /** Ends the request: it was carried out, or given up. */
        protected final boolean answer(boolean done) {
            fulfilled = done;
            answered.countDown();
            return true;
        }

        /** Whether it was carried out, and not given up. To be asked after {@link #await} has returned true. */
        public final boolean isFulfilled() {
            return fulfilled;
        }

        /**
         * Waits for the answer, also if the waiting thread is interrupted: it is about to free memory that the agent
         * uses. The interrupt is kept for later.
         *
         * @return false if the time was over first: the memory must not be freed
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
