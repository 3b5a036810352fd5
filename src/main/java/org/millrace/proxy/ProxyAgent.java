package org.millrace.proxy;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.LongSupplier;
import org.millrace.agent.Agent;

/**
 * Serves connections, one pass after another, the busy ones in each. Connections are added and removed from any thread
 * through a queue; a removal is acknowledged, so that whoever asked knows that nothing touches the connection's memory
 * any more.
 */
public final class ProxyAgent implements Agent {

    private final String name;
    private final LongSupplier nanoClock;
    private final Queue<Runnable> commands = new ConcurrentLinkedQueue<>();
    private final List<Removal> removals = new ArrayList<>();
    private final VisitSchedule visits = new VisitSchedule(this);

    /**
     * An agent with nothing to serve yet.
     *
     * @param name for the thread and for messages
     */
    public ProxyAgent(String name) {
        this(name, System::nanoTime);
    }

    ProxyAgent(String name, LongSupplier nanoClock) {
        this.name = name;
        this.nanoClock = nanoClock;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public int doWork() {
        int work = 0;
        Runnable command = commands.poll();
        if (command != null) {
            command.run();
            work++;
        }
        work += visits.pass();
        if (!removals.isEmpty()) {
            removals.removeIf(Removal::tryToComplete);
        }
        return work;
    }

    /** One visit; a connection that fails is served no more. */
    int progress(ProxyConnection connection) {
        try {
            return connection.progress();
        } catch (Throwable failure) {
            detach(connection, failure);
            return 0;
        }
    }

    @Override
    public void onFailure(Throwable failure) {
        for (ProxyConnection connection : visits.all()) {
            detach(connection, failure);
        }
    }

    /**
     * Serves further connections from the next pass on.
     *
     * @param added their memory and their network ends belong to this agent's thread from now on
     */
    public void add(Collection<? extends ProxyConnection> added) {
        List<ProxyConnection> copy = List.copyOf(added);
        commands.add(() -> visits.add(copy));
    }

    /**
     * Stops serving connections, after they are drained or nothing moves on them any more.
     *
     * @param removed  connections that were added; those that failed since may be among them
     * @param patience how long to wait for what is under way while nothing moves; zero to stop at once
     * @return an acknowledgement to wait for
     */
    public Acknowledgement remove(Collection<? extends ProxyConnection> removed, Duration patience) {
        Removal removal = new Removal(List.copyOf(removed), patience.toNanos());
        commands.add(() -> removals.add(removal));
        return removal.acknowledgement;
    }

    private void detach(ProxyConnection connection, Throwable failure) {
        if (visits.remove(connection)) {
            connection.stopped(failure);
        }
    }

    private final class Removal {
        private final List<ProxyConnection> removed;
        private final long patienceNanos;
        private final Acknowledgement acknowledgement = new Acknowledgement();
        private long deadline;

        Removal(List<ProxyConnection> removed, long patienceNanos) {
            this.removed = removed;
            this.patienceNanos = patienceNanos;
            this.deadline = nanoClock.getAsLong() + patienceNanos;
        }

        boolean tryToComplete() {
            boolean drained = true;
            for (ProxyConnection connection : removed) {
                if (visits.contains(connection) && progress(connection) > 0) {
                    deadline = nanoClock.getAsLong() + patienceNanos;
                }
                drained &= !visits.contains(connection) || isDrained(connection);
            }
            if (!drained && deadline - nanoClock.getAsLong() > 0) {
                return false;
            }
            removed.forEach(connection -> detach(connection, null));
            acknowledgement.give(drained);
            return true;
        }

        /** A connection that cannot tell has failed, and nothing is left of it to wait for. */
        private boolean isDrained(ProxyConnection connection) {
            try {
                return connection.drained();
            } catch (Throwable failure) {
                detach(connection, failure);
                return true;
            }
        }
    }
}
