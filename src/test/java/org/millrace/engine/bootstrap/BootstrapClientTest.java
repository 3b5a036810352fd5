package org.millrace.engine.bootstrap;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.Selector;
import java.time.Duration;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.net.tls.Relay;

/** How a rank comes to rank 0. */
@Timeout(60)
class BootstrapClientTest {

    private static final Duration ATTEMPT = Duration.ofMillis(20);

    /** On a machine that has no core for it: each handshake takes some times as long as the first attempt waits. */
    @Test
    void aSlowRankZeroIsGivenMoreTimeWithEachAttempt() throws Exception {
        int port = Ranks.freePort();
        JoinOptions options = JoinOptions.within(Duration.ofSeconds(30)).withSecret("of the ranks");
        FutureTask<ControlPlane> zero = Ranks.async(() -> ControlPlane.join("tcp:127.0.0.1:" + port, 0, 2, options));
        AtomicInteger attempts = new AtomicInteger();
        try (Relay relay = new Relay(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
                Selector selector = Selector.open()) {
            relay.change(said -> {
                attempts.incrementAndGet();
                for (long end = System.nanoTime() + 12 * ATTEMPT.toNanos(); System.nanoTime() - end < 0;) {
                    LockSupport.parkNanos(ATTEMPT.toNanos());
                }
                return said;
            });
            GroupState group = new GroupState(RankIdentity.local(1), 2);
            new BootstrapClient(selector, group.self(), 2, ATTEMPT).connect(
                    Rendezvous.parse("tcp:127.0.0.1:" + relay.address().getPort(), options), group,
                    Deadline.in(Duration.ofSeconds(10)));
            assertTrue(attempts.get() > 1, "the first attempt was too short, as it was to be");
        } finally {
            zero.cancel(true);
        }
    }
}
