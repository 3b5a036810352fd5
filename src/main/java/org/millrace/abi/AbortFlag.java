package org.millrace.abi;

import java.lang.foreign.MemorySegment;

/**
 * The word that makes kernels exit. A host writes it. It is 0 first, and then 1 forever. The host's release pairs with
 * the kernel's acquire. A kernel that sees the flag therefore also sees everything that the host wrote before, such as
 * the reason. Facts: NCCL 2.28 {@code device.h}, {@code device/primitives.h}.
 */
public final class AbortFlag extends PolledStruct {
    /** Bytes of the word. */
    public static final long BYTES = Integer.BYTES;

    private AbortFlag(MemorySegment segment) {
        super("abortFlag", segment, BYTES, BYTES);
    }

    /** {@return a view of a flag of exactly {@link #BYTES} bytes, aligned to {@link #BYTES}} */
    public static AbortFlag of(MemorySegment segment) {
        return new AbortFlag(segment);
    }

    /** Makes kernels exit. */
    public void raise() {
        Words.INT.setRelease(Words.MEMORY, base, 1);
    }

    /** {@return whether kernels must exit} */
    public boolean raisedAcquire() {
        return (int) Words.INT.getAcquire(Words.MEMORY, base) != 0;
    }
}
