package org.millrace.trace;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.millrace.file.ProcessIdentity;

/**
 * The whole trace of a process at one moment.
 *
 * @param alive       whether the process still runs; false only if its death is certain
 * @param rank        rank from the launcher; -1 if unknown
 * @param read        time when the reading of the trace began. All times of this object are in nanoseconds of the
 *                    host's clock. The state of the process is from this time, or from a later moment of the reading
 * @param heartbeat   time of the last heartbeat, which the process writes while any block of its trace is open
 * @param late        time of the last heartbeat that was late, because the process had no core; 0 if none was late
 * @param epochMillis milliseconds since 1970 at a reference moment
 * @param epochNanos  time of the host's clock at the same reference moment
 * @param connections open connections, and the connections that were closed last
 * @param ports       ports that a living process listens on, about 15 at most: "10.0.0.1 port 41234 (connections)"
 */
public record TracedProcess(Path file, ProcessIdentity identity, boolean alive, String host, String program, int rank,
        int size, boolean failed, long read, long heartbeat, long late, long epochMillis, long epochNanos,
        Map<String, String> settings, List<TracedAgent> agents, List<TracedCommunicator> communicators,
        List<TracedConnection> connections, List<TracedGin> gin, List<TracedSilence> silences, List<TracedJoin> joins,
        List<Message> messages, List<String> ports) {

    /**
     * Time without a heartbeat after which a process counts as silent, in seconds. Living processes write ten
     * heartbeats a second while any block of their trace is open.
     */
    private static final double SILENT_SECONDS = 2;

    /**
     * A thread that serves connections.
     *
     * @param number   number of the agent, as connections store it
     * @param thread   Linux's number of the thread; 0 if the thread has not run
     * @param clock    time when the passes were counted
     * @param cpuNanos total CPU time of the thread; stored once a second
     */
    public record TracedAgent(int number, String name, int thread, long passes, long busy, long clock, long cpuNanos) {
    }

    public record Message(long time, String text) {
    }

    /**
     * Returns whether the process is dead, or writes no heartbeat although its trace has an open connection. In the
     * second case, the process or its host is stopped.
     */
    public boolean isSilent() {
        return !alive || isBeating() && (read - heartbeat) / 1e9 > SILENT_SECONDS;
    }

    /** Returns whether a connection of the process has no stream and waits for one. */
    public boolean isCut() {
        return silences.stream().anyMatch(link -> link.state() == TracedState.OPEN && link.isCut());
    }

    /** Returns whether the process has an open connection, and therefore writes ten heartbeats a second. */
    public boolean isBeating() {
        return connections.stream().anyMatch(one -> one.state() == TracedState.OPEN)
                || joins.stream().anyMatch(one -> one.state() == TracedState.OPEN);
    }

    /**
     * Returns the time of the process's last late heartbeat. A late heartbeat means that the process had no core.
     * Returns {@code read} if a heartbeat was overdue when the trace was read.
     */
    public long lastLate() {
        return read - heartbeat > TraceLayout.LATE_NANOS ? read : late;
    }

    /** Returns a time of the host's clock in milliseconds since 1970. */
    public double epochMillis(long nanos) {
        return epochMillis + (nanos - epochNanos) / 1e6;
    }
}
