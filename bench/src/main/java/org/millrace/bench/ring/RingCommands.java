package org.millrace.bench.ring;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;

/**
 * A page after a ring's memory through which one process sends commands to the other.
 *
 * <pre>
 *   0            8        16         128          136
 *   +------------+--------+----------+------------+---------+
 *   | commanded  | role   | count    | done       | result  |
 *   +------------+--------+----------+------------+---------+
 *   by the process that measures     by the other
 * </pre>
 *
 * <p>
 * {@code commanded} counts commands. It is stored with release after role and count, and an acquire on the other side
 * makes them visible. {@code done} counts completed commands, and is stored with release after the result.
 */
final class RingCommands {

    /** Length of ring and page together. */
    static final long FILE_BYTES = RingMemory.LAYOUT.totalBytes() + 4096;
    /** Role number that ends the process. */
    static final long END = -1;

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();
    private static final long COMMANDED = 0;
    private static final long ROLE = 8;
    private static final long COUNT = 16;
    private static final long DONE = 128;
    private static final long RESULT = 136;

    private final MemorySegment page;

    RingCommands(MemorySegment file) {
        page = file.asSlice(RingMemory.LAYOUT.totalBytes(), FILE_BYTES - RingMemory.LAYOUT.totalBytes());
    }

    void command(long number, long role, long count) {
        LONG.set(page, ROLE, role);
        LONG.set(page, COUNT, count);
        LONG.setRelease(page, COMMANDED, number);
    }

    long commandedAcquire() {
        return (long) LONG.getAcquire(page, COMMANDED);
    }

    long role() {
        return (long) LONG.get(page, ROLE);
    }

    long count() {
        return (long) LONG.get(page, COUNT);
    }

    void done(long number, long result) {
        LONG.set(page, RESULT, result);
        LONG.setRelease(page, DONE, number);
    }

    long doneAcquire() {
        return (long) LONG.getAcquire(page, DONE);
    }

    long result() {
        return (long) LONG.get(page, RESULT);
    }
}
