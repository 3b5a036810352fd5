package org.millrace.plugin.takeover;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.millrace.config.Configuration;
import org.millrace.config.Settings.PayloadCheck;
import org.millrace.net.Warnings;
import org.millrace.net.connection.KeyedListener;
import org.millrace.plugin.host.CallingLibrary;
import org.millrace.plugin.host.ProxyThreads;
import org.millrace.plugin.path.NetEndpoint;
import org.millrace.proxy.ProxyAgent;

/** The warm-up of a takeover: work before NCCL's first step, so that this step is fast. */
class WarmUpTest {

    private static final Map<String, String> SETTINGS = Map.of("MILLRACE_NET", "shm", "NCCL_SOCKET_IFNAME", "lo");

    private static ProxyThreads threads(int count) {
        return new ProxyThreads(count, false, Optional.empty(), Optional.empty(), "a test");
    }

    /** The first connection determines the number of threads, because the number of ranks on the host is known then. */
    @Test
    void theNumberOfThreadsIsSettledOnce() {
        AtomicInteger asked = new AtomicInteger();
        TakeoverService service = new TakeoverService(CallingLibrary.UNTOLD, threads(3), processes -> {
            asked.incrementAndGet();
            return threads(2);
        }, null, PayloadCheck.OFF);
        try {
            List<ProxyAgent> first = service.agents();
            assertEquals(3, first.size());
            service.connectionComing();
            service.connectionComing();
            assertEquals(1, asked.get());
            assertEquals(2, service.agents().size());
            assertEquals(service.agents(), List.of(service.assign(true), service.assign(true)));
            assertFalse(first.contains(service.assign(false)));
        } finally {
            service.stop();
            service.close();
        }
    }

    @Test
    void theFirstConnectionFindsItOver() {
        TakeoverService service =
                new TakeoverService(CallingLibrary.UNTOLD, threads(1), processes -> threads(1), null, PayloadCheck.OFF);
        try (NetEndpoint endpoint = NetEndpoint.open(Configuration.ofPlugin(SETTINGS::get))) {
            WarmUp warmUp = new WarmUp(endpoint, new TakeoverPath(service, null), service.agents(), null, true);
            warmUp.begin();
            assertFalse(warmUp.isOver());
            warmUp.finish();
            assertTrue(warmUp.isOver());
            assertTrue(warmUp.join(Duration.ofSeconds(30)), "it does not go on when it was told to cease");
        } finally {
            service.stop();
            service.close();
        }
    }

    /** On a slow machine, the warm-up may end during a TLS handshake. The connection is then completed. */
    @Test
    void aConnectionThatIsBeingMadeIsCompletedAtItsEnd() {
        Map<String, String> settings = Map.of("MILLRACE_NET", "socket", "NCCL_SOCKET_IFNAME", "lo", "MILLRACE_TLS", "1",
                "MILLRACE_SECRET", "a secret of this test, 32 characters or more");
        TakeoverService service =
                new TakeoverService(CallingLibrary.UNTOLD, threads(1), processes -> threads(1), null, PayloadCheck.OFF);
        try (Warnings warnings = new Warnings(KeyedListener.class.getName());
                NetEndpoint endpoint = NetEndpoint.open(Configuration.ofPlugin(settings::get))) {
            List<WarmUp> warmUps = IntStream.range(0, 20)
                    .mapToObj(_ -> new WarmUp(endpoint, new TakeoverPath(service, null), service.agents(), null, true))
                    .toList();
            warmUps.forEach(WarmUp::begin);
            while (Thread.getAllStackTraces().values().stream().noneMatch(WarmUpTest::connects)) {
                Thread.onSpinWait();
            }
            warmUps.forEach(WarmUp::cease);
            warmUps.forEach(warmUp -> assertTrue(warmUp.join(Duration.ofSeconds(30))));
            assertEquals(List.of(), warnings.all());
        } finally {
            service.stop();
            service.close();
        }
    }

    private static boolean connects(StackTraceElement[] stack) {
        return Arrays.stream(stack)
                .anyMatch(frame -> frame.getClassName().equals(WarmUp.class.getName())
                        && frame.getMethodName().equals("connect"));
    }
}
