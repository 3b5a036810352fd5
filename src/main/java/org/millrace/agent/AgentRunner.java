package org.millrace.agent;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.MillraceException;

/** Owner of one daemon thread, which runs an agent's passes until the runner is closed. */
public final class AgentRunner implements AutoCloseable {

    private static final Logger LOG = LogManager.getLogger(AgentRunner.class);
    private static final Duration CLOSE_DEADLINE = Duration.ofSeconds(10);

    private final Agent agent;
    private final IdleStrategy idleStrategy;
    private final Thread thread;
    private volatile boolean running = true;

    private AgentRunner(Agent agent, IdleStrategy idleStrategy) {
        this.agent = agent;
        this.idleStrategy = idleStrategy;
        this.thread = Thread.ofPlatform().daemon().name("millrace-" + agent.name()).unstarted(this::run);
    }

    /** Starts a thread for an agent. */
    public static AgentRunner start(Agent agent, IdleStrategy idleStrategy) {
        AgentRunner runner = new AgentRunner(agent, idleStrategy);
        runner.thread.start();
        return runner;
    }

    private void run() {
        while (running) {
            int work;
            try {
                work = agent.doWork();
            } catch (Throwable failure) {
                report(agent, failure);
                work = 0;
            }
            idleStrategy.idle(work);
            if (idleStrategy.slept()) {
                agent.serveAll();
            }
        }
        idleStrategy.pause();
        try {
            agent.onClose();
        } catch (Throwable failure) {
            report(agent, failure);
        }
    }

    /**
     * Tells an agent that a pass has thrown an exception. If the agent throws another exception, that exception is
     * logged, and does not end the thread.
     */
    static void report(Agent agent, Throwable failure) {
        try {
            agent.onFailure(failure);
        } catch (Throwable second) {
            second.addSuppressed(failure);
            LOG.error("{}: the agent threw an exception when it learned of a failure", agent.name(), second);
        }
    }

    /** Announces work, see {@link IdleStrategy#wake}. Callable from any thread. */
    public void wake() {
        idleStrategy.wake(thread);
    }

    /**
     * Discards the idle strategy's observations of the thread's core, see {@link IdleStrategy#forget}. Callable from
     * any thread.
     */
    public void forget() {
        idleStrategy.forget();
    }

    /** Returns the thread, for measurements. */
    public Thread thread() {
        return thread;
    }

    /**
     * Stops the agent after its current pass, and waits until its thread has ended, even if the caller is interrupted.
     * On the agent's own thread, this method only requests the stop.
     *
     * @throws MillraceException if the thread is still in its pass after ten seconds
     */
    @Override
    public void close() {
        running = false;
        LockSupport.unpark(thread);
        // Some strategies sleep by other means than a park, so an unpark does not end their sleep.
        idleStrategy.wake(thread);
        if (Thread.currentThread() == thread) {
            return;
        }
        if (!Waiting.untilEnded(thread, CLOSE_DEADLINE)) {
            throw new MillraceException("thread " + thread.getName() + " did not stop within "
                    + CLOSE_DEADLINE.toSeconds() + " s: a pass of its agent does not return");
        }
    }
}
