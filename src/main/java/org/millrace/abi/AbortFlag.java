package org.millrace.abi;

import java.lang.foreign.MemorySegment;
import org.millrace.foreign.PolledStruct;
import org.millrace.foreign.Words;

/**
 * The word that tells kernels to exit. The word is 0 at first. The host sets the word to 1 permanently when the
 * communicator is aborted. The host's release pairs with the kernel's acquire. A kernel that reads 1 therefore also
 * sees all earlier stores of the host, such as the reason for the abort. Facts: NCCL 2.28 {@code device.h},
 * {@code device/primitives.h}.
 */
public final class AbortFlag extends PolledStruct {
    /** Size of the word in bytes. */
    public static final long BYTES = Integer.BYTES;

    private AbortFlag(MemorySegment segment) {
        super("abortFlag", segment, BYTES, BYTES);
    }

    /** {@return a view of a flag of exactly {@link #BYTES} bytes, aligned to {@link #BYTES}} */
    public static AbortFlag of(MemorySegment segment) {
        return new AbortFlag(segment);
    }

    /** Sets the flag, so that kernels exit. */
    public void raise() {
        Words.INT.setRelease(Words.MEMORY, base, 1);
    }

    /** {@return true if the flag is set; kernels must then exit} */
    public boolean raisedAcquire() {
        return (int) Words.INT.getAcquire(Words.MEMORY, base) != 0;
    }
}
