package org.millrace.proxy;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.net.MemoryRegion;

/**
 * One operation's share of one connection, as an engine enqueues it ({@code ncclProxyOp} in NCCL).
 *
 * @param opCount    the operation's number within its communicator, the same on all ranks
 * @param signature  what the operation is, packed by {@link OperationSignature}
 * @param count      elements of the whole operation, for the comparison with the peer's
 * @param steps      steps this connection carries for the operation; 0 if it has no part in it, which is only said so
 *                   that a peer that thinks otherwise is found out
 * @param chunkSteps steps of a chunk; the operation begins at a multiple of it. A power of two.
 * @param sliceSteps steps of a slice; each slice is one frame at the most. A power of two.
 * @param protocol   how the data lies in its slots
 * @param user       the user's memory that the device points to in {@code connFifo} (mode PTR), so that nothing is
 *                   copied; null where the data goes through slots. An end's own matter: the peer's may do otherwise.
 * @param collNet    what is asked of a network that reduces; null where the peer is a rank
 */
public record ProxyOp(long opCount, long signature, long count, long steps, int chunkSteps, int sliceSteps,
        Protocol protocol, @Nullable MemoryRegion user, @Nullable CollNetOp collNet) {

    /**
     * Checks what every user of an operation relies on.
     *
     * @throws IllegalArgumentException if the steps do not fit together, or not to the protocol
     */
    public ProxyOp {
        if (Integer.bitCount(chunkSteps) != 1 || Integer.bitCount(sliceSteps) != 1
                || chunkSteps > ConnectionLayout.SLOTS || sliceSteps > chunkSteps) {
            throw new IllegalArgumentException("chunks of " + chunkSteps + " steps in slices of " + sliceSteps
                    + ": both must be powers of two, slice <= chunk <= " + ConnectionLayout.SLOTS);
        }
        if (steps < 0 || steps % sliceSteps != 0) {
            throw new IllegalArgumentException(steps + " steps are not a whole number of slices of " + sliceSteps);
        }
        if (protocol != Protocol.SIMPLE && (chunkSteps != 1 || user != null)) {
            throw new IllegalArgumentException(protocol + " has chunks of one step, in slots: not " + chunkSteps
                    + " steps" + (user == null ? "" : ", nor the user's memory"));
        }
    }

    /** {@return its number, if it is a collective; -1 for sends and receives, which are counted by peer} */
    public long collective() {
        return OperationSignature.operation(signature) == Operation.SEND_RECEIVE ? -1 : opCount;
    }

    /** An operation between ranks. */
    public ProxyOp(long opCount, long signature, long count, long steps, int chunkSteps, int sliceSteps,
            Protocol protocol, @Nullable MemoryRegion user) {
        this(opCount, signature, count, steps, chunkSteps, sliceSteps, protocol, user, null);
    }

    /** An operation of protocol Simple whose data goes through slots. */
    public ProxyOp(long opCount, long signature, long count, long steps, int chunkSteps, int sliceSteps) {
        this(opCount, signature, count, steps, chunkSteps, sliceSteps, Protocol.SIMPLE, null);
    }

    /** {@return what a connection hears of an operation in which it has no part} */
    public static ProxyOp without(long opCount, long signature, long count) {
        return new ProxyOp(opCount, signature, count, 0, 1, 1);
    }

    /** {@return another operation that is the same but for its number} */
    public ProxyOp numbered(long number) {
        return new ProxyOp(number, signature, count, steps, chunkSteps, sliceSteps, protocol, user, collNet);
    }

    /** {@return the same, of a connection with a network that reduces} */
    public ProxyOp asking(CollNetOp windows) {
        return new ProxyOp(opCount, signature, count, steps, chunkSteps, sliceSteps, protocol, user, windows);
    }

    /**
     * The offset in {@link #user} of what a device points to in {@code connFifo} (mode PTR).
     *
     * @throws ProxyException if not all of it lies there: nothing outside is read or written, whatever a device says
     */
    long offset(ConnectionName name, long step, long address, long bytes) {
        if (bytes == 0) {
            return 0; // nothing lies nowhere
        }
        MemorySegment memory = user.segment();
        long offset = address - memory.address();
        if (offset < 0 || offset > memory.byteSize() - bytes) {
            throw new ProxyException(name + ", step " + step + ": the device points to " + bytes + " bytes at 0x"
                    + Long.toHexString(address) + ", outside the " + memory.byteSize()
                    + " bytes that were registered for the operation at 0x" + Long.toHexString(memory.address()));
        }
        return offset;
    }

    /**
     * What one channel's part of an operation asks of a network that reduces: each of its steps is a request, for a
     * window of the operation's buffer: of what all ranks' parts are one behind the other, where each has one. Offsets
     * and lengths are bytes.
     *
     * @param operation    an all-reduce, an all-gather or a reduce-scatter
     * @param first        where the channel's part begins
     * @param windowBytes  of each step but the last, whole elements
     * @param bytesPerRank length of each rank's part; 0 of an all-reduce
     */
    public record CollNetOp(Operation operation, DataType type, ReduceOp.BuiltIn op, long first, long bytes,
            long windowBytes, long bytesPerRank) {

        /** {@return where a step's window begins} */
        public long windowOffset(long step) {
            return first + step * windowBytes;
        }

        /** {@return how long a step's window is} */
        public long windowBytes(long step) {
            return Math.min(windowBytes, bytes - step * windowBytes);
        }

        /** {@return how much of a step's window is a rank's own} */
        public long ownBytes(long step, int rank) {
            long begin = Math.max(windowOffset(step), rank * bytesPerRank);
            long end = Math.min(windowOffset(step) + windowBytes(step), (rank + 1) * bytesPerRank);
            return Math.max(0, end - begin);
        }
    }
}
