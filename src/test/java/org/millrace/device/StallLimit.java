package org.millrace.device;

import java.util.function.Supplier;
import org.millrace.MillraceException;

/** Gives up a kernel that moves nothing for so long. */
public record StallLimit(long patienceNanos) implements EmulatedDevice.KernelWatch {

    @Override
    public MillraceException judge(Object kernel, long stillSince, Supplier<String> waitingFor) {
        return new MillraceException(
                kernel + ": nothing moved for " + patienceNanos / 1_000_000 + " ms: " + waitingFor.get());
    }
}
