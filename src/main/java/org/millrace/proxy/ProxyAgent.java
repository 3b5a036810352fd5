package org.millrace.proxy;

import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.function.LongSupplier;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.Agent;
import org.millrace.agent.PollSchedule;
import org.millrace.agent.RequestQueue;
import org.millrace.trace.AgentTrace;
import org.millrace.trace.ProcessTrace;

/**
 * Serves connections one after another, the busy ones in each pass. Connections are added and removed from any thread
 * through a queue. A removal is acknowledged, so that the caller knows that no thread accesses the connection's memory
 * afterwards.
 */
public final class ProxyAgent implements Agent {

    private static final Logger LOG = LogManager.getLogger(ProxyAgent.class);

    private final String name;
    private final LongSupplier nanoClock;
    private final Runnable atEnd;
    /** Trace of the agent; null if nothing is traced. */
    private final @Nullable AgentTrace trace;
    private final RequestQueue requests = new RequestQueue();
    private final PollSchedule<ProxyConnection> schedule =
            new PollSchedule<>(new ProxyConnection[0], this::progress, PollSchedule.BUSY_POLLS);

    /** Creates an agent without connections. */
    public ProxyAgent(String name) {
        this(name, () -> {});
    }

    /**
     * Creates an agent without connections.
     *
     * @param atEnd last action of the agent's thread
     */
    public ProxyAgent(String name, Runnable atEnd) {
        this(name, atEnd, System::nanoTime);
    }

    ProxyAgent(String name, Runnable atEnd, LongSupplier nanoClock) {
        this.name = name;
        this.atEnd = atEnd;
        this.nanoClock = nanoClock;
        ProcessTrace process = ProcessTrace.current();
        this.trace = process == null ? null : process.agent(name);
    }

    /** Has the agent's thread woken when connections are added or removed. */
    public void wakeBy(Runnable wake) {
        requests.wakeBy(wake);
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public int doWork() {
        int work = requests.runOne();
        work += schedule.pass();
        requests.answer();
        if (trace != null) {
            trace.passed(work);
        }
        return work;
    }

    @Override
    public void afterSleep() {
        schedule.afterSleep();
    }

    /** Polls a connection once. A connection that fails is not served again. */
    private int progress(ProxyConnection connection) {
        try {
            return connection.progress();
        } catch (Throwable failure) {
            detach(connection, failure);
            return 0;
        }
    }

    @Override
    public void onFailure(Throwable failure) {
        for (ProxyConnection connection : schedule.all()) {
            detach(connection, failure);
        }
    }

    /**
     * Serves further connections from the next pass on.
     *
     * @param added connections; their memory and their network ends belong to this agent's thread from now on
     */
    public void add(Collection<? extends ProxyConnection> added) {
        List<ProxyConnection> copy = List.copyOf(added);
        requests.add(() -> serve(copy));
    }

    private void serve(List<ProxyConnection> added) {
        if (trace != null) {
            added.forEach(connection -> connection.servedBy(trace));
        }
        schedule.add(added);
    }

    @Override
    public void onClose() {
        if (trace != null) {
            trace.close();
        }
        atEnd.run();
    }

    /**
     * Stops serving connections after they are drained, or after they have made no progress for some time.
     *
     * @param removed  connections that were added; connections that have failed since may be among them
     * @param patience time to wait for data in flight while nothing moves; zero to stop at once
     */
    public Acknowledgement remove(Collection<? extends ProxyConnection> removed, Duration patience) {
        return requests.ask(new Removal(List.copyOf(removed), patience.toNanos()));
    }

    /** Returns whether nothing is in flight on any connection. The agent's thread only. */
    public boolean isDrained() {
        return schedule.all().stream().allMatch(this::isDrained);
    }

    /**
     * Returns whether a connection is drained. A connection that cannot answer has failed, so nothing remains to wait
     * for.
     */
    private boolean isDrained(ProxyConnection connection) {
        try {
            return connection.drained();
        } catch (Throwable failure) {
            detach(connection, failure);
            return true;
        }
    }

    /**
     * Removes a connection and stops it. Logs an exception of the connection or its listener, because it must not
     * affect the thread's other connections.
     */
    private void detach(ProxyConnection connection, @Nullable Throwable failure) {
        if (schedule.remove(connection)) {
            try {
                connection.stopped(failure);
            } catch (Throwable thrown) {
                LOG.error("{}: the end of the connection threw an exception", connection.name(), thrown);
            }
        }
    }

    /** Confirms that the agent's thread has released connections. */
    public interface Acknowledgement {

        /**
         * Waits for the agent's thread, even if the waiting thread is interrupted. The interrupt is preserved.
         *
         * @param time maximum time to wait
         * @return false after a timeout; the connections' memory must not be freed then
         */
        boolean await(Duration time);

        /**
         * {@return whether nothing was in flight when the agent released the connections; false if the agent gave up} A
         * {@link ProxyConnection.StopListener} reports failed connections.
         */
        boolean drained();
    }

    private final class Removal extends RequestQueue.Request implements Acknowledgement {
        private final List<ProxyConnection> removed;
        private final long patienceNanos;
        private long deadline;

        Removal(List<ProxyConnection> removed, long patienceNanos) {
            this.removed = removed;
            this.patienceNanos = patienceNanos;
            this.deadline = nanoClock.getAsLong() + patienceNanos;
        }

        @Override
        protected boolean attempt() {
            boolean drained = true;
            for (ProxyConnection connection : removed) {
                if (schedule.contains(connection) && progress(connection) > 0) {
                    deadline = nanoClock.getAsLong() + patienceNanos;
                }
                drained &= !schedule.contains(connection) || isDrained(connection);
            }
            if (!drained && deadline - nanoClock.getAsLong() > 0) {
                return false;
            }
            removed.forEach(connection -> detach(connection, null));
            return answer(drained);
        }

        @Override
        public boolean drained() {
            return isFulfilled();
        }
    }
}
