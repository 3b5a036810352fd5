package org.millrace.agent;

import java.util.Arrays;
import java.util.Collection;
import java.util.List;

/**
 * Which of an agent's connections a pass polls. Every pass polls the busy ones. A connection that has had nothing to do
 * for many polls is idle, and idle ones are polled in turn, {@value #IDLE_CYCLE} passes for all of them: a poll can be
 * a system call, and a step of a busy connection is not to wait for those of hundreds of others. While no connection
 * has work every pass polls all: nobody is kept waiting then, and the pass may be followed by a sleep. When work comes
 * again that goes on for {@value #WAKING_POLLS} polls of idle ones: an operation seldom has one connection alone, and a
 * pass may be followed by a yield. One thread.
 *
 * <pre>
 *   connections    [0, busy)        [busy, size)
 *                  every pass       in turn
 * </pre>
 *
 * @param <T> a connection, or what else the agent serves
 */
public final class PollSchedule<T> {

    /** Polls without work after which a connection is idle: long enough for the pause between two kernels. */
    public static final int BUSY_POLLS = 1024;
    /** Passes in which every idle connection is polled once. */
    public static final int IDLE_CYCLE = 32;
    /** Passes without any work after which all connections are polled in each. */
    public static final int QUIET_PASSES = 1024;
    /** Polls of idle connections that are made in every pass still when work has come after that. */
    public static final int WAKING_POLLS = 1024;

    /** What is done at a poll. */
    @FunctionalInterface
    public interface Poller<T> {
        /** Lets a connection make progress, and returns how much; may {@link PollSchedule#remove} it. */
        int poll(T connection);
    }

    private final Poller<T> poller;
    private final int busyPolls;
    private T[] connections;
    /** For each busy connection: how many polls in a row have found nothing to do. */
    private int[] workless = {};
    private int size;
    private int busy;
    /** The idle connection that is polled next. */
    private int cursor;
    /** What the passes so far owe to idle connections, in parts of {@value #IDLE_CYCLE} of a poll. */
    private int owed;
    private int quietPasses;
    /** How many polls of idle connections are left that every pass makes. */
    private int wakingPolls;

    /**
     * A schedule with nothing to poll.
     *
     * @param busyPolls polls without work after which a connection is idle
     */
    public PollSchedule(T[] none, Poller<T> poller, int busyPolls) {
        this.connections = none;
        this.poller = poller;
        this.busyPolls = busyPolls;
    }

    /** Adds connections; they are busy at first. */
    public void add(Collection<T> added) {
        connections = Arrays.copyOf(connections, size + added.size());
        workless = Arrays.copyOf(workless, connections.length);
        for (T connection : added) {
            connections[size] = connection;
            toBusy(size++);
        }
    }

    /**
     * Takes a connection out, also in the middle of a pass.
     *
     * @return false if it is not here
     */
    public boolean remove(T connection) {
        int at = indexOf(connection);
        if (at < 0) {
            return false;
        }
        // The last busy one, and then the last of all, fills the gap: a pass goes through the busy ones backwards and
        // has polled it.
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
     * The thread has slept since the last pass: there is time for all, and a few of them would wait for many sleeps.
     */
    public void afterSleep() {
        quietPasses = QUIET_PASSES;
    }

    /** Polls what is due, and returns how much was done. */
    public int pass() {
        int work = 0;
        boolean quiet = quietPasses == QUIET_PASSES;
        boolean all = quiet || wakingPolls > 0;
        // Backwards: a connection that changes places does so with one that has been polled, or misses one poll.
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
