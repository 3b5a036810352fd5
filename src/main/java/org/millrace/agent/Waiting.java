package org.millrace.agent;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.millrace.MillraceException;
import org.millrace.operation.Required;

/** Waits with a deadline, for a condition or for a thread. */
public final class Waiting {

    private Waiting() {}

    /**
     * Refuses a negative deadline.
     *
     * @param what call with the deadline, for the message
     * @throws IllegalArgumentException if the deadline is negative
     * @throws NullPointerException     if the deadline is null
     */
    public static void requireNotNegative(String what, Duration deadline) {
        if (Required.argument(what, "deadline", deadline).isNegative()) {
            throw new IllegalArgumentException(what + ": the deadline " + deadline + " is negative; give 0 or more");
        }
    }

    /**
     * Waits until a thread has ended, even if the waiting thread is interrupted. The waiting thread is about to free
     * memory that the other thread uses. The interrupt status is restored afterwards.
     *
     * @return false if the thread has not ended within the time; the caller must then not free the memory
     */
    public static boolean untilEnded(Thread thread, Duration time) {
        long end = System.nanoTime() + time.toNanos();
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return thread.join(Duration.ofNanos(Math.max(1, end - System.nanoTime())));
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /**
     * Parks for a time in nanoseconds, even if the thread is interrupted. With plain parks, a loop on an interrupted
     * thread would spin. The interrupt status is restored afterwards.
     */
    public static void pause(long nanos) {
        boolean interrupted = Thread.interrupted();
        if (interrupted) {
            LockSupport.parkNanos(1); // uses up the interrupt's permit, which would end the next park immediately
        }
        LockSupport.parkNanos(nanos);
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Evaluates a condition repeatedly. Returns true as soon as the condition is true, and false when the time is over.
     * With a time of zero, the condition is evaluated once. The condition may throw an exception, which ends the wait.
     */
    public static boolean until(BooleanSupplier done, Duration deadline) {
        long nanos = deadline.compareTo(Duration.ofDays(365)) > 0 ? Long.MAX_VALUE : deadline.toNanos();
        long start = System.nanoTime();
        IdleStrategy idle = IdleProfile.COMPLETION.newStrategy();
        try {
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
        } finally {
            idle.pause();
        }
    }
}
