package org.millrace.plugin;

/**
 * Encodes in a handle the memory or the request of a connection. The kind bits distinguish memory, requests and the
 * connection itself.
 *
 * <pre>
 *  11 10  9             0
 * +-----+---------------+
 * | 0 0 |       0       |  the connection
 * | 0 1 | region        |  memory that was registered with it
 * | 1   number          |  request: the lowest 11 bits of its sequence
 * +-----+---------------+
 * </pre>
 */
final class ConnectionHandle {

    /** Modulus of request numbers. */
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
            throw new IllegalArgumentException("0x" + Long.toHexString(handle) + " is no request");
        }
        return (int) handle & REQUEST_NUMBERS - 1;
    }

    /** Returns the region of a message. A message of 0 bytes needs no region and gets 0. */
    public static int regionOf(long connection, long bytes, long handle) {
        return bytes == 0 ? 0 : region(connection, handle);
    }

    /** Returns the region of a handle. The region must belong to this connection. */
    public static int region(long connection, long handle) {
        if ((handle & HandleTable.PART_MASK) >>> 10 != 1 || (handle ^ connection) >>> HandleTable.PART_BITS != 0) {
            throw new IllegalArgumentException("0x" + Long.toHexString(handle)
                    + " is no memory that was registered with connection 0x" + Long.toHexString(connection));
        }
        return (int) handle & REGIONS - 1;
    }
}
