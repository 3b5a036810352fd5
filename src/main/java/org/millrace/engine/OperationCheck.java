package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;
import org.millrace.proxy.ConnectionName;
import org.millrace.proxy.OperationSignature;
import org.millrace.proxy.ProxyException;
import org.millrace.proxy.ProxyOp;

/**
 * Finds out that the two ranks of a connection without frames run different operations: the side that announces an
 * operation second compares it with what the first one wrote down. Not on the way of any step.
 *
 * <pre>
 *   0                       RECORDS                         RECORDS + 1        2 * (RECORDS + 1)   records
 *   | the sender's: record n of its n-th operation, modulo | one without part | the receiver's    |
 *
 *   record:   number from 1, or -1 while it is written | opCount | signature | count      8 bytes each
 * </pre>
 *
 * <p>
 * Each side writes its own records and reads the other's. One more record is for the last operation in which the
 * connection has no part on that side. A side that is {@value #RECORDS} operations ahead writes over records that were
 * not compared yet: these are left out.
 */
final class OperationCheck {

    /** Operations that one side may announce before the other. */
    private static final int RECORDS = 256;
    private static final long RECORD_BYTES = 32;
    private static final long NUMBER = 0;
    private static final long OP_COUNT = 8;
    private static final long SIGNATURE = 16;
    private static final long COUNT = 24;
    private static final long WITHOUT_PART = RECORDS * RECORD_BYTES;
    private static final long SIDE_BYTES = WITHOUT_PART + RECORD_BYTES;
    /** Memory that both sides share for it. */
    static final long BYTES = 2 * SIDE_BYTES;
    private static final long BEING_WRITTEN = -1;

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private final ConnectionName name;
    private final MemorySegment mine;
    private final MemorySegment theirs;
    /** What was read last of the other side's records; one thread at a time announces. */
    private final Announcement other = new Announcement();
    private final Announcement without = new Announcement();
    private long announced;
    private long withoutPart;

    /** What the other side announced. */
    private static final class Announcement {
        long number;
        long opCount;
        long signature;
        long count;

        boolean is(ProxyOp op) {
            return opCount == op.opCount() && signature == op.signature() && count == op.count();
        }
    }

    /**
     * @param memory {@link #BYTES} bytes of zeros that both sides reach
     */
    OperationCheck(ConnectionName name, MemorySegment memory, boolean sends) {
        this.name = name;
        MemorySegment ofSender = memory.asSlice(0, SIDE_BYTES);
        MemorySegment ofReceiver = memory.asSlice(SIDE_BYTES, SIDE_BYTES);
        mine = sends ? ofSender : ofReceiver;
        theirs = sends ? ofReceiver : ofSender;
    }

    /**
     * Writes an operation down and compares it with the other side's, if that has come so far; returns what is wrong;
     * null if nothing is.
     */
    @Nullable
    ProxyException announce(ProxyOp op) {
        return op.steps() == 0 ? announceWithoutPart(op) : announcePart(op);
    }

    private @Nullable ProxyException announcePart(ProxyOp op) {
        long number = ++announced;
        long at = number % RECORDS * RECORD_BYTES;
        write(at, number, op);
        read(at, other);
        if (other.number == number) {
            return other.is(op) ? null : disagreement(op, other);
        }
        // The record after the one without part: a side writes the records in the order of its operations,
        // so that one that is not there now was not announced before.
        read(WITHOUT_PART, without);
        read(at, other);
        if (other.number == number) {
            return other.is(op) ? null : disagreement(op, other);
        }
        boolean passedBy = other.number != BEING_WRITTEN && other.number < number && without.number > 0
                && without.opCount - op.opCount() >= 0;
        return passedBy ? disagreement(op, without) : null;
    }

    private @Nullable ProxyException announceWithoutPart(ProxyOp op) {
        write(WITHOUT_PART, ++withoutPart, op);
        long next = announced + 1;
        read(next % RECORDS * RECORD_BYTES, other);
        return other.number == next && other.opCount - op.opCount() <= 0 ? disagreement(op, other) : null;
    }

    private void write(long at, long number, ProxyOp op) {
        LONG.setOpaque(mine, at + NUMBER, BEING_WRITTEN);
        VarHandle.storeStoreFence(); // a reader that sees a new field does not see the old number after it
        LONG.setOpaque(mine, at + OP_COUNT, op.opCount());
        LONG.setOpaque(mine, at + SIGNATURE, op.signature());
        LONG.setOpaque(mine, at + COUNT, op.count());
        LONG.setRelease(mine, at + NUMBER, number);
        // pairs with the other side's: of two that announce at the same time one at least sees the other's record
        VarHandle.fullFence();
    }

    /**
     * A record that is whole: its number is {@link #BEING_WRITTEN} if there is none such now, and 0 if it was never
     * written.
     */
    private void read(long at, Announcement into) {
        long number = (long) LONG.getAcquire(theirs, at + NUMBER);
        into.opCount = (long) LONG.getOpaque(theirs, at + OP_COUNT);
        into.signature = (long) LONG.getOpaque(theirs, at + SIGNATURE);
        into.count = (long) LONG.getOpaque(theirs, at + COUNT);
        // pairs with the fence after the number's reset: a record that is being written over is not judged
        VarHandle.loadLoadFence();
        boolean whole = (long) LONG.getOpaque(theirs, at + NUMBER) == number;
        into.number = whole ? number : BEING_WRITTEN;
    }

    private ProxyException disagreement(ProxyOp op, Announcement theirOp) {
        return new ProxyException.DisagreementException(name, op.collective(),
                name + ": the ranks disagree: " + name.self() + " runs "
                        + OperationSignature.describe(op.signature(), op.opCount(), op.count()) + "; " + name.peer()
                        + " runs " + OperationSignature.describe(theirOp.signature, theirOp.opCount, theirOp.count)
                        + ". All ranks must call the same operations in the same order.");
    }
}
