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
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.trace.AgentTrace;
import org.millrace.trace.ProcessTrace;

/**
 * Serves connections on one thread. Each pass polls the busy connections, one after another. Any thread may add and
 * remove connections, through a queue. The agent acknowledges a removal. After that the caller may free the
 * connection's memory, because no thread accesses it.
 */
public final class ProxyAgent implements Agent {

    private static final Logger LOG = LogManager.getLogger(ProxyAgent.class);

    private final String name;
    private final LongSupplier nanoClock;
    private final Runnable atEnd;
    /** Trace of the agent; null if the process is not traced. */
    private final @Nullable AgentTrace trace;
    private final RequestQueue requests = new RequestQueue();
    private final PollSchedule<ProxyConnection> schedule =
            new PollSchedule<>(new ProxyConnection[0], this::progress, PollSchedule.BUSY_POLLS);

    /** Creates an agent without connections. */
    public ProxyAgent(String name) {
        this(name, () -> {});
    }

    /** @param atEnd action that the agent's thread executes before it terminates */
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

    /**
     * Sets the action that wakes the agent's thread when connections are added or removed.
     *
     * @param wake action, called by the thread that adds or removes
     */
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
    public void serveAll() {
        schedule.pollAll();
    }

    /** Polls a connection once. Removes the connection if it fails. */
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
     * Serves more connections, from one of the next passes on.
     *
     * @param added connections. From now on only this agent's thread may use the memory and the network ends of these
     *              connections.
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
     * Stops serving connections when they are drained, or when none of them has made progress for some time.
     *
     * @param removed  connections that were added before; some of them may have failed since then
     * @param patience time without progress after which data in flight is abandoned; zero to stop immediately
     */
    public Acknowledgement remove(Collection<? extends ProxyConnection> removed, Duration patience) {
        return requests.ask(new Removal(List.copyOf(removed), patience.toNanos()));
    }

    /** Returns whether all connections are drained. Agent's thread only. */
    public boolean isDrained() {
        return schedule.all().stream().allMatch(connection -> isDrained(connection, false));
    }

    /**
     * Returns whether a connection is drained. If the connection throws an exception, it has failed and is removed, and
     * it counts as drained.
     *
     * @param ends whether the connection is about to be removed
     */
    private boolean isDrained(ProxyConnection connection, boolean ends) {
        try {
            boolean drained = connection.drained();
            if (!drained && ends) {
                connection.settle();
            }
            return drained;
        } catch (Throwable failure) {
            detach(connection, failure);
            return true;
        }
    }

    /**
     * Removes a connection and stops it. An exception of the connection or its listener is only logged, because it must
     * not affect other connections of this thread.
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

    /** Acknowledgement that the agent's thread has released connections. */
    public interface Acknowledgement {

        /**
         * Waits until the agent's thread has released the connections, even if the waiting thread is interrupted. The
         * interrupt status is restored afterwards.
         *
         * @param time maximum time to wait
         * @return false after a timeout; in this case the connections' memory must not be freed
         */
        boolean await(Duration time);

        /**
         * {@return whether all connections were drained when the agent released them; false if data in flight was
         * abandoned} A connection that has failed counts as drained. Its failure is reported to its
         * {@link ProxyConnection.StopListener}.
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
                drained &= !schedule.contains(connection) || isDrained(connection, true);
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
