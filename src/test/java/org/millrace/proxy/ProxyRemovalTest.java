package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyException;

/** An agent's release of connections, with the test's own clock. */
class ProxyRemovalTest {

    private static final Duration TIMEOUT = Duration.ofSeconds(2);

    private long now = Long.MAX_VALUE - 100; // the clock is about to wrap, so deadlines wrap
    private final ProxyAgent agent = new ProxyAgent("test", () -> {}, () -> now);

    /** Connection that reports work in a given number of passes, and is drained when the test decides. */
    private static final class Stub implements ProxyConnection {
        private int moves;
        private boolean drained;
        private boolean broken;
        private boolean throwsAtStop;
        private int passes;
        private int stops;
        private int settlements;
        private Throwable failure;

        @Override
        public int progress() {
            passes++;
            return moves-- > 0 ? 1 : 0;
        }

        @Override
        public boolean drained() {
            if (broken) {
                throw new ProxyException("the device posted a size of -2 bytes");
            }
            return drained;
        }

        @Override
        public void settle() {
            settlements++;
        }

        @Override
        public boolean owesData() {
            return !drained;
        }

        @Override
        public void stopped(Throwable reason) {
            stops++;
            failure = reason;
            if (throwsAtStop) {
                throw new IllegalStateException("thrown by the test");
            }
        }

        @Override
        public ConnectionName name() {
            return ConnectionName.of("stub");
        }

        @Override
        public String lastSeen() {
            return "nothing";
        }
    }

    private Stub served() {
        Stub stub = new Stub();
        agent.add(List.of(stub));
        agent.doWork();
        return stub;
    }

    private static boolean given(ProxyAgent.Acknowledgement removal) {
        return removal.await(Duration.ZERO);
    }

    @Test
    void aConnectionOnWhichNothingMovesIsGivenUpWhenPatienceIsOver() {
        Stub stuck = served();
        ProxyAgent.Acknowledgement removal = agent.remove(List.of(stuck), TIMEOUT);
        now += TIMEOUT.toNanos() - 1;
        agent.doWork();
        assertFalse(given(removal));
        now++;
        agent.doWork();
        assertTrue(given(removal));
        assertFalse(removal.drained());
        assertEquals(1, stuck.stops);
        assertNull(stuck.failure);
    }

    /**
     * A removal settles a connection: it copies the connection's payloads in flight. Before a thread sleeps, it checks
     * whether its agent is drained. This check must not settle a connection.
     */
    @Test
    void onlyARemovalSettlesWhatIsInFlight() {
        Stub stub = served();
        assertFalse(agent.isDrained());
        assertEquals(0, stub.settlements);
        agent.remove(List.of(stub), TIMEOUT);
        agent.doWork();
        assertEquals(1, stub.settlements);
    }

    @Test
    void patienceBeginsAnewWithEveryMove() {
        Stub slow = served();
        slow.moves = 20;
        ProxyAgent.Acknowledgement removal = agent.remove(List.of(slow), TIMEOUT);
        while (slow.moves > 0) {
            agent.doWork();
            now += TIMEOUT.toNanos() - 1;
            assertFalse(given(removal));
        }
        slow.drained = true;
        agent.doWork();
        assertTrue(given(removal));
        assertTrue(removal.drained());
    }

    @Test
    void withoutPatienceAConnectionIsLetGoInTheNextPass() {
        Stub stuck = served();
        ProxyAgent.Acknowledgement removal = agent.remove(List.of(stuck), Duration.ZERO);
        agent.doWork();
        assertTrue(given(removal));
        int passes = stuck.passes;
        agent.doWork();
        assertEquals(passes, stuck.passes);
    }

    /** Each agent serves connections of several communicators. */
    @Test
    void aConnectionThatFailsWhileItIsRemovedTakesNoOtherWithIt() {
        Stub broken = served();
        Stub other = served();
        broken.broken = true;
        ProxyAgent.Acknowledgement removal = agent.remove(List.of(broken), TIMEOUT);
        agent.doWork();
        assertTrue(given(removal));
        assertNotNull(broken.failure);
        assertEquals(1, broken.stops);
        int passes = other.passes;
        agent.doWork();
        assertEquals(passes + 1, other.passes);
        assertEquals(0, other.stops);
    }

    @Test
    void aConnectionThatHasFailedBeforeIsNotAskedAgain() {
        Stub broken = served();
        broken.broken = true;
        agent.onFailure(new ProxyException("of the whole pass"));
        ProxyAgent.Acknowledgement removal = agent.remove(List.of(broken), TIMEOUT);
        agent.doWork();
        assertTrue(given(removal));
        assertEquals(1, broken.stops);
    }

    /** If the stop or the listener of one connection throws, the thread's other connections do not fail. */
    @Test
    void aThrowOfAListenerTakesNoOtherConnectionWithIt() {
        Stub first = served();
        Stub second = served();
        first.throwsAtStop = true;
        ProxyAgent.Acknowledgement removal = agent.remove(List.of(first), Duration.ZERO);
        agent.doWork();
        assertTrue(given(removal));
        int passes = second.passes;
        agent.doWork();
        assertEquals(passes + 1, second.passes);
        assertEquals(0, second.stops);
    }

    @Test
    void aFailureOfTheThreadReachesAllConnectionsWhateverTheyThrow() {
        List<Stub> all = List.of(served(), served(), served());
        all.forEach(each -> each.throwsAtStop = true);
        agent.onFailure(new ProxyException("of the whole pass"));
        all.forEach(each -> assertEquals(1, each.stops));
    }
}
