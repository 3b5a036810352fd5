package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.CommunicatorListener;
import org.millrace.MillraceException;
import org.millrace.bootstrap.ControlPlane;
import org.millrace.bootstrap.JoinOptions;
import org.millrace.config.Configuration;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.HostGin;
import org.millrace.gin.GinException;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.connection.FullMesh;

/** A failed peer reports its failure over the control plane, because its connections may not show the failure. */
@Timeout(60)
class GinFailureTest {

    @TempDir
    Path directory;

    @ParameterizedTest
    @ValueSource(strings = {"shm", "socket"})
    void aWaitForAPeersSignalEndsWhenThePeerFails(String network) throws Exception {
        Map<String, String> settings = EngineGroup.settings("MILLRACE_NET", network);
        CountDownLatch waits = new CountDownLatch(1);
        CountDownLatch told = new CountDownLatch(1);
        List<Throwable> thrown = EngineGroup.call(2, rank -> () -> {
            if (rank == 0) {
                try {
                    waitForSignal(settings, waits, told);
                } finally {
                    waits.countDown();
                    told.countDown();
                }
            } else {
                failWithOpenConnections(settings, waits, told);
            }
            return null;
        });
        assertEquals(Arrays.asList(null, null), thrown);
    }

    private void waitForSignal(Map<String, String> settings, CountDownLatch waits, CountDownLatch told) {
        try (GinRank rank = GinRank.join("file:" + directory.resolve("group"), 0, 2, settings)) {
            HostGin gin = new HostGin(rank.device(GinRequirements.of(1, 1, 0).withDeadline(Duration.ofSeconds(10))), 0);
            waits.countDown();
            String said = assertThrows(GinException.class, () -> gin.waitSignal(0, 1)).getMessage();
            told.countDown(); // the close of this rank waits until the other rank has closed its streams
            assertTrue(said.contains("rank 1 (pid") && said.contains("a kernel of rank 1 saw nonsense"), said);
        }
    }

    /** Runs a rank that reports a failure to the control plane and keeps its connections open. */
    private void failWithOpenConnections(Map<String, String> settings, CountDownLatch waits, CountDownLatch told)
            throws InterruptedException {
        Configuration configuration = Configuration.load(settings);
        try (ControlPlane control = ControlPlane.join("file:" + directory.resolve("group"), 1, 2,
                JoinOptions.of(configuration, CommunicatorListener.STANDARD_ERROR));
                Network network = Networks.open(configuration, Agreement.reach(control, configuration));
                Listener here = network.listen()) {
            EngineTrace.number(control);
            FullMesh.connect(network, here, control.allGather(here.address()), 1, 0x47494EL, 0, Duration.ofSeconds(20),
                    () -> null);
            control.barrier();
            waits.await();
            control.fail(new MillraceException("a kernel of rank 1 saw nonsense"));
            told.await();
        }
    }
}
