package org.millrace.proxy;

import org.millrace.net.MemoryRegion;

/** Finds what a device points to in {@code connFifo} (mode PTR) in the memory that was registered for the operation. */
final class UserMemory {

    private UserMemory() {}

    /**
     * The offset of the data in the region.
     *
     * @throws ProxyException if not all of it lies there: nothing outside is read or written, whatever a device says
     */
    static long offset(ConnectionName name, long step, MemoryRegion region, long address, long bytes) {
        if (bytes == 0) {
            return 0; // nothing lies nowhere
        }
        long offset = address - region.segment().address();
        if (offset < 0 || offset > region.segment().byteSize() - bytes) {
            throw new ProxyException(name + ", step " + step + ": the device points to " + bytes + " bytes at 0x"
                    + Long.toHexString(address) + ", outside the " + region.segment().byteSize()
                    + " bytes that were registered for the operation at 0x"
                    + Long.toHexString(region.segment().address()));
        }
        return offset;
    }
}
