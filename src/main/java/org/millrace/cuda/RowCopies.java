package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.cuda.CudaDriver.Function;

/**
 * Copies of several rows of the same length, by one call of the driver's. One object a thread; no call allocates.
 *
 * <p>
 * They are made by a copy engine, whatever their size. A plain copy of less than 32 KiB from the host's memory to a GPU
 * is not: its bytes become a command of the compute engine, which waits for the end of another context's time slice,
 * 2.4 ms, while a kernel runs there (two H100s, driver 580).
 */
final class RowCopies {

    /** {@code CUDA_MEMCPY2D_v2}: the members that are not 0, for both ends by their addresses. */
    private static final long BYTES = 128;
    private static final long SOURCE_TYPE = 16;
    private static final long SOURCE = 32;
    private static final long SOURCE_PITCH = 48;
    private static final long TARGET_TYPE = 72;
    private static final long TARGET = 88;
    private static final long TARGET_PITCH = 104;
    private static final long WIDTH = 112;
    private static final long HEIGHT = 120;
    private static final int UNIFIED = 4; // CU_MEMORYTYPE_UNIFIED
    private static final int INVALID_VALUE = 1; // CUDA_ERROR_INVALID_VALUE
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

    private final CudaDriver driver;
    private final MemorySegment memory = Arena.ofAuto().allocate(BYTES, Long.BYTES);

    /** Binds the call. */
    RowCopies(CudaDriver driver) {
        this.driver = driver;
        memory.set(ValueLayout.JAVA_INT, SOURCE_TYPE, UNIFIED);
        memory.set(ValueLayout.JAVA_INT, TARGET_TYPE, UNIFIED);
    }

    /**
     * Enqueues a copy between any two places that the device reaches. The driver refuses rows of several allocations.
     *
     * @param targetPitch from a row's target to the next one's; at least {@code width}, less than 2<sup>31</sup>
     * @param sourcePitch from a row's source to the next one's; as {@code targetPitch}
     * @param width       bytes of a row
     * @param stream      a {@code CUstream}
     * @return false if the driver refuses these places: nothing was enqueued
     */
    boolean copy(long to, long targetPitch, long from, long sourcePitch, long width, int rows, long stream) {
        memory.set(LONG, SOURCE, from);
        memory.set(LONG, SOURCE_PITCH, sourcePitch);
        memory.set(LONG, TARGET, to);
        memory.set(LONG, TARGET_PITCH, targetPitch);
        memory.set(LONG, WIDTH, width);
        memory.set(LONG, HEIGHT, (long) rows);
        int code = (int) driver.function(Function.COPY_ROWS).call(memory.address(), stream);
        if (code == INVALID_VALUE) {
            return false;
        }
        driver.check(Function.COPY_ROWS, code);
        return true;
    }
}
