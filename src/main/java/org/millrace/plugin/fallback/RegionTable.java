package org.millrace.plugin.fallback;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.plugin.net.ConnectionHandle;
import org.millrace.plugin.shim.NativeMemory;

/** The memory that was registered with one connection. */
final class RegionTable {

    private static final int USUAL = 4;

    private final Network network;
    private @Nullable MemoryRegion[] regions = new MemoryRegion[USUAL];

    RegionTable(Network network) {
        this.network = network;
    }

    int add(long address, long bytes) {
        int number = 0;
        while (number < regions.length && regions[number] != null) {
            number++;
        }
        if (number == ConnectionHandle.REGIONS) {
            throw new IllegalStateException(
                    "a connection can have " + number + " registered memories, and not one more");
        }
        if (number == regions.length) {
            regions = Arrays.copyOf(regions, Math.min(2 * number, ConnectionHandle.REGIONS));
        }
        regions[number] = network.register(NativeMemory.at(address, bytes));
        return number;
    }

    MemoryRegion get(int number) {
        MemoryRegion region = number < regions.length ? regions[number] : null;
        if (region == null) {
            throw new IllegalArgumentException(
                    "memory " + number + " of this connection was deregistered, or never registered");
        }
        return region;
    }

    /** Where a message lies in its region; throws {@link IllegalArgumentException} if it does not lie within. */
    static long offset(MemoryRegion region, long address, long bytes) {
        MemorySegment memory = region.segment();
        long offset = address - memory.address();
        if (offset < 0 || bytes < 0 || bytes > memory.byteSize() - offset) {
            throw new IllegalArgumentException("a message of " + bytes + " bytes at 0x" + Long.toHexString(address)
                    + " does not lie in its registered memory, " + memory.byteSize() + " bytes at 0x"
                    + Long.toHexString(memory.address()));
        }
        return offset;
    }

    void remove(int number) {
        get(number).close();
        regions[number] = null;
    }

    /** Gives back what NCCL did not. */
    void close() {
        for (int number = 0; number < regions.length; number++) {
            if (regions[number] != null) {
                remove(number);
            }
        }
    }
}
