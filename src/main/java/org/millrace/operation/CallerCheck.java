package org.millrace.operation;

import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Detects threads that use one communicator at the same time. The check takes no lock, so it may miss two calls that
 * begin within a few nanoseconds of each other. A call during another thread's wait is always detected.
 */
public final class CallerCheck {

    /** A communicator whose calls are checked. */
    public interface Checked {

        /** {@return the check of this communicator} */
        CallerCheck callers();
    }

    private final int rank;
    /** Thread that is in a call; null if none. Opaque access suffices, because the field publishes no other data. */
    private final AtomicReference<@Nullable Thread> user = new AtomicReference<>();

    /** @param rank rank of the communicator, for messages */
    public CallerCheck(int rank) {
        this.rank = rank;
    }

    /** {@return the check of a communicator; a new one if the communicator has none} */
    public static CallerCheck of(Object communicator) {
        return communicator instanceof Checked checked ? checked.callers() : new CallerCheck(-1);
    }

    /**
     * Begins a call of the current thread.
     *
     * @return true if this call is the outermost call of the thread; the caller passes the result to {@link #exit}
     * @throws IllegalStateException if another thread is in a call; the message names both threads
     */
    public boolean enter() {
        Thread self = Thread.currentThread();
        Thread other = user.getOpaque();
        if (other == self) {
            return false;
        }
        if (other != null) {
            throw UserTrace.from(new IllegalStateException("rank " + rank + ": thread " + name(self)
                    + " uses the communicator while thread " + name(other) + " is in one of its operations. One thread"
                    + " at a time may use a communicator: take turns, or give each thread its own by Communicator.split"));
        }
        user.setOpaque(self);
        return true;
    }

    /** Returns whether the current thread is in a call. */
    public boolean isInCall() {
        return user.getOpaque() == Thread.currentThread();
    }

    /** Ends a call, on the thread that began it. */
    public void exit(boolean isOutermost) {
        if (isOutermost) {
            user.setOpaque(null);
        }
    }

    /** Runs a call of the current thread. Throws the same exceptions as {@link #enter}. */
    public void run(Runnable call) {
        call(() -> {
            call.run();
            return null;
        });
    }

    /** Makes a call of the current thread, and returns its result. Throws the same exceptions as {@link #enter}. */
    public <T extends @Nullable Object> T call(Supplier<T> call) {
        boolean isOutermost = enter();
        try {
            return call.get();
        } catch (RuntimeException thrown) {
            throw UserTrace.from(thrown);
        } finally {
            exit(isOutermost);
        }
    }

    private static String name(Thread thread) {
        return thread.getName().isEmpty() ? thread.toString() : '"' + thread.getName() + '"';
    }
}
