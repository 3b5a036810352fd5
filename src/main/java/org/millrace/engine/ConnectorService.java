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
 * Thread that makes a rank's connections, for all communicators that share the rank's other threads. NCCL calls such a
 * thread the proxy's service thread. The thread also receives reports of other ranks' failures. Device and proxies
 * continue to run while this thread makes connections.
 *
 * <p>
 * The thread sleeps until another thread's request, or a peer's message about a connection, wakes it. During the sleep,
 * the program can use the core. While connections are being made, the thread also polls these connections. The thread
 * sleeps between two polls, and the sleeps become longer while no connection makes progress.
 */
final class ConnectorService implements AutoCloseable {

    private static final Logger LOG = LogManager.getLogger(ConnectorService.class);
    private static final long FIRST_PARK_NANOS = 20_000;
    private static final long LONGEST_PARK_NANOS = 500_000;

    private final RequestQueue requests = new RequestQueue();
    /** Connectors that this thread serves: one object for each communicator. Used by this thread only. */
    private final List<Connectors> served = new ArrayList<>();
    private final AgentRunner runner;
    private long parkNanos = FIRST_PARK_NANOS;
    /** Whether a request or a message has arrived, possibly too late for the current pass. */
    private volatile boolean woken;

    /** Starts a service with a thread. */
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
                LOG.error("{}: a pass failed", name(), failure); // connectors record their own failures
            }
        }, this::idle);
    }

    private int pass() {
        // The flag is reset before the pass reads the queues. The next pass, at the latest, sees an entry that is added
        // after this line.
        woken = false;
        int work = requests.runOne();
        for (Connectors each : served) {
            work += each.progress();
        }
        requests.answer();
        return work;
    }

    /**
     * Sleeps after a pass without work. No wake-up is lost, because {@link #wake} sets {@link #woken} before it
     * unparks. If this method reads the flag too early, the unpark ends the sleep.
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

    /** Requests another pass over all connectors. Does not wait. */
    void wake() {
        woken = true;
        LockSupport.unpark(runner.thread());
    }

    void add(Connectors connectors) {
        requests.add(() -> served.add(connectors));
        wake();
    }

    /**
     * Removes a communicator's connectors. Once the returned request is answered, this thread accesses neither the
     * connectors nor their connections.
     */
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

    /** Stops the thread. Called when the thread no longer serves connectors. */
    @Override
    public void close() {
        runner.close();
    }
}
