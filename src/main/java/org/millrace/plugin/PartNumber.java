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
final class PartNumber {

    /** Requests are numbered modulo this. */
    static final int REQUEST_NUMBERS = 1 << 11;
    /** Memory regions that one connection can have. */
    static final int REGIONS = 1 << 10;

    private static final int REQUEST = 1 << 11;
    private static final int REGION = 1 << 10;

    private PartNumber() {}

    static long ofRequest(long connection, int number) {
        return connection | REQUEST | number;
    }

    static long ofRegion(long connection, int region) {
        return connection | REGION | region;
    }

    static int request(long handle) {
        if ((handle & REQUEST) == 0) {
            throw new IllegalArgumentException("0x" + Long.toHexString(handle) + " is no request");
        }
        return (int) handle & REQUEST_NUMBERS - 1;
    }

    /** The region that a handle means; it must be one of this connection. */
    static int region(long connection, long handle) {
        if ((handle & HandleTable.PART_MASK) >>> 10 != 1 || (handle ^ connection) >>> HandleTable.PART_BITS != 0) {
            throw new IllegalArgumentException("0x" + Long.toHexString(handle)
                    + " is no memory that was registered with connection 0x" + Long.toHexString(connection));
        }
        return (int) handle & REGIONS - 1;
    }
}
