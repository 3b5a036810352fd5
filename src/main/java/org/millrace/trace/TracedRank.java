package org.millrace.trace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TracedCommunicator.Operation;

/**
 * A rank of a communicator.
 *
 * @param rank         number of the rank; -1 if unknown
 * @param communicator trace of the communicator's operations; null if none was stored
 */
public record TracedRank(TracedProcess process, ProcessState state, long hash, int rank,
        @Nullable TracedCommunicator communicator) {

    private static final long UNKNOWN = -2;
    private static final int MAX_CORE_WAITS = 10;
    /**
     * Maximum difference between the clocks of processes on the same host, in nanoseconds. The clock counts from the
     * start of a host, and two hosts are unlikely to have started within such a short time.
     */
    private static final long HERE_NANOS = 2_000_000_000;

    /** Returns "rank 3 (pid 4711 on a1, stopped)". */
    String words() {
        return words(", " + state.label());
    }

    /** Returns "rank 3 (pid 4711 on a1)", for sentences that state the process's state elsewhere. */
    String wordsWithoutState() {
        return words("");
    }

    private String words(String rest) {
        return (rank < 0 ? "the rank of " : "rank " + rank + " (") + "pid " + process.identity().pid() + " on "
                + process.host() + rest + (rank < 0 ? "" : ")");
    }

    /** Returns "rank 3", for further mentions of the rank in a sentence. */
    String shortly() {
        return rank < 0 ? "pid " + process.identity().pid() : "rank " + rank;
    }

    /**
     * Returns the number of the last collective that the rank has enqueued, counted in the communicator; -1 if it has
     * enqueued none; {@link #UNKNOWN} if the number is unknown.
     */
    long lastCollective() {
        if (communicator == null) {
            return UNKNOWN;
        }
        for (Operation operation : communicator.last().reversed()) {
            if (operation.peer() < 0) {
                return operation.sequence();
            }
        }
        return communicator.enqueued() <= communicator.last().size() ? -1 : UNKNOWN;
    }

    List<Operation> operations() {
        return communicator == null ? List.of() : communicator.last();
    }

    /** Returns whether the start and the end of each operation's kernel are recorded. */
    boolean reportsKernels() {
        return communicator != null && communicator.kernels();
    }

    boolean hasBegun(Operation operation) {
        return communicator != null && operation.number() < communicator.begun();
    }

    /** Returns the remembered operations with kernels that are on the device or will be launched. */
    List<Operation> pending() {
        return communicator == null ? List.of() : communicator.pending();
    }

    /**
     * Returns the time that the thread of the rank's kernels has spent in a host function, in nanoseconds; 0 if the
     * thread is in none.
     */
    long inFunction() {
        return communicator == null || communicator.function() == 0 ? 0 : process.heartbeat() - communicator.function();
    }

    boolean isInside() {
        return communicator != null && communicator.begun() > communicator.ended();
    }

    boolean hasPending() {
        return communicator != null && communicator.enqueued() > communicator.begun();
    }

    /**
     * Returns whether a thread that serves the rank's connections probably waits for a core. Such a thread has made no
     * pass for longer than {@code nanos}. A thread with a much longer delay does not count, because such a delay must
     * have another reason.
     */
    boolean waitsForCore(long nanos) {
        return process.agents()
                .stream()
                .filter(agent -> agent.clock() != 0)
                .mapToLong(agent -> process.heartbeat() - agent.clock())
                .anyMatch(age -> age > nanos && age < MAX_CORE_WAITS * nanos);
    }

    /** Returns whether the communicator has failed and its program has not closed it. */
    boolean hasFailed() {
        return communicator != null && communicator.state() == TracedState.FAILED;
    }

    /**
     * Returns the rank whose operation this rank has found to differ from its own; null if it has found no such rank.
     */
    @Nullable
    TracedRank differsFrom(List<TracedRank> members) {
        return communicator == null || communicator.differs() < 0 ? null
                : members.stream()
                        .filter(each -> each != this && each.rank() == communicator.differs())
                        .findFirst()
                        .orElse(null);
    }

    long opened() {
        return communicator != null ? communicator.opened()
                : process.connections()
                        .stream()
                        .filter(each -> each.identity().communicator() == hash && each.state() != TracedState.CLOSED)
                        .mapToLong(TracedConnection::opened)
                        .min()
                        .orElse(process.epochNanos());
    }

    /**
     * Returns whether the rank's process uses this host's clock: the process is visible on this host, or its heartbeats
     * match this clock.
     */
    boolean isHere() {
        return state == ProcessState.RUNNING || state.isStopped()
                || Math.abs(process.read() - process.heartbeat()) < HERE_NANOS;
    }

    long lastSeen() {
        return state == ProcessState.DEAD ? process.heartbeat() : process.read();
    }

    boolean knowsCollectives() {
        return lastCollective() != UNKNOWN;
    }

    /** State of a rank's process, as Linux reports it. */
    public enum ProcessState {
        /** The process runs, or waits for an event. */
        RUNNING("running"),
        /** A signal has stopped the process. */
        STOPPED("stopped"),
        /** A debugger has stopped the process. */
        TRACED("stopped by a debugger"),
        /** The process's cgroup, or a cgroup above it, is frozen. */
        FROZEN("frozen"),
        /** The process belongs to another PID namespace of this host. It lives, but its threads do not run. */
        PAUSED("paused"),
        DEAD("dead"),
        /** The process belongs to another host or another namespace. */
        UNKNOWN("not seen from here");

        /** Bit of SIGKILL in the set of pending signals. */
        private static final long KILL = 1 << 9 - 1;
        /** Time without a heartbeat after which a process of another PID namespace counts as paused, in nanoseconds. */
        private static final long PAUSE_NANOS = 10_000_000_000L;
        private static final Path CGROUPS = Path.of("/sys/fs/cgroup");

        private final String label;

        ProcessState(String label) {
            this.label = label;
        }

        String label() {
            return label;
        }

        /** Returns whether the process is stopped: none of its threads runs, but the process can continue later. */
        public boolean isStopped() {
            return this == STOPPED || this == TRACED || this == FROZEN || this == PAUSED;
        }

        static ProcessState of(TracedProcess process) {
            if (!process.alive()) {
                return DEAD;
            }
            long silentNanos = process.read() - process.heartbeat();
            if (!process.identity().isOfThisNamespace()) {
                return process.isBeating() && silentNanos > PAUSE_NANOS && OwnerLock.isHeld(process.file()) ? PAUSED
                        : UNKNOWN;
            }
            try {
                Path proc = Path.of("/proc/" + process.identity().pid());
                boolean silent = silentNanos > TraceLayout.LATE_NANOS;
                ProcessState state = of(Files.readAllLines(proc.resolve("status")), silent);
                return silent && state == RUNNING && isFrozen(Files.readAllLines(proc.resolve("cgroup")), CGROUPS)
                        ? FROZEN
                        : state;
            } catch (IOException | RuntimeException gone) {
                return UNKNOWN;
            }
        }

        /**
         * Parses {@code /proc/PID/status}. A process with a pending SIGKILL counts as dead, because such a process may
         * take time to end where cores are scarce.
         */
        static ProcessState of(List<String> lines, boolean silent) {
            char state = 'R';
            boolean killed = false;
            for (String line : lines) {
                if (line.startsWith("State:")) {
                    state = line.substring("State:".length()).strip().charAt(0);
                } else if (line.startsWith("SigPnd:") || line.startsWith("ShdPnd:")) {
                    killed |= (Long.parseUnsignedLong(line.substring("SigPnd:".length()).strip(), 16) & KILL) != 0;
                }
            }
            // The process's first thread may have ended although other threads still run.
            if (killed || silent && (state == 'Z' || state == 'X')) {
                return DEAD;
            }
            return state == 'T' ? STOPPED : state == 't' ? TRACED : RUNNING;
        }

        /**
         * Returns whether a process's cgroup is frozen, in version 2 or in the freezer hierarchy of version 1.
         *
         * @param cgroups lines of {@code /proc/PID/cgroup}
         * @param mounted directory of the mounted hierarchies
         */
        static boolean isFrozen(List<String> cgroups, Path mounted) throws IOException {
            // If both versions are mounted, systemd mounts version 2 in a directory beside the hierarchies of version
            // 1.
            String second = Files.isDirectory(mounted.resolve("unified")) ? "unified" : ".";
            for (String line : cgroups) {
                String[] fields = line.split(":", 3);
                boolean unified = fields[1].isEmpty();
                Path file = mounted.resolve(unified ? second : "freezer")
                        .resolve(fields[2].substring(1))
                        .resolve(unified ? "cgroup.events" : "freezer.state");
                if ((unified || fields[1].equals("freezer")) && Files.isReadable(file)
                        && Files.readString(file).lines().anyMatch(Set.of("frozen 1", "FROZEN")::contains)) {
                    return true;
                }
            }
            return false;
        }
    }
}
