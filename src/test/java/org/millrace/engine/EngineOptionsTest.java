package org.millrace.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.millrace.agent.IdleProfile;
import org.millrace.agent.Sleeper;
import org.millrace.agent.IdleProfile.Backoff;
import org.millrace.agent.IdleStrategy;
import org.millrace.config.Configuration;

class EngineOptionsTest {

    private static final String FIRST_STEP = "org.millrace.engine.firstStep";
    private static final String FIRST_WORK = "org.millrace.engine.firstWork";

    /** Clears the properties, because other tests of the same JVM set them too. */
    @BeforeEach
    @AfterEach
    void clear() {
        System.clearProperty(FIRST_STEP);
        System.clearProperty(FIRST_WORK);
    }

    private static EngineOptions decided() {
        return decided(2, Map.of());
    }

    private static EngineOptions decided(int ranks, Map<String, String> settings) {
        return EngineOptions.decide(Configuration.load(settings, new Properties(), Map.of()),
                new Agreement(ranks, "host", ranks, new int[ranks], 1, 1 << 20));
    }

    /** If two ranks share one core, a polling rank may take the core from the rank that it waits for. */
    @Test
    void moreRanksThanCoresWaitByTheClock() {
        int cores = Runtime.getRuntime().availableProcessors();
        Map<String, String> counted = Map.of("NCCL_PROXY_IDLE_THRESHOLD", "100");
        assertInstanceOf(Backoff.class, decided(cores, Map.of()).idle().apply(Sleeper.PARK));
        assertInstanceOf(IdleProfile.TimedIdleStrategy.class, decided(cores + 1, Map.of()).idle().apply(Sleeper.PARK));
        assertInstanceOf(Backoff.class, decided(cores + 1, counted).idle().apply(Sleeper.PARK),
                "the user's count is not kept");
    }

    /** Each wake-up of an idle rank costs processor time. */
    @Test
    void anIdleRankWakesFiveTimesASecond() {
        assertEquals(5, wakeUps(Map.of()), 1);
        assertEquals(200, wakeUps(Map.of("NCCL_PROXY_IDLE_SLEEP_US", "5000")), 1);
    }

    /** Returns the number of sleeps while an idle rank's total sleeping time grows from one second to two seconds. */
    private static int wakeUps(Map<String, String> settings) {
        AtomicLong slept = new AtomicLong();
        IdleStrategy idle = decided(2, settings).idle().apply(nanos -> {
            slept.addAndGet(nanos);
            return true;
        });
        int sleeps = 0;
        while (slept.get() < 2_000_000_000) {
            long before = slept.get();
            idle.idle(0);
            sleeps += before >= 1_000_000_000 && slept.get() > before ? 1 : 0;
        }
        idle.pause();
        return sleeps;
    }

    /** Tests set these properties to make counters wrap. */
    @Test
    void countersBeginWhereAPropertySays() {
        assertEquals(0, decided().firstStep());
        assertEquals(0, decided().firstWork());
        System.setProperty(FIRST_STEP, "-20");
        System.setProperty(FIRST_WORK, "4294901760");
        assertEquals(-20, decided().firstStep());
        assertEquals(0xffff0000, decided().firstWork());
    }
}
