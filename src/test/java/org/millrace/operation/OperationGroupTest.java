package org.millrace.operation;

import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.millrace.ThreadSleeps;

class OperationGroupTest {

    private static final int ATTEMPTS = 100;

    /** Part of a group of operations. All attempts to launch this part fail except the last. */
    private static final class Late implements OperationGroup.Part {
        private int attempts;

        @Override
        public void prepare(boolean alone) {
            // This part has nothing to prepare.
        }

        @Override
        public boolean launch() {
            return ++attempts == ATTEMPTS;
        }
    }

    @Test
    void anInterruptedThreadSleepsBetweenTwoAttemptsToLaunch() {
        Thread.currentThread().interrupt();
        long before = ThreadSleeps.now();
        OperationGroup.run(() -> OperationGroup.join("owner", Late::new));
        long sleeps = ThreadSleeps.now() - before;
        assertTrue(Thread.interrupted(), "the interrupt status is kept");
        assertTrue(sleeps > ATTEMPTS / 2, () -> sleeps + " sleeps between " + ATTEMPTS + " attempts");
    }
}
