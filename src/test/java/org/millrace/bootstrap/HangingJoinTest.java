package org.millrace.bootstrap;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.millrace.file.ProcessIdentity;
import org.millrace.trace.Hang;
import org.millrace.trace.JoinTrace;
import org.millrace.trace.OwnTrace;
import org.millrace.trace.TraceReader;
import org.millrace.trace.Verdict;

/** The verdict on a join that hangs names the missing rank, or the reason why a rank cannot join. */
@Timeout(value = 120, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HangingJoinTest {

    @TempDir
    private Path directory;
    private OwnTrace trace;

    @BeforeEach
    void trace() throws IOException {
        trace = new OwnTrace(directory);
    }

    @AfterEach
    void usualTrace() {
        trace.close();
    }

    private static FutureTask<ControlPlane> joining(String rendezvous, int rank, int size) {
        return Ranks.async(() -> ControlPlane.join(rendezvous, rank, size, Ranks.TIMEOUT));
    }

    private List<String> verdicts(String rendezvous) throws IOException {
        return Hang
                .verdicts(() -> TraceReader.readAll(directory, (file, problem) -> {})
                        .stream()
                        .filter(each -> each.identity().equals(ProcessIdentity.CURRENT))
                        .toList(), Duration.ZERO)
                .stream()
                .map(Verdict::sentence)
                .filter(each -> each.contains(rendezvous))
                .toList();
    }

    private void await(String rendezvous, String begin, String part) throws IOException {
        while (verdicts(rendezvous).stream().noneMatch(each -> each.startsWith(begin) && each.contains(part))) {
            assertTrue(!Thread.currentThread().isInterrupted(), () -> "no verdict " + begin);
            Thread.onSpinWait();
        }
    }

    @Test
    void theMissingRankIsNamedUntilItJoins() throws Exception {
        String rendezvous = Ranks.freeTcp();
        FutureTask<ControlPlane> zero = joining(rendezvous, 0, 3);
        FutureTask<ControlPlane> one = joining(rendezvous, 1, 3);
        await(rendezvous, "Rank 2 has not joined: ranks 0 to 1 wait at " + rendezvous, "");
        ControlPlane two = ControlPlane.join(rendezvous, 2, 3, Ranks.TIMEOUT);
        Ranks.get(one).close();
        Ranks.get(zero).close();
        two.close();
        assertTrue(verdicts(rendezvous).isEmpty(), () -> "the group was complete");
    }

    @Test
    void aRankThatFindsNoRankZeroIsNamedWithTheAddress() throws Exception {
        String rendezvous = Ranks.freeTcp();
        FutureTask<ControlPlane> one = joining(rendezvous, 1, 2);
        await(rendezvous, "Rank 1 (pid " + ProcessIdentity.CURRENT.pid() + " on ",
                "cannot join: Connection refused: no process listens at " + rendezvous.substring(4) + " (group at ");
        one.cancel(true);
        while (!verdicts(rendezvous).isEmpty()) { // the interrupted rank closes its trace
            Thread.onSpinWait();
        }
    }

    @Test
    void aRankThatMeetsASilentProgramIsNamedWithTheAddress() throws Exception {
        try (ServerSocket silent = new ServerSocket(0, 10, InetAddress.getLoopbackAddress())) {
            String rendezvous = "tcp:127.0.0.1:" + silent.getLocalPort();
            FutureTask<ControlPlane> one = joining(rendezvous, 1, 2);
            await(rendezvous, "Rank 1 ", "connects to rank 0 at 127.0.0.1:" + silent.getLocalPort());
            one.cancel(true);
        }
    }

    @Test
    void aRankThatIsLateInItsSetUpIsNamed() throws Exception {
        String rendezvous = Ranks.freeTcp();
        FutureTask<ControlPlane> zero = joining(rendezvous, 0, 2);
        try (ControlPlane one = ControlPlane.join(rendezvous, 1, 2, Ranks.TIMEOUT);
                ControlPlane other = Ranks.get(zero);
                JoinTrace _ = other.traceSetUp();
                JoinTrace _ = one.traceSetUp()) {
            FutureTask<byte[][]> waiting = Ranks.async(() -> other.allGather(new byte[1]));
            await(rendezvous, "Rank 1 has not joined: rank 0 waits at " + rendezvous + "; rank 1 (pid ",
                    ", running) sets up its communicator");
            one.allGather(new byte[1]);
            Ranks.get(waiting);
            FutureTask<Void> barrier = Ranks.async(() -> {
                one.barrier();
                return null;
            });
            await(rendezvous, "Rank 0 has not joined: rank 1 waits at " + rendezvous + "; rank 0 (pid ", "sets up");
            other.barrier();
            Ranks.get(barrier);
        }
        assertTrue(verdicts(rendezvous).isEmpty(), () -> "the set-up has ended");
    }
}
