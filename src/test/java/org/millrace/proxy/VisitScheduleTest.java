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
import org.millrace.agent.VisitSchedule;

/** Idle connections are visited less often than busy ones, but never forgotten. */
class VisitScheduleTest {

    private final ProxyAgent agent = new ProxyAgent("test");
    private final List<CountingConnection> connections = new ArrayList<>();

    /** Has work as often as it is told, and fails when it is told. */
    private static final class CountingConnection implements ProxyConnection {
        private boolean hasWork;
        private boolean fails;
        private int visits;
        private int stops;

        @Override
        public int progress() {
            visits++;
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
        passes(VisitSchedule.BUSY_VISITS + 2); // in each of the first two an agent takes some of its connections over
    }

    private void forgetVisits() {
        connections.forEach(connection -> connection.visits = 0);
    }

    @BeforeEach
    void serveOneBusyConnection() {
        serve(1);
        connections.getFirst().hasWork = true;
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 3, 31, 32, 33, 255, 1023})
    void anIdleConnectionIsVisitedOnceInACycle(int idle) {
        serve(idle);
        passesUntilIdle();
        forgetVisits();
        int cycles = 5;
        passes(cycles * VisitSchedule.IDLE_CYCLE);
        assertEquals(cycles * VisitSchedule.IDLE_CYCLE, connections.getFirst().visits, "the busy one");
        for (CountingConnection connection : connections.subList(1, idle + 1)) {
            assertEquals(cycles, connection.visits);
        }
    }

    @Test
    void visitsToIdleConnectionsAreSpreadOverTheCycle() {
        serve(VisitSchedule.IDLE_CYCLE * 4);
        passesUntilIdle();
        for (int pass = 0; pass < 2 * VisitSchedule.IDLE_CYCLE; pass++) {
            forgetVisits();
            passes(1);
            assertEquals(1 + 4, connections.stream().mapToInt(connection -> connection.visits).sum());
        }
    }

    @Test
    void aShortPauseMakesNobodyIdle() {
        serve(1);
        passes(VisitSchedule.BUSY_VISITS - 1);
        connections.getLast().hasWork = true;
        passes(1);
        connections.getLast().hasWork = false;
        forgetVisits();
        passes(VisitSchedule.BUSY_VISITS);
        assertEquals(VisitSchedule.BUSY_VISITS, connections.getLast().visits);
        passes(VisitSchedule.IDLE_CYCLE);
        assertEquals(VisitSchedule.BUSY_VISITS + 1, connections.getLast().visits);
    }

    @Test
    void workMakesAnIdleConnectionBusy() {
        serve(40);
        passesUntilIdle();
        CountingConnection woken = connections.get(17);
        woken.hasWork = true;
        passes(VisitSchedule.IDLE_CYCLE);
        forgetVisits();
        passes(100);
        assertEquals(100, woken.visits);
        assertEquals(100, connections.getFirst().visits);
    }

    /** Passes may be followed by sleeps then, and nobody is disturbed. */
    @Test
    void whileNothingMovesEveryPassVisitsAll() {
        serve(40);
        passesUntilIdle();
        connections.getFirst().hasWork = false;
        passes(VisitSchedule.QUIET_PASSES);
        forgetVisits();
        passes(10);
        connections.forEach(connection -> assertEquals(10, connection.visits));
        connections.get(5).hasWork = true;
        passes(1);
        forgetVisits();
        passes(VisitSchedule.IDLE_CYCLE);
        connections.forEach(connection -> assertEquals(connection == connections.get(5) ? VisitSchedule.IDLE_CYCLE : 1,
                connection.visits));
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
            passes(random.nextInt(2 * VisitSchedule.BUSY_VISITS));
            CountingConnection gone = served.remove(random.nextInt(served.size()));
            if (random.nextBoolean()) {
                gone.fails = true;
            } else {
                agent.remove(List.of(gone), Duration.ZERO);
            }
            passes(VisitSchedule.IDLE_CYCLE + 1);
            assertEquals(1, gone.stops, "seed " + seed);
            forgetVisits();
            passes(2 * VisitSchedule.IDLE_CYCLE);
            assertEquals(0, gone.visits, "seed " + seed);
            for (CountingConnection connection : served) {
                assertEquals(0, connection.stops, "seed " + seed);
                assertTrue(connection.visits > 0,
                        "a connection was forgotten, seed " + seed + ", " + served.size() + " left");
            }
        }
    }
}
