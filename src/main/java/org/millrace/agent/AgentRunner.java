package org.millrace.agent;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.millrace.MillraceException;

/** Owns one daemon thread and runs an agent's passes on it until it is closed. */
public final class AgentRunner implements AutoCloseable {

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
                agent.onFailure(failure);
                work = 0;
            }
            idleStrategy.idle(work);
            if (idleStrategy.slept()) {
                agent.afterSleep();
            }
        }
        try {
            agent.onClose();
        } catch (Throwable failure) {
            agent.onFailure(failure);
        }
    }

    /** Says that work is to come: see {@link IdleStrategy#wake}. Called by any thread. */
    public void wake() {
        idleStrategy.wake(thread);
    }

    /**
     * Says that what was learnt of the thread's core is over: see {@link IdleStrategy#forget}. Called by any thread.
     */
    public void forget() {
        idleStrategy.forget();
    }

    /** The thread, for those who measure it. */
    public Thread thread() {
        return thread;
    }

    /**
     * Stops after the current pass and waits for the thread. Called from the agent's own thread it only asks.
     *
     * @throws MillraceException if the thread is still in its pass after ten seconds
     */
    @Override
    public void close() {
        running = false;
        LockSupport.unpark(thread); // an idle strategy may sleep until it is woken
        if (Thread.currentThread() == thread) {
            return;
        }
        try {
            if (!thread.join(CLOSE_DEADLINE)) {
                throw new MillraceException("thread " + thread.getName() + " did not stop within "
                        + CLOSE_DEADLINE.toSeconds() + " s: a pass of its agent does not return");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
