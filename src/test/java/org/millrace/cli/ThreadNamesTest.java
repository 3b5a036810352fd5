package org.millrace.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.OptionalInt;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.millrace.cli.gin.CudaGinRank;

@EnabledOnOs(OS.LINUX)
class ThreadNamesTest {

    /** A name longer than the 15 characters that Linux keeps. */
    private static final String NAME = "NamedFifteen-and-more";

    @Test
    void threadsAreCountedByTheBeginningOfTheirNames() throws InterruptedException {
        assertEquals(OptionalInt.of(0), CudaGinRank.ThreadNames.count(NAME));
        CountDownLatch started = new CountDownLatch(2);
        CountDownLatch seen = new CountDownLatch(1);
        Runnable task = () -> {
            started.countDown();
            try {
                seen.await();
            } catch (InterruptedException interrupted) {
                Thread.currentThread().interrupt();
            }
        };
        Thread one = Thread.ofPlatform().name(NAME + "-1").start(task);
        Thread two = Thread.ofPlatform().name(NAME + "-2").start(task);
        started.await();
        assertEquals(OptionalInt.of(2), CudaGinRank.ThreadNames.count(NAME));
        assertEquals(OptionalInt.of(2), CudaGinRank.ThreadNames.count("NamedF"));
        seen.countDown();
        one.join();
        two.join();
    }
}
