package org.millrace.net;

import java.lang.foreign.MemorySegment;

/** Host memory that a test uses as device memory. Other processes cannot map it. The memory's arena frees it. */
public class HostDevice implements DeviceRegion {

    private final MemorySegment memory;
    private final Copies copies;

    /** @param copies queue that copies to and from the device; null if the test copies nothing */
    public HostDevice(MemorySegment memory, Copies copies) {
        this.memory = memory;
        this.copies = copies;
    }

    @Override
    public MemorySegment segment() {
        return memory;
    }

    @Override
    public long address() {
        return memory.address();
    }

    @Override
    public long bytes() {
        return memory.byteSize();
    }

    @Override
    public Ticket ticket() {
        return null;
    }

    @Override
    public long map(long process, Ticket ticket) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Copies copies() {
        return copies;
    }

    @Override
    public void close() {
        // The memory's arena frees the memory.
    }
}
