package org.millrace.gin;

import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.millrace.agent.Agent;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleProfile;

/** Another thread reports that an agent's pass does not return. */
class PassWatchTest {

    private final BlockingQueue<String> reports = new LinkedBlockingQueue<>();

    @Test
    void aPassThatDoesNotEndIsReportedWithWhereItStands() throws Exception {
        CountDownLatch driver = new CountDownLatch(1);
        GinAgent agent = new GinAgent("gin-test");
        Agent stuck = new Agent() {
            @Override
            public int doWork() {
                int work = agent.doWork();
                aCallThatWaits(driver);
                return work;
            }

            @Override
            public String name() {
                return agent.name();
            }

            @Override
            public void onFailure(Throwable failure) {
                agent.onFailure(failure);
            }
        };
        AgentRunner runner = AgentRunner.start(stuck, IdleProfile.ROOM.newStrategy());
        try (PassWatch _ = new PassWatch(agent, runner.thread(), Duration.ofMillis(20), reports::add)) {
            String said = reports.poll(30, TimeUnit.SECONDS);
            assertTrue(said != null && said.contains("millrace-gin-test") && said.contains("aCallThatWaits"), said);
            assertNotNull(reports.poll(30, TimeUnit.SECONDS), "it is said again");
        } finally {
            driver.countDown();
            runner.close();
        }
    }

    private static void aCallThatWaits(CountDownLatch driver) {
        try {
            driver.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void passesThatEndAreNoneOfItsBusiness() throws Exception {
        GinAgent agent = new GinAgent("gin-test");
        AgentRunner runner = AgentRunner.start(agent, IdleProfile.ROOM.newStrategy());
        try (PassWatch _ = new PassWatch(agent, runner.thread(), Duration.ofSeconds(60), reports::add)) {
            long first = agent.passes();
            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
            while (agent.passes() < first + 10 && System.nanoTime() - end < 0) {
                Thread.onSpinWait();
            }
            assertTrue(agent.passes() >= first + 10, "passes are counted");
            assertTrue(reports.isEmpty(), reports::toString);
        } finally {
            runner.close();
        }
    }
}
