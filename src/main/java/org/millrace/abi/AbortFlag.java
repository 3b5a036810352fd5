package org.millrace.abi;

import java.lang.foreign.MemorySegment;

/**
 * The word through which a host makes kernels leave: 0, then 1 for good. The host's release pairs with the kernel's
 * acquire, so that what the host wrote before, such as why, is there for a kernel that sees the flag. Facts: NCCL 2.28
 * {@code device.h}, {@code device/primitives.h}.
 */
public final class AbortFlag extends PolledStruct {
    /** Bytes of the word. */
    public static final long BYTES = Integer.BYTES;

    private AbortFlag(MemorySegment segment) {
        super("abortFlag", segment, BYTES, BYTES);
    }

    /** {@return a view of a flag of exactly {@link #BYTES} bytes, aligned to as many} */
    public static AbortFlag of(MemorySegment segment) {
        return new AbortFlag(segment);
    }

    /** Makes kernels leave. */
    public void raise() {
        Words.INT.setRelease(Words.MEMORY, base, 1);
    }

    /** {@return whether kernels are to leave} */
    public boolean raisedAcquire() {
        return (int) Words.INT.getAcquire(Words.MEMORY, base) != 0;
    }
}
