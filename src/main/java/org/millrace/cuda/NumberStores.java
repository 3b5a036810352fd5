package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.cuda.CudaDriver.Function;

/**
 * Copies of 4 or 8 bytes from the host's memory to a device that a kernel sees whole or not at all: the stream stores
 * their value. Rows of half the bytes ({@link RowCopies}) are made one after the other. One object a thread; no call
 * allocates.
 */
final class NumberStores {

    private static final int HOST_POINTER = 4; // CU_POINTER_ATTRIBUTE_HOST_POINTER
    @SuppressWarnings("restricted") // an address that CUDA knows as the host's
    private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

    private final CudaDriver driver;
    private final MemorySegment host = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG);

    NumberStores(CudaDriver driver) {
        this.driver = driver;
    }

    /**
     * Enqueues a store of the value that is in the host's memory now.
     *
     * @param from   as the device sees it
     * @param stream a {@code CUstream}
     * @return false if it is no such number, or the driver refuses: nothing was enqueued
     */
    boolean store(long to, long from, long bytes, long stream) {
        boolean isLong = bytes == Long.BYTES && (to | from) % Long.BYTES == 0;
        if (!isLong && (bytes != Integer.BYTES || (to | from) % Integer.BYTES != 0)) {
            return false;
        }
        int found = (int) driver.function(Function.POINTER_ATTRIBUTE).call(host.address(), HOST_POINTER, from);
        long address = found == 0 ? host.get(ValueLayout.JAVA_LONG, 0) : 0;
        if (address == 0) {
            return false;
        }
        int stored = isLong
                ? (int) driver.function(Function.STORE_LONG)
                        .call(stream, to, ALL.get(ValueLayout.JAVA_LONG, address), 0)
                : (int) driver.function(Function.STORE_INT).call(stream, to, ALL.get(ValueLayout.JAVA_INT, address), 0);
        return stored == 0;
    }
}
