package org.millrace.engine;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.agent.Agent;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.RequestQueue;

/**
 * The thread on which a rank's connections are made, for all communicators that share its other threads; NCCL calls it
 * the proxy's service thread. It hears of other ranks' failures, too. Device and proxies run on meanwhile.
 *
 * <p>
 * A core is the program's: the thread sleeps until something is asked of it. What a peer says of a connection wakes it.
 * While connections are on the way it polls them, too, and sleeps between two polls, for longer and longer as long as
 * nothing moves.
 */
final class ConnectorService implements AutoCloseable {

    private static final Logger LOG = LogManager.getLogger(ConnectorService.class);
    private static final long FIRST_PARK_NANOS = 20_000;
    private static final long LONGEST_PARK_NANOS = 500_000;

    private final RequestQueue requests = new RequestQueue();
    /** Whose connectors are served. The thread alone. */
    private final List<Connectors> served = new ArrayList<>();
    private final AgentRunner runner;
    private long parkNanos = FIRST_PARK_NANOS;
    /** Something came that the pass under way may not have seen. */
    private volatile boolean woken;

    /** A service with a thread of its own. */
    ConnectorService(int rank) {
        runner = AgentRunner.start(new Agent() {
            @Override
            public int doWork() {
                return pass();
            }

            @Override
            public String name() {
                return "connect-" + rank;
            }

            @Override
            public void onFailure(Throwable failure) {
                LOG.error("{}: a pass failed", name(), failure); // connectors keep what they find for themselves
            }
        }, this::idle);
    }

    private int pass() {
        woken = false; // before the queues are read: what comes behind this line is seen in the next pass at the latest
        int work = requests.runOne();
        for (Connectors each : served) {
            work += each.progress();
        }
        requests.answer();
        return work;
    }

    /**
     * A wake-up is not lost: it sets {@link #woken} before it unparks, so that either the flag is seen here or the
     * thread does not sleep.
     */
    private void idle(int work) {
        if (work > 0) {
            parkNanos = FIRST_PARK_NANOS;
            return;
        }
        long idle = Long.MAX_VALUE;
        for (Connectors each : served) {
            idle = Math.min(idle, each.idleNanos());
        }
        if (woken) {
            return;
        }
        if (idle == Long.MAX_VALUE) {
            LockSupport.park(this);
        } else {
            LockSupport.parkNanos(this, Math.max(idle, parkNanos));
            parkNanos = Math.min(2 * parkNanos, LONGEST_PARK_NANOS);
        }
    }

    /** Lets the thread look at everything. Does not wait. */
    void wake() {
        woken = true;
        LockSupport.unpark(runner.thread());
    }

    void add(Connectors connectors) {
        requests.add(() -> served.add(connectors));
        wake();
    }

    /** Lets go of a communicator's connectors: once it is answered nothing touches them, or what they made. */
    RequestQueue.Request remove(Connectors connectors) {
        RequestQueue.Request request = requests.ask(new RequestQueue.Request() {
            @Override
            protected boolean attempt() {
                served.remove(connectors);
                connectors.stopped();
                return answer(true);
            }
        });
        wake();
        return request;
    }

    /** Ends the thread. No connectors are served any more. */
    @Override
    public void close() {
        runner.close();
    }
}
