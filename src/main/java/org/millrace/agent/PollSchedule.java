package org.millrace.agent;

import java.util.Arrays;
import java.util.Collection;
import java.util.List;

/**
 * Selects the connections that a pass of an agent polls. Every pass polls the busy connections. A connection becomes
 * idle after many polls without work. Each pass polls some idle connections, one after the other. Within
 * {@value #IDLE_CYCLE} passes, every idle connection is polled. A poll can be a system call, and a step of a busy
 * connection must not wait for the polls of hundreds of other connections.
 *
 * <p>
 * While no connection has work, every pass polls all connections, because the thread may sleep after the pass. The
 * additional polls then delay no connection. When work arrives again, passes continue to poll all connections until
 * {@value #WAKING_POLLS} polls of idle connections were made. An operation usually uses several connections. The thread
 * may yield after a pass, and a connection that was not polled would wait until the yield ends. Used by one thread.
 *
 * <pre>
 *   connections [0, busy)     [busy, size)
 *               every pass    one after the other
 * </pre>
 *
 * @param <T> a connection, or another object that the agent serves
 */
public final class PollSchedule<T> {

    /**
     * Number of successive polls without work after which a connection is idle. This number of polls takes longer than
     * the pause between two kernels.
     */
    public static final int BUSY_POLLS = 1024;
    /** Number of passes in which every idle connection is polled once. */
    public static final int IDLE_CYCLE = 32;
    /** Number of passes without any work after which each pass polls all connections. */
    public static final int QUIET_PASSES = 1024;
    /**
     * Number of polls of idle connections. When work has arrived again, each pass polls all connections until this
     * number of polls is reached.
     */
    public static final int WAKING_POLLS = 1024;

    /** Function that polls one connection. */
    @FunctionalInterface
    public interface Poller<T> {
        /** Lets a connection make progress, and may {@link PollSchedule#remove} it. Returns the amount of work. */
        int poll(T connection);
    }

    private final Poller<T> poller;
    private final int busyPolls;
    private T[] connections;
    /** Number of successive polls without work, for each busy connection. */
    private int[] workless = {};
    private int size;
    private int busy;
    /** Index of the idle connection that is polled next. */
    private int cursor;
    /** Number of due polls of idle connections, multiplied by {@value #IDLE_CYCLE}. */
    private int owed;
    private int quietPasses;
    /** Number of polls of idle connections that must still be made before passes poll only due connections again. */
    private int wakingPolls;

    /** @param busyPolls number of polls without work after which a connection is idle */
    public PollSchedule(T[] none, Poller<T> poller, int busyPolls) {
        this.connections = none;
        this.poller = poller;
        this.busyPolls = busyPolls;
    }

    /** Adds connections. They are busy at first. */
    public void add(Collection<T> added) {
        connections = Arrays.copyOf(connections, size + added.size());
        workless = Arrays.copyOf(workless, connections.length);
        for (T connection : added) {
            connections[size] = connection;
            toBusy(size++);
        }
    }

    /**
     * Removes a connection, also in the middle of a pass.
     *
     * @return false if the schedule does not contain it
     */
    public boolean remove(T connection) {
        int at = indexOf(connection);
        if (at < 0) {
            return false;
        }
        // Busy connections have the lowest indexes. If a busy connection is removed, the busy connection with the
        // highest index takes its place. The last of all connections then takes the place that became free. A pass
        // begins at the highest index, so it has already polled the moved busy connection.
        toIdle(at);
        connections[Math.max(at, busy)] = connections[--size];
        connections[size] = null;
        return true;
    }

    /** {@return whether the connection is polled: false if it was removed, or never added} */
    public boolean contains(T connection) {
        return indexOf(connection) >= 0;
    }

    private int indexOf(T connection) {
        for (int i = 0; i < size; i++) {
            if (connections[i] == connection) {
                return i;
            }
        }
        return -1;
    }

    public List<T> all() {
        return List.of(Arrays.copyOf(connections, size));
    }

    /**
     * Makes the next pass poll all connections, because the thread has slept since the last pass, or is about to sleep.
     * A thread that sleeps has time to poll all connections. If only the due connections were polled, some idle
     * connections would wait for many sleeps.
     */
    public void pollAll() {
        quietPasses = QUIET_PASSES;
    }

    /** Polls the connections that are due. Returns the amount of work. */
    public int pass() {
        int work = 0;
        boolean quiet = quietPasses == QUIET_PASSES;
        boolean all = quiet || wakingPolls > 0;
        // A poll may exchange the positions of the polled connection and another connection. A pass polls in the order
        // of decreasing indexes. The other connection was therefore polled already, or misses only this pass.
        for (int i = (all ? size : busy) - 1; i >= 0; i--) {
            work += poll(i);
        }
        if (!all && busy < size) {
            work += pollSomeIdle();
        }
        wakingPolls = quiet && work > 0 ? WAKING_POLLS : Math.max(0, wakingPolls - (size - busy));
        quietPasses = work > 0 ? 0 : Math.min(quietPasses + 1, QUIET_PASSES);
        return work;
    }

    private int pollSomeIdle() {
        int work = 0;
        for (owed += size - busy; owed >= IDLE_CYCLE && busy < size; owed -= IDLE_CYCLE) {
            if (cursor < busy || cursor >= size) {
                cursor = busy;
            }
            work += poll(cursor++);
        }
        return work;
    }

    private int poll(int at) {
        int done = poller.poll(connections[at]);
        if (done > 0) {
            toBusy(at);
        } else if (at < busy && ++workless[at] >= busyPolls) {
            toIdle(at);
        }
        return done;
    }

    private void toBusy(int at) {
        if (at >= busy) {
            swap(at, busy++);
            workless[busy - 1] = 0;
        } else {
            workless[at] = 0;
        }
    }

    private void toIdle(int at) {
        if (at < busy) {
            busy--;
            workless[at] = workless[busy];
            swap(at, busy);
        }
    }

    private void swap(int one, int other) {
        T connection = connections[one];
        connections[one] = connections[other];
        connections[other] = connection;
    }
}
