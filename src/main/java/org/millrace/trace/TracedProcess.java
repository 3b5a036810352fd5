package org.millrace.trace;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.millrace.file.ProcessIdentity;

/**
 * All that a process has written down, at one moment.
 *
 * @param alive       whether it still runs: false only if that is sure
 * @param rank        what its launcher says; -1 if nothing
 * @param read        when its reading began, in nanoseconds of the host's clock, as all times here: all was then as it
 *                    is told, but for what has changed since
 * @param heartbeat   when the process last said that it runs; it does so while it has anything open
 * @param late        when it last ran after it had not for longer than it should: it had no core; 0 if never
 * @param epochMillis milliseconds since 1970, at the moment
 * @param epochNanos  that the host's clock was here
 * @param connections open ones, and the last that were closed
 */
public record TracedProcess(Path file, ProcessIdentity identity, boolean alive, String host, String program, int rank,
        int size, boolean failed, long read, long heartbeat, long late, long epochMillis, long epochNanos,
        Map<String, String> settings, List<TracedAgent> agents, List<TracedCommunicator> communicators,
        List<TracedConnection> connections, List<TracedGin> gin, List<TracedSilence> silences, List<Message> messages) {

    /** Living processes beat ten times a second while they have anything open. */
    private static final double SILENT_SECONDS = 2;

    /**
     * A thread that serves connections.
     *
     * @param number   as connections name it
     * @param thread   the kernel's number; 0 if it has not run
     * @param clock    when the passes were counted
     * @param cpuNanos for how long the thread had a core, within the last second
     */
    public record TracedAgent(int number, String name, int thread, long passes, long busy, long clock, long cpuNanos) {
    }

    public record Message(long time, String text) {
    }

    /** Whether it is gone, or does not beat although it has something open: it is stopped then, or its host is. */
    public boolean isSilent() {
        return !alive || isBeating() && (read - heartbeat) / 1e9 > SILENT_SECONDS;
    }

    /** Whether a connection of its has no stream, and waits for one. */
    public boolean isCut() {
        return silences.stream().anyMatch(link -> link.state() == TracedState.OPEN && link.isCut());
    }

    /** Whether it has anything open, and so says ten times a second that it runs. */
    public boolean isBeating() {
        return connections.stream().anyMatch(one -> one.state() == TracedState.OPEN);
    }

    /** When it was last known to have had no core for long, or has none now. */
    public long lastLate() {
        return read - heartbeat > TraceLayout.LATE_NANOS ? read : late;
    }

    /** A time of the host's clock, in milliseconds since 1970. */
    public double epochMillis(long nanos) {
        return epochMillis + (nanos - epochNanos) / 1e6;
    }
}
