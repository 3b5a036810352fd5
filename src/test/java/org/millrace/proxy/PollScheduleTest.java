package org.millrace.proxy;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.millrace.agent.PollSchedule;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyException;

/** Idle connections are polled less often than busy connections, but never forgotten. */
class PollScheduleTest {

    private final ProxyAgent agent = new ProxyAgent("test");
    private final List<CountingConnection> connections = new ArrayList<>();

    /** Connection that counts its polls, reports work, and fails on request. */
    private static final class CountingConnection implements ProxyConnection {
        private boolean hasWork;
        private boolean fails;
        private int polls;
        private int stops;

        @Override
        public int progress() {
            polls++;
            if (fails) {
                throw new ProxyException("planted");
            }
            return hasWork ? 1 : 0;
        }

        @Override
        public boolean drained() {
            return true;
        }

        @Override
        public boolean owesData() {
            return false;
        }

        @Override
        public void stopped(Throwable failure) {
            stops++;
        }

        @Override
        public ConnectionName name() {
            return ConnectionName.of("counting");
        }

        @Override
        public String lastSeen() {
            return "nothing";
        }
    }

    private void serve(int count) {
        for (int i = 0; i < count; i++) {
            connections.add(new CountingConnection());
        }
        agent.add(connections.subList(connections.size() - count, connections.size()));
    }

    private void passes(int count) {
        for (int i = 0; i < count; i++) {
            agent.doWork();
        }
    }

    private void passesUntilIdle() {
        passes(PollSchedule.BUSY_POLLS + 2); // The agent adds some of its connections in each of the first two passes.
    }

    private void forgetPolls() {
        connections.forEach(connection -> connection.polls = 0);
    }

    @BeforeEach
    void serveOneBusyConnection() {
        serve(1);
        connections.getFirst().hasWork = true;
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3, 31, 32, 33, 255, 1023})
    void anIdleConnectionIsPolledOnceInACycle(int idle) {
        serve(idle);
        passesUntilIdle();
        forgetPolls();
        int cycles = 5;
        passes(cycles * PollSchedule.IDLE_CYCLE);
        assertEquals(cycles * PollSchedule.IDLE_CYCLE, connections.getFirst().polls, "the busy one");
        for (CountingConnection connection : connections.subList(1, idle + 1)) {
            assertEquals(cycles, connection.polls);
        }
    }

    @Test
    void pollsOfIdleConnectionsAreSpreadOverTheCycle() {
        serve(PollSchedule.IDLE_CYCLE * 4);
        passesUntilIdle();
        for (int pass = 0; pass < 2 * PollSchedule.IDLE_CYCLE; pass++) {
            forgetPolls();
            passes(1);
            assertEquals(1 + 4, connections.stream().mapToInt(connection -> connection.polls).sum());
        }
    }

    @Test
    void aShortPauseMakesNobodyIdle() {
        serve(1);
        passes(PollSchedule.BUSY_POLLS - 1);
        connections.getLast().hasWork = true;
        passes(1);
        connections.getLast().hasWork = false;
        forgetPolls();
        passes(PollSchedule.BUSY_POLLS);
        assertEquals(PollSchedule.BUSY_POLLS, connections.getLast().polls);
        passes(PollSchedule.IDLE_CYCLE);
        assertEquals(PollSchedule.BUSY_POLLS + 1, connections.getLast().polls);
    }

    @Test
    void workMakesAnIdleConnectionBusy() {
        serve(40);
        passesUntilIdle();
        CountingConnection woken = connections.get(17);
        woken.hasWork = true;
        passes(PollSchedule.IDLE_CYCLE);
        forgetPolls();
        passes(100);
        assertEquals(100, woken.polls);
        assertEquals(100, connections.getFirst().polls);
    }

    /** A sleep may follow each pass of an idle agent. Each pass therefore polls all connections. */
    @Test
    void whileNothingMovesEveryPassPollsAll() {
        serve(40);
        passesUntilIdle();
        connections.getFirst().hasWork = false;
        passes(PollSchedule.QUIET_PASSES);
        forgetPolls();
        passes(10);
        connections.forEach(connection -> assertEquals(10, connection.polls));
        connections.get(5).hasWork = true;
        passes(1);
        forgetPolls();
        int waking = (PollSchedule.WAKING_POLLS + 39) / 40; // all connections but one are idle
        passes(waking);
        connections.forEach(connection -> assertEquals(waking, connection.polls, "an operation has others too"));
        forgetPolls();
        passes(PollSchedule.IDLE_CYCLE);
        connections.forEach(connection -> assertEquals(connection == connections.get(5) ? PollSchedule.IDLE_CYCLE : 1,
                connection.polls));
    }

    /**
     * A pass after a sleep polls all connections. If it polled only some of them, a message could wait for 32 passes,
     * each after a separate sleep. In this test, the message arrives a thousand passes after the last work.
     */
    @Test
    void afterASleepAllArePolled() {
        serve(40);
        passesUntilIdle();
        connections.getFirst().hasWork = false;
        passes(1);
        forgetPolls();
        for (int sleep = 0; sleep < 3; sleep++) {
            agent.serveAll();
            passes(1);
        }
        connections.forEach(connection -> assertEquals(3, connection.polls));
    }

    @Test
    void failuresAndRemovalsInAnyOrderLoseNobody() {
        long seed = 20;
        Random random = new Random(seed);
        serve(100);
        List<CountingConnection> served = new ArrayList<>(connections);
        while (!served.isEmpty()) {
            for (CountingConnection connection : served) {
                connection.hasWork = random.nextInt(4) == 0;
            }
            passes(random.nextInt(2 * PollSchedule.BUSY_POLLS));
            CountingConnection gone = served.remove(random.nextInt(served.size()));
            if (random.nextBoolean()) {
                gone.fails = true;
            } else {
                agent.remove(List.of(gone), Duration.ZERO);
            }
            passes(PollSchedule.IDLE_CYCLE + 1);
            assertEquals(1, gone.stops, "seed " + seed);
            forgetPolls();
            passes(2 * PollSchedule.IDLE_CYCLE);
            assertEquals(0, gone.polls, "seed " + seed);
            for (CountingConnection connection : served) {
                assertEquals(0, connection.stops, "seed " + seed);
                assertTrue(connection.polls > 0,
                        "a connection was forgotten, seed " + seed + ", " + served.size() + " left");
            }
        }
    }
}
