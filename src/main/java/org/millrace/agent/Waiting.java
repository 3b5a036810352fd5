package org.millrace.agent;

import java.time.Duration;
import java.util.function.BooleanSupplier;
import org.millrace.MillraceException;

/** Waiting with a deadline for something that can only be asked whether it is done. */
public final class Waiting {

    private Waiting() {}

    /** Asks until the answer is yes, and returns true, or the time is up; zero asks once. The question may throw. */
    public static boolean until(BooleanSupplier done, Duration deadline) {
        long nanos = deadline.compareTo(Duration.ofDays(365)) > 0 ? Long.MAX_VALUE : deadline.toNanos();
        long start = System.nanoTime();
        IdleStrategy idle = IdleProfile.COMPLETION.newStrategy();
        while (!done.getAsBoolean()) {
            if (System.nanoTime() - start >= nanos) {
                return false;
            }
            if (Thread.interrupted()) {
                Thread.currentThread().interrupt();
                throw new MillraceException("the thread was interrupted while it waited");
            }
            idle.idle(0);
        }
        return true;
    }
}
