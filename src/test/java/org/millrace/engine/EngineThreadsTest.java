package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.millrace.abi.ConnectionInfo;
import org.millrace.agent.Agent;
import org.millrace.agent.Sleeper;
import org.millrace.config.Configuration;
import org.millrace.net.shm.Doorbell;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.transport.TransportEnd;

/** The polling threads of a rank wake each other only for work, and poll everything before they sleep. */
@Timeout(60)
class EngineThreadsTest {

    private final Doorbell doorbell = new Doorbell();
    private final Sleeper sleeper = doorbell.sleeper(1);

    /** Agent without work. A thread calls {@link #serveAll} before it sleeps, and the agent counts these calls. */
    private static final class Idle implements Agent {
        private int servedAll;

        @Override
        public int doWork() {
            return 0;
        }

        @Override
        public void serveAll() {
            servedAll++;
        }

        @Override
        public String name() {
            return "idle";
        }

        @Override
        public void onFailure(Throwable failure) {
            throw new AssertionError(failure);
        }
    }

    /**
     * A store wakes a thread only after the thread has announced its sleep. The thread's last pass before the sleep
     * must therefore find all earlier stores.
     */
    @Test
    void theLastPassBeforeASleepServesEverything() {
        Idle device = new Idle();
        Idle proxies = new Idle();
        Agent agent =
                new EngineThreads.Sleeping(new EngineThreads.InTurn(device, proxies), doorbell, () -> {}, () -> true);
        agent.doWork();
        assertEquals(0, proxies.servedAll);
        assertFalse(sleeper.sleep(1), "only announces");
        agent.doWork();
        assertEquals(1, proxies.servedAll);
        assertEquals(1, device.servedAll);
    }

    /**
     * A rank without peers has no proxies to wake. A needless wake-up would more than double the time of a small
     * operation.
     */
    @Test
    void aThreadIsWokenOnlyWhileAConnectionHasProxies() {
        EngineOptions options = EngineOptions.decide(Configuration.load(Map.of(), new Properties(), Map.of()),
                new Agreement(1, "host", 1, new int[1], 1, 1 << 20));
        EngineThreads threads = new EngineThreads(0, options, null, 1);
        try {
            threads.count(connection(List.of()), 1);
            assertFalse(isWoken(threads));
            TransportConnection served = connection(List.of(new NeverServed()));
            threads.count(served, 1);
            assertTrue(isWoken(threads));
            threads.count(served, -1);
            assertFalse(isWoken(threads));
        } finally {
            threads.close();
        }
    }

    /** Returns whether a thread that has done work wakes the other thread, which has announced its sleep. */
    private boolean isWoken(EngineThreads threads) {
        sleeper.sleep(1);
        assertTrue(doorbell.isAnnounced());
        threads.wakeIfServed(doorbell);
        boolean woken = !doorbell.isAnnounced();
        sleeper.awake();
        return woken;
    }

    private static TransportConnection connection(List<ProxyConnection> proxies) {
        return new TransportConnection(ConnectionName.of("test"), "test", new TransportEnd() {
            @Override
            public byte[] setup() {
                return new byte[0];
            }

            @Override
            public boolean connect(byte[] peer) {
                return true;
            }

            @Override
            public ConnectionInfo info() {
                return null;
            }

            @Override
            public List<ProxyConnection> proxyProgress() {
                return proxies;
            }

            @Override
            public void announce(ProxyOp op) {
                throw new AssertionError("no operation");
            }

            @Override
            public void free() {
                // this connection holds no resources
            }
        });
    }

    private static final class NeverServed implements ProxyConnection {
        @Override
        public int progress() {
            throw new AssertionError("not added to an agent");
        }

        @Override
        public boolean drained() {
            return true;
        }

        @Override
        public void stopped(Throwable failure) {
            throw new AssertionError("not added to an agent");
        }

        @Override
        public ConnectionName name() {
            return ConnectionName.of("test");
        }

        @Override
        public String lastSeen() {
            return "nothing";
        }
    }
}
