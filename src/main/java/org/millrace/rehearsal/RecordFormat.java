package org.millrace.rehearsal;

/**
 * A file of records: a header, and a ring of records of one cache line each. The writer stores {@code count} last, with
 * release. Record n lies at position n modulo the capacity. All values are little endian. Times are values of the
 * process's {@link System#nanoTime()}.
 *
 * <pre>
 *   header
 *   0       8         12         16         24      64       128    4096
 *   +-------+---------+----------+----------+-------+--------+------+-------------- - -
 *   | magic | version | bytes of | capacity | lost  | count  |      | records
 *   |       |         | a record |          |       |        |      |
 *   +-------+---------+----------+----------+-------+--------+------+-------------- - -
 *
 *   a step
 *   0      1          4            8       16     24    32     40     48        56
 *   +------+----------+------------+-------+------+-----+------+------+---------+---+
 *   | kind | protocol | connection | taken | done | end | size | idle | blocked |   |
 *   +------+----------+------------+-------+------+-----+------+------+---------+---+
 *
 *   an operation that was enqueued
 *   0      1      2      4              8          16       24      32      40         48     52     56
 *   +------+------+------+--------------+----------+--------+-------+-------+----------+------+------+--------+
 *   | kind | type | name | communicator | enqueued | number | bytes | count | sequence | peer | root | launch |
 *   +------+------+------+--------------+----------+--------+-------+-------+----------+------+------+--------+
 *
 *   start and end of an operation
 *   0      4              8         16      24
 *   +------+--------------+---------+-------+--------+--------- - -
 *   | kind | communicator | started | ended | number |
 *   +------+--------------+---------+-------+--------+--------- - -
 * </pre>
 */
final class RecordFormat {

    static final String SUFFIX = ".records";
    static final String DEFINITIONS_SUFFIX = ".txt";
    static final String PREFIX = "millrace-";

    static final long MAGIC = 0x6472_6f63_6572_724dL; // "Mrrecord"
    static final int VERSION = 1;
    static final int HEADER_BYTES = 4096;
    static final int RECORD_BYTES = 64;

    static final int MAGIC_OFFSET = 0;
    static final int VERSION_OFFSET = 8;
    static final int RECORD_BYTES_OFFSET = 12;
    static final int CAPACITY_OFFSET = 16;
    static final int LOST_OFFSET = 24;
    static final int COUNT_OFFSET = 64;

    static final int STEP = 1;
    static final int ENQUEUED = 2;
    static final int RAN = 3;

    private static final int BYTE = 0xff;

    private RecordFormat() {}

    /**
     * Returns the first word of a record.
     *
     * @param small   protocol of a step, or type of an operation
     * @param name    number that represents the name of an operation
     * @param subject number of the connection of a step, or of the communicator of an operation
     */
    static long head(int kind, int small, int name, int subject) {
        return kind | (small & BYTE) << Byte.SIZE | (name & 0xffffL) << Short.SIZE | (long) subject << Integer.SIZE;
    }

    static int kind(long head) {
        return (int) head & BYTE;
    }

    /** Extracts the protocol of a step or the type of an operation from the first word of its record. */
    static int small(long head) {
        return (byte) (head >>> Byte.SIZE);
    }

    static int name(long head) {
        return (int) (head >>> Short.SIZE) & 0xffff;
    }

    /** Extracts the number of the connection or of the communicator from the first word of a record. */
    static int subject(long head) {
        return (int) (head >>> Integer.SIZE);
    }

    static long pair(int low, int high) {
        return low & 0xffff_ffffL | (long) high << Integer.SIZE;
    }

    static int low(long pair) {
        return (int) pair;
    }

    static int high(long pair) {
        return (int) (pair >>> Integer.SIZE);
    }
}
