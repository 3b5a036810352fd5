package org.millrace.plugin.host;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.millrace.agent.IdleProfile;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;

/** Number of proxy threads of a takeover, by number of cores and by the user's settings. */
class ProxyThreadsTest {

    private static ProxyThreads threads(int cores, Map<String, String> environment) {
        return ProxyThreads.decide(Configuration.ofPlugin(environment::get), new CoreShare(cores, cores + " usable"),
                Integer.MAX_VALUE);
    }

    @Test
    void theyFollowFromTheCores() {
        assertEquals("1 thread that yields at once (cores: 2 usable)", threads(2, Map.of()).toString());
        assertEquals("4 threads that may spin (cores: 8 usable)", threads(8, Map.of()).toString());
    }

    @Test
    void fewAskAGpuForCopies() {
        assertEquals("2 threads that may spin (cores: 16 usable)",
                ProxyThreads.decide(Configuration.ofPlugin(name -> null), new CoreShare(16, "16 usable"), 2)
                        .toString());
    }

    @Test
    void theUserMaySayHowMany() {
        assertEquals("3 threads that yield at once (MILLRACE_THREADS; cores: 4 usable)",
                threads(4, Map.of("MILLRACE_THREADS", "3")).toString());
    }

    @Test
    void theUserMaySayWhenTheySleep() {
        assertEquals(IdleProfile.Backoff.class,
                threads(8, Map.of("NCCL_PROXY_IDLE_THRESHOLD", "0")).newIdleStrategy().getClass());
        ProxyThreads sleepy = threads(8, Map.of("NCCL_PROXY_IDLE_SLEEP_US", "30"));
        assertEquals(30_000, sleepy.maxParkNanos().orElseThrow());
        assertEquals(IdleProfile.TimedIdleStrategy.class, sleepy.newIdleStrategy().getClass());
        assertThrows(ConfigurationException.class, () -> threads(8, Map.of("NCCL_PROXY_IDLE_THRESHOLD", "soon")));
    }
}
