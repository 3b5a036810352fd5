package org.millrace.device;

import java.util.function.Supplier;
import org.millrace.MillraceException;

/** Abandons a kernel that makes no progress for the given time. */
public record StallLimit(long stallNanos) implements EmulatedDevice.KernelWatch {

    @Override
    public MillraceException judge(Object kernel, long stillSince, Supplier<String> waitingFor) {
        return new MillraceException(
                kernel + ": nothing moved for " + stallNanos / 1_000_000 + " ms: " + waitingFor.get());
    }
}
