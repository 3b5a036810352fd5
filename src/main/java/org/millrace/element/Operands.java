package org.millrace.element;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.operation.Required;

/**
 * Checks the arguments of an operation of one rank, before the operation uses them. {@link Operation} defines the sizes
 * of the operands. Each device defines further requirements on memory.
 */
public final class Operands {

    /** Checks whether a device can access memory. */
    @FunctionalInterface
    public interface Reach {

        /**
         * Refuses memory that the device cannot access.
         *
         * @param what rank, operation and operand, for the message
         * @throws IllegalArgumentException if the device cannot use the memory
         */
        void check(String what, MemorySegment segment, long bytes);
    }

    /** Argument of {@link #checkOverlap} for an operation that cannot run in place. */
    private static final long NEVER_IN_PLACE = Long.MIN_VALUE;

    private final int rank;
    private final int ranks;
    private final Reach reach;
    /**
     * Prefixes of messages about the send operand, by the operation's ordinal. The constructor creates the prefixes,
     * because every check needs a prefix, and an operation must not create a string.
     */
    private final String[] sent;
    private final String[] received;

    /** Creates the checks for one rank of a communicator. */
    public Operands(int rank, int ranks, Reach reach) {
        this.rank = rank;
        this.ranks = ranks;
        this.reach = reach;
        this.sent = names("send");
        this.received = names("receive");
    }

    private String[] names(String role) {
        return Arrays.stream(Operation.values())
                .map(each -> "rank " + rank + ", " + each.label() + ", " + role)
                .toArray(String[]::new);
    }

    /**
     * Checks the operands of a collective without a root.
     *
     * @throws IllegalArgumentException if an operand cannot be used, or if the operands overlap in another way than an
     *                                  operation in place requires
     */
    public void check(Operation operation, MemorySegment send, MemorySegment receive, long count, DataType type) {
        checkCount(operation, count);
        long sendCount = operation.sendCount(count, ranks);
        long receiveCount = operation.receiveCount(count, ranks);
        checkSent(operation, send, sendCount, type);
        checkReceived(operation, receive, receiveCount, type);
        long inPlace = operation.hasInPlace()
                ? (operation.sendOffset(count, rank) - operation.receiveOffset(count, rank)) * type.bytes()
                : NEVER_IN_PLACE;
        checkOverlap(send, sendCount * type.bytes(), receive, receiveCount * type.bytes(), inPlace);
    }

    /**
     * Checks the operands of a collective with a root. On other ranks, operands that only the root uses are not
     * checked.
     *
     * @throws IllegalArgumentException as in {@link #check(Operation, MemorySegment, MemorySegment, long, DataType)},
     *                                  or if the root is not a rank of the communicator
     */
    public void check(Operation operation, @Nullable MemorySegment send, @Nullable MemorySegment receive, long count,
            DataType type, int root) {
        checkRank(operation, "root", root);
        checkCount(operation, count);
        if (rank == root) {
            check(operation, send, receive, count, type);
        } else if (operation.isSentByRoot()) {
            checkReceived(operation, receive, operation.receiveCount(count, ranks), type);
        } else {
            checkSent(operation, send, operation.sendCount(count, ranks), type);
        }
    }

    public void checkTransfer(boolean sends, MemorySegment buffer, long count, DataType type, int peer) {
        checkRank(Operation.SEND_RECEIVE, "peer", peer);
        checkCount(Operation.SEND_RECEIVE, count);
        checkOne((sends ? sent : received)[Operation.SEND_RECEIVE.ordinal()], buffer, count, type, !sends);
    }

    /** Checks memory before its registration. */
    public void checkRegistered(MemorySegment memory) {
        checkOne("rank " + rank + ", memory to register", memory,
                Required.argument("register", "memory", memory).byteSize(), DataType.UINT8, true);
    }

    private void checkRank(Operation operation, String role, int number) {
        if (number < 0 || number >= ranks) {
            throw new IllegalArgumentException("rank " + rank + ", " + operation.label() + ": there is no " + role + " "
                    + number + "; ranks are 0 to " + (ranks - 1));
        }
    }

    /**
     * Refuses a count whose magnitude is too large. For such a count, the elements of all ranks, with 8 bytes each,
     * have more than {@link Long#MAX_VALUE} bytes. A later check of the operand refuses every other negative count.
     */
    private void checkCount(Operation operation, long count) {
        long most = Long.MAX_VALUE / Long.BYTES / ranks;
        if (count > most || count < -most) {
            throw new IllegalArgumentException("rank " + rank + ", " + operation.label() + ": count " + count
                    + " is out of range; give 0 to " + most);
        }
    }

    private void checkSent(Operation operation, MemorySegment segment, long count, DataType type) {
        checkOne(sent[operation.ordinal()], segment, count, type, false);
    }

    private void checkReceived(Operation operation, MemorySegment segment, long count, DataType type) {
        checkOne(received[operation.ordinal()], segment, count, type, true);
    }

    private void checkOne(String what, MemorySegment segment, long count, DataType type, boolean written) {
        if (type == null || segment == null) {
            throw new NullPointerException(what + ": the " + (type == null ? "type" : "segment") + " is null");
        }
        if (count < 0) {
            throw new IllegalArgumentException(what + ": count " + count + " is negative");
        }
        long needed = Math.multiplyExact(count, type.bytes());
        if (!segment.scope().isAlive()) {
            throw new IllegalArgumentException(
                    what + ": the segment's arena is closed; keep it open until the operation has completed");
        }
        if (!segment.isNative()) {
            throw new IllegalArgumentException(what + ": a heap segment cannot be an operand, because the collector"
                    + " moves it; take memory from Device.allocate");
        }
        if (segment.byteSize() < needed) {
            throw new IllegalArgumentException(what + ": " + count + " elements of " + type.label() + " take " + needed
                    + " bytes, the segment has " + segment.byteSize());
        }
        if (segment.address() % type.bytes() != 0) {
            throw new IllegalArgumentException(what + ": address 0x" + Long.toHexString(segment.address())
                    + " is not aligned to the " + type.bytes() + " bytes of a " + type.label());
        }
        if (written && segment.isReadOnly()) {
            throw new IllegalArgumentException(what + ": the segment is read-only");
        }
        reach.check(what, segment, needed);
    }

    /**
     * Refuses operands that share bytes, unless they are placed as an operation in place requires.
     *
     * @param inPlace address of {@code send} minus address of {@code receive} in an operation in place, in bytes; 0 if
     *                the two addresses are equal; {@link #NEVER_IN_PLACE} if the operation cannot run in place
     */
    private static void checkOverlap(MemorySegment send, long sendBytes, MemorySegment receive, long receiveBytes,
            long inPlace) {
        long shared = Math.min(send.address() + sendBytes, receive.address() + receiveBytes)
                - Math.max(send.address(), receive.address());
        if (shared > 0 && send.address() - receive.address() != inPlace) {
            throw new IllegalArgumentException(
                    "send and receive overlap by " + shared + " of " + Math.min(sendBytes, receiveBytes) + " bytes: "
                            + (inPlace == 0 ? "they must be the same (in place) or apart"
                                    : inPlace == NEVER_IN_PLACE ? "they must be apart"
                                            : "send must begin " + inPlace
                                                    + " bytes behind receive (in place), or they must be apart"));
        }
    }
}
