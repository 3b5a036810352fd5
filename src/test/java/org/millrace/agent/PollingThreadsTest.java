package org.millrace.agent;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.millrace.agent.IdleProfile.Backoff;

class PollingThreadsTest {

    private static final int CORES = 4;

    private final PollingThreads polling = new PollingThreads(CORES);
    private final List<Long> sleeps = new ArrayList<>();

    private Backoff strategy() {
        return new Backoff(null, 10, 10, 10_000, 1_000_000, sleeps::add, polling);
    }

    private List<Backoff> strategies(int count) {
        return Stream.generate(this::strategy).limit(count).toList();
    }

    @Test
    void atMostAsManyThreadsAsCoresPoll() {
        List<Backoff> all = strategies(50);
        all.forEach(strategy -> strategy.idle(0));
        assertEquals(CORES, polling.count());
        assertEquals(50 - CORES, sleeps.size(), "threads that may not poll sleep at once");
    }

    @Test
    void aThreadThatSleepsOrPausesLeavesItsPlace() {
        List<Backoff> all = strategies(CORES);
        for (int pass = 0; pass < 20; pass++) {
            all.forEach(strategy -> strategy.idle(0));
        }
        assertEquals(CORES, polling.count());
        all.getFirst().idle(0);
        assertEquals(1, sleeps.size());
        all.getLast().pause();
        assertEquals(CORES - 2, polling.count());
        strategies(3).forEach(strategy -> strategy.idle(0));
        assertEquals(CORES, polling.count());
    }

    /** The processes of a group divide the cores for polling threads equally among themselves. */
    @Test
    void processesOfAGroupShareTheCores() {
        try (PollingThreads.Sharing _ = polling.share(2); PollingThreads.Sharing _ = polling.share(1)) {
            assertEquals(CORES / 2, polling.limit());
            try (PollingThreads.Sharing _ = polling.share(100)) {
                assertEquals(1, polling.limit());
            }
        }
        assertEquals(CORES, polling.limit());
        assertTrue(polling.tryAdd());
    }
}
