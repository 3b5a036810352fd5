package org.millrace.device;

import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;

/**
 * Judges kernels that stand still: one may wait for a rank that has not come to the operation yet, or for good. Called
 * by the device's thread, and does not wait.
 */
public interface KernelWatch {

    /** How long a kernel stands still before it is judged, again and again. */
    long patienceNanos();

    /**
     * Whether a kernel that stands still waits for something that may still come.
     *
     * @param kernel     what it does, as {@link WorkLauncher#start} was told
     * @param stillSince when something moved last, as {@link System#nanoTime()} counts
     * @param waitingFor what it waits for, for messages
     * @return why it is given up; null while it is not
     */
    @Nullable
    MillraceException judge(Object kernel, long stillSince, Supplier<String> waitingFor);

    /** {@return whether anybody wants to know when a kernel ended} */
    default boolean timesKernels() {
        return false;
    }

    /** What stood still moves again. */
    default void moved() {}
}
