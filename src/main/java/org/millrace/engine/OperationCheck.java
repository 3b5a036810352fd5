package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.OperationSignature;
import org.millrace.proxy.spi.ProxyException;
import org.millrace.proxy.spi.ProxyOp;

/**
 * Detects that the two ranks of a direct connection, which has no frames, run different operations. Both sides announce
 * each operation. The side that announces later compares its operation with the record of the other side. The check
 * runs once for each operation and not for each step.
 *
 * <pre>
 *   offset, in records
 *   0                    operations of the sender with data on this connection: operation n is in record n % RECORDS
 *   RECORDS              newest operation of the sender without data on this connection ("one without part")
 *   RECORDS + 1          records of the receiver, in the same layout
 *   2 * (RECORDS + 1)    end
 *
 *   record: number of the operation, from 1, or -1 during a write | opCount | signature | count   (8 bytes each)
 * </pre>
 *
 * <p>
 * Each side writes its own records and reads the records of the other side. One additional record ("one without part")
 * describes the side's newest operation that sends nothing over this connection. A side that is more than
 * {@value #RECORDS} operations ahead has overwritten records that were not yet compared. The check ignores overwritten
 * records.
 */
final class OperationCheck {

    /** Maximum lead of one side over the other side before records are lost, in operations. */
    private static final int RECORDS = 256;
    private static final long RECORD_BYTES = 32;
    private static final long NUMBER = 0;
    private static final long OP_COUNT = 8;
    private static final long SIGNATURE = 16;
    private static final long COUNT = 24;
    private static final long WITHOUT_PART = RECORDS * RECORD_BYTES;
    private static final long SIDE_BYTES = WITHOUT_PART + RECORD_BYTES;
    /** Size in bytes of the memory that both sides share for the check. */
    static final long BYTES = 2 * SIDE_BYTES;
    private static final long BEING_WRITTEN = -1;

    private static final VarHandle LONG = ValueLayout.JAVA_LONG.varHandle();

    private final ConnectionName name;
    private final MemorySegment mine;
    private final MemorySegment theirs;
    /** Newest record read from the other side. One object suffices, because only one thread at a time announces. */
    private final Announcement other = new Announcement();
    private final Announcement without = new Announcement();
    private long announced;
    private long withoutPart;

    /** Announcement of the other side. */
    private static final class Announcement {
        long number;
        long opCount;
        long signature;
        long count;

        boolean is(ProxyOp op) {
            return opCount == op.opCount() && signature == op.signature() && count == op.count();
        }
    }

    /** @param memory {@link #BYTES} zero bytes that both sides can access */
    OperationCheck(ConnectionName name, MemorySegment memory, boolean sends) {
        this.name = name;
        MemorySegment ofSender = memory.asSlice(0, SIDE_BYTES);
        MemorySegment ofReceiver = memory.asSlice(SIDE_BYTES, SIDE_BYTES);
        mine = sends ? ofSender : ofReceiver;
        theirs = sends ? ofReceiver : ofSender;
    }

    /**
     * Records an operation of this side. Compares it with the other side's operation, if the other side has already
     * announced its operation. Returns the disagreement; null if there is none.
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
        // The other side writes its records in the order of its operations. This thread therefore reads the record of
        // operation `number` again, after the record "without part". If the record of operation `number` is still
        // absent, the other side announced the operation without part before operation `number`.
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
        // A reader that sees a value of the stores below does not see the old number in its second load of the number.
        // Pairs with the load fence in read().
        VarHandle.storeStoreFence();
        LONG.setOpaque(mine, at + OP_COUNT, op.opCount());
        LONG.setOpaque(mine, at + SIGNATURE, op.signature());
        LONG.setOpaque(mine, at + COUNT, op.count());
        LONG.setRelease(mine, at + NUMBER, number);
        // Pairs with the full fence that the other side executes at the same place of its announcement. If both sides
        // announce at the same time, at least one of them sees the other side's record.
        VarHandle.fullFence();
    }

    /**
     * Reads a record of the other side. The record's number is {@link #BEING_WRITTEN} if the record is not complete,
     * and 0 if it was never written.
     */
    private void read(long at, Announcement into) {
        long number = (long) LONG.getAcquire(theirs, at + NUMBER);
        into.opCount = (long) LONG.getOpaque(theirs, at + OP_COUNT);
        into.signature = (long) LONG.getOpaque(theirs, at + SIGNATURE);
        into.count = (long) LONG.getOpaque(theirs, at + COUNT);
        // Orders the loads above before the second load of the operation's number, which detects that the peer is
        // overwriting the record. Pairs with the peer's store fence after its reset of this number.
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
