package org.millrace.cli.inspect;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.ConnectionIdentity;
import org.millrace.trace.TraceFiles;
import org.millrace.trace.TracedCommunicator.Operation;
import org.millrace.trace.TracedCommunicator;
import org.millrace.trace.TracedConnection;
import org.millrace.trace.TracedProcess;
import org.millrace.trace.TracedState;

class TopViewTest {

    private static final long SECOND = 1_000_000_000;
    private static final int AGENT = 0;

    private static TracedConnection connection(int block, int agent, String network) {
        return new TracedConnection(block, 1, TracedState.OPEN,
                new ConnectionIdentity(7, 0, 1, block, Direction.SEND, 0, 0, 0, 0, 0, network, "rank 1", "a name"),
                agent, SECOND, 0, agent == AGENT ? 3 : 0, agent == AGENT ? 3000 : 0, 40, 40, 9 * SECOND, -1, 0, 0, 0, 0,
                List.of());
    }

    /** Five all-reduces were enqueued. The kernel of the third all-reduce runs. */
    private static TracedProcess process(TracedConnection... connections) {
        List<Operation> operations = new ArrayList<>();
        for (int number = 0; number < 5; number++) {
            operations.add(new Operation(number, "all_reduce", number, 1 << 20, 1 << 18, 7, 1, -1, -1, SECOND + number,
                    0, 0, 0, 0, ""));
        }
        TracedCommunicator communicator = new TracedCommunicator(7, 0, 2, 1, "", TracedState.OPEN, SECOND, 0, true, 0,
                3, 2, -1, -1, 5, null, operations, Map.of());
        return new TracedProcess(Path.of("trace"), new ProcessIdentity(10, 1, 1), true, "host", "a test", 0, 2, false,
                11 * SECOND, 11 * SECOND, 0, 0, SECOND, Map.of(), List.of(), List.of(communicator),
                List.of(connections), List.of(), List.of(), List.of(), List.of(), List.of());
    }

    private static List<String> lines(TracedConnection... connections) {
        return new TopView(List.of(), List.of(process(connections))).lines(80, 40);
    }

    /** If devices access each other's memory, Millrace counts no bytes. The view must not show 0 bytes in this case. */
    @Test
    void ofDirectConnectionsNothingIsShownThatIsNotCounted() {
        assertEquals(
                List.of("millrace top: 1 process, 1 direct connection (bytes are not counted)",
                        "PID RANK STATE   OPERATION        PROGRAM", " 10    0 running all_reduce #2 1M a test", "",
                        "PID RANK    PEER CH NET STEPS/s WAITS FOR SINCE STEP PEER'S PROCESS",
                        " 10    0 ->    1  0 P2P       4 kernel     2.0s   40 rank 1"),
                lines(connection(0, TraceFiles.NO_AGENT, "P2P")));
    }

    @Test
    void ofAllOthersItIsCounted() {
        List<String> lines = lines(connection(0, TraceFiles.NO_AGENT, "P2P"), connection(1, AGENT, "shm"));
        assertEquals("millrace top: 1 process, 2 connections (1 direct), 300B/s out, 0B/s in", lines.getFirst());
        assertEquals(
                List.of("PID RANK    PEER CH NET B/s STEPS/s WAITS FOR SINCE STEP FRAMES BYTES AGENT",
                        " 10    0 ->    1  0 P2P           4 kernel     2.0s   40",
                        " 10    0 ->    1  1 shm 300       4 kernel     2.0s   40      3 2.93k     0"),
                lines.subList(4, 7).stream().map(line -> line.replaceAll(" *(rank 1|PEER'S PROCESS)$", "")).toList());
    }

    private static String stateOfSilent(long namespace) {
        TracedProcess of = process(connection(0, AGENT, "shm"));
        return Processes.state(new TracedProcess(of.file(), new ProcessIdentity(10, 1, namespace), true, of.host(),
                of.program(), 0, 2, false, 11 * SECOND, 2 * SECOND, 0, 0, SECOND, Map.of(), List.of(), List.of(),
                of.connections(), List.of(), List.of(), List.of(), List.of(), List.of()));
    }

    /**
     * The view cannot determine whether a silent process of another PID namespace still exists, so it does not report
     * the process as stopped.
     */
    @Test
    void whoDoesNotBeatIsStoppedOnlyIfItIsSeenToBeThere() {
        assertEquals("stopped", stateOfSilent(ProcessIdentity.CURRENT.namespace()));
        assertEquals("silent", stateOfSilent(1));
    }
}
