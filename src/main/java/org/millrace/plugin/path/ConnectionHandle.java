package org.millrace.plugin.path;

import org.millrace.plugin.host.HandleTable;

/**
 * Encodes a memory region or a request of a connection in the low bits of the connection's handle. Bits 11 and 10 show
 * whether a handle identifies memory, a request or the connection itself.
 *
 * <pre>
 *  11 10  9             0
 * +-----+---------------+
 * | 0 0 |       0       |  the connection
 * | 0 1 | region        |  memory that was registered with the connection
 * | 1   number          |  request: the lowest 11 bits of its sequence number
 * +-----+---------------+
 * </pre>
 */
public final class ConnectionHandle {

    /** Number of different request numbers. A request number is a sequence number modulo this constant. */
    public static final int REQUEST_NUMBERS = 1 << 11;
    /** Maximum number of memory regions of one connection. */
    public static final int REGIONS = 1 << 10;

    private static final int REQUEST = 1 << 11;
    private static final int REGION = 1 << 10;

    private ConnectionHandle() {}

    public static long ofRequest(long connection, int number) {
        return connection | REQUEST | number;
    }

    public static long ofRegion(long connection, int region) {
        return connection | REGION | region;
    }

    public static int request(long handle) {
        if ((handle & REQUEST) == 0) {
            throw new IllegalArgumentException("0x" + Long.toHexString(handle) + " does not name a request");
        }
        return (int) handle & REQUEST_NUMBERS - 1;
    }

    /** Returns the number of a message's memory region; 0 for a message of 0 bytes, which needs no region. */
    public static int regionOf(long connection, long bytes, long handle) {
        return bytes == 0 ? 0 : region(connection, handle);
    }

    /** Returns the number of the memory region in a handle. Throws if the handle belongs to another connection. */
    public static int region(long connection, long handle) {
        if ((handle & HandleTable.PART_MASK) >>> 10 != 1 || (handle ^ connection) >>> HandleTable.PART_BITS != 0) {
            throw new IllegalArgumentException("0x" + Long.toHexString(handle)
                    + " does not name memory that was registered with connection 0x" + Long.toHexString(connection));
        }
        return (int) handle & REGIONS - 1;
    }
}
