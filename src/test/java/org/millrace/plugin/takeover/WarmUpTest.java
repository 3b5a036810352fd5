package org.millrace.plugin.takeover;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.millrace.plugin.net.NetEndpoint;
import org.millrace.plugin.net.ProxyThreads;

/** Steps of this process to itself, before NCCL's first. */
class WarmUpTest {

    private static final Map<String, String> SETTINGS = Map.of("MILLRACE_NET", "shm", "NCCL_SOCKET_IFNAME", "lo");

    @Test
    void theFirstConnectionFindsItOver() {
        TakeoverPath path =
                new TakeoverPath(new ProxyThreads(1, false, Optional.empty(), Optional.empty(), "a test"), null, null);
        try (NetEndpoint endpoint = NetEndpoint.open(SETTINGS::get)) {
            WarmUp warmUp = new WarmUp(endpoint, path, true);
            warmUp.begin();
            assertFalse(warmUp.isOver());
            warmUp.finish();
            assertTrue(warmUp.isOver());
            assertTrue(warmUp.join(Duration.ofSeconds(30)), "it does not go on when it was told to cease");
        } finally {
            path.close();
        }
    }
}
