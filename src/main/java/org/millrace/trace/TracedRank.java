package org.millrace.trace;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.trace.TracedCommunicator.Operation;

/**
 * A rank of a communicator.
 *
 * @param rank         its number; -1 if nobody told
 * @param communicator what was written down of it: its operations; null if nothing was
 */
public record TracedRank(TracedProcess process, ProcessState state, long hash, int rank,
        @Nullable TracedCommunicator communicator) {

    private static final long UNKNOWN = -2;
    private static final int PATIENCE = 10;
    /** Two hosts were hardly started within so short a time. */
    private static final long HERE_NANOS = 2_000_000_000;

    /** "rank 3 (pid 4711 on a1, stopped)". */
    String words() {
        return words(", " + state.label());
    }

    /** "rank 3 (pid 4711 on a1)", where its state is said besides. */
    String whose() {
        return words("");
    }

    private String words(String rest) {
        return (rank < 0 ? "the rank of " : "rank " + rank + " (") + "pid " + process.identity().pid() + " on "
                + process.host() + rest + (rank < 0 ? "" : ")");
    }

    /** "rank 3", for the second time that it is named. */
    String shortly() {
        return rank < 0 ? "pid " + process.identity().pid() : "rank " + rank;
    }

    /** The last collective that was enqueued: its number in the communicator; -1 for none. */
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

    /** Whether it is told of each operation when its kernel begins and ends. */
    boolean tellsKernels() {
        return communicator != null && communicator.kernels();
    }

    boolean hasBegun(Operation operation) {
        return communicator != null && operation.number() < communicator.begun();
    }

    /** Operations whose kernels are on the device, or are to come there; of those that are remembered. */
    List<Operation> pending() {
        return communicator == null ? List.of() : communicator.pending();
    }

    /** For how long its kernels' thread has been in a function of the program; 0 if it is in none. */
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
     * Whether a thread that serves its connections has made no pass for so long as to have had no core; one that has
     * made none for much longer has another reason.
     */
    boolean waitsForCore(long nanos) {
        return process.agents()
                .stream()
                .filter(agent -> agent.clock() != 0)
                .mapToLong(agent -> process.heartbeat() - agent.clock())
                .anyMatch(age -> age > nanos && age < PATIENCE * nanos);
    }

    /** The communicator has failed, and its program has not closed it. */
    boolean hasFailed() {
        return communicator != null && communicator.state() == TracedState.FAILED;
    }

    /** The rank that it has found to run another operation than itself; null if it has found none. */
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

    /** Whether its process has this host's clock: it is seen to run here, or beats by it. */
    boolean isHere() {
        return state == ProcessState.RUNNING || state == ProcessState.STOPPED
                || Math.abs(process.read() - process.heartbeat()) < HERE_NANOS;
    }

    long lastSeen() {
        return state == ProcessState.DEAD ? process.heartbeat() : process.read();
    }

    boolean tellsCollectives() {
        return lastCollective() != UNKNOWN;
    }

    /** What a rank's process does, as the kernel says. */
    public enum ProcessState {
        /** It runs, or waits for something. */
        RUNNING("running"),
        /** By a signal, or by a debugger. */
        STOPPED("stopped"),
        DEAD("dead"),
        /** It is of another host, or of another namespace. */
        UNKNOWN("not seen from here");

        /** SIGKILL among the signals that are to be delivered. */
        private static final long KILL = 1 << 9 - 1;

        private final String label;

        ProcessState(String label) {
            this.label = label;
        }

        String label() {
            return label;
        }

        static ProcessState of(TracedProcess process) {
            if (!process.alive()) {
                return DEAD;
            }
            if (!process.identity().isOfThisNamespace()) {
                return UNKNOWN;
            }
            try {
                return of(Files.readAllLines(Path.of("/proc/" + process.identity().pid() + "/status")),
                        process.read() - process.heartbeat() > TraceLayout.LATE_NANOS);
            } catch (IOException | RuntimeException gone) {
                return UNKNOWN;
            }
        }

        /** By {@code /proc/PID/status}: a process that was killed takes its time to end where cores are scarce. */
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
            if (killed || silent && (state == 'Z' || state == 'X')) { // its first thread may have left before the
                                                                      // others
                return DEAD;
            }
            return state == 'T' || state == 't' ? STOPPED : RUNNING;
        }
    }
}
