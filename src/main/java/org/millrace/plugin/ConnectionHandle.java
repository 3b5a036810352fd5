package org.millrace.plugin;

/**
 * Which memory or which request of a connection a handle means. The kind keeps them apart, and from the connection
 * itself.
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

    /** Requests are numbered modulo this. */
    public static final int REQUEST_NUMBERS = 1 << 11;
    /** Memory regions that one connection can have. */
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

    /** The region of a message; one of no bytes needs none. */
    public static int regionOf(long connection, long bytes, long handle) {
        return bytes == 0 ? 0 : region(connection, handle);
    }

    /** The region that a handle means; it must be one of this connection. */
    public static int region(long connection, long handle) {
        if ((handle & HandleTable.PART_MASK) >>> 10 != 1 || (handle ^ connection) >>> HandleTable.PART_BITS != 0) {
            throw new IllegalArgumentException("0x" + Long.toHexString(handle)
                    + " is no memory that was registered with connection 0x" + Long.toHexString(connection));
        }
        return (int) handle & REGIONS - 1;
    }
}
