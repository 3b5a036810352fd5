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
 * One operation's part on one connection, as an engine enqueues it ({@code ncclProxyOp} in NCCL).
 *
 * @param opCount    the operation's number within its communicator, the same on all ranks
 * @param signature  the operation, packed by {@link OperationSignature}
 * @param count      number of elements of the whole operation, for the comparison with the peer's
 * @param steps      number of steps that this connection carries for the operation; 0 if the operation does not involve
 *                   it; such an operation is announced only to detect a peer that disagrees
 * @param chunkSteps steps of a chunk; the operation begins at a multiple of it. A power of two.
 * @param sliceSteps steps of a slice; each slice is at most one frame. A power of two.
 * @param protocol   layout of the data in its slots
 * @param user       the user's memory that the device points to in {@code connFifo} (mode PTR), so that nothing is
 *                   copied; null if the data passes through slots. Each end decides independently, so the peer may
 *                   differ.
 * @param collNet    the request to a network that reduces; null if the peer is a rank
 */
public record ProxyOp(long opCount, long signature, long count, long steps, int chunkSteps, int sliceSteps,
        Protocol protocol, @Nullable MemoryRegion user, @Nullable CollNetOp collNet) {

    /**
     * Checks the conditions on which every user of an operation relies.
     *
     * @throws IllegalArgumentException if the numbers of steps do not fit together or do not fit the protocol
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

    /**
     * {@return the number of the operation, if it is a collective; -1 for sends and receives, which are counted by
     * peer}
     */
    public long collective() {
        return OperationSignature.operation(signature) == Operation.SEND_RECEIVE ? -1 : opCount;
    }

    /** Creates an operation between ranks. */
    public ProxyOp(long opCount, long signature, long count, long steps, int chunkSteps, int sliceSteps,
            Protocol protocol, @Nullable MemoryRegion user) {
        this(opCount, signature, count, steps, chunkSteps, sliceSteps, protocol, user, null);
    }

    /** Creates an operation of protocol Simple with data that passes through slots. */
    public ProxyOp(long opCount, long signature, long count, long steps, int chunkSteps, int sliceSteps) {
        this(opCount, signature, count, steps, chunkSteps, sliceSteps, Protocol.SIMPLE, null);
    }

    /** {@return the announcement of an operation to a connection that the operation does not involve} */
    public static ProxyOp without(long opCount, long signature, long count) {
        return new ProxyOp(opCount, signature, count, 0, 1, 1);
    }

    /** {@return the same operation with another number} */
    public ProxyOp numbered(long number) {
        return new ProxyOp(number, signature, count, steps, chunkSteps, sliceSteps, protocol, user, collNet);
    }

    /** {@return the same operation, of a connection with a network that reduces} */
    public ProxyOp asking(CollNetOp windows) {
        return new ProxyOp(opCount, signature, count, steps, chunkSteps, sliceSteps, protocol, user, windows);
    }

    /**
     * Returns the offset in {@link #user} of the data that a device points to in {@code connFifo} (mode PTR).
     *
     * @throws ProxyException if the data does not lie completely in that memory; no byte outside is read or written,
     *                        regardless of the device's values
     */
    long offset(ConnectionName name, long step, long address, long bytes) {
        if (bytes == 0) {
            return 0; // an empty payload has no location
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
     * The requests of one channel's part of an operation to a network that reduces. Each step is a request for a window
     * of the operation's buffer. That buffer contains the parts of all ranks one after another, if each rank has a
     * part. Offsets and lengths are in bytes.
     *
     * @param operation    an all-reduce, an all-gather or a reduce-scatter
     * @param first        offset of the channel's part
     * @param windowBytes  length of each window except the last one, in whole elements
     * @param bytesPerRank length of each rank's part; 0 for an all-reduce
     */
    public record CollNetOp(Operation operation, DataType type, ReduceOp.BuiltIn op, long first, long bytes,
            long windowBytes, long bytesPerRank) {

        /** {@return the offset of a step's window} */
        public long windowOffset(long step) {
            return first + step * windowBytes;
        }

        /** {@return the length of a step's window} */
        public long windowBytes(long step) {
            return Math.min(windowBytes, bytes - step * windowBytes);
        }

        /** {@return the number of bytes of a step's window that belong to a rank's own part} */
        public long ownBytes(long step, int rank) {
            long begin = Math.max(windowOffset(step), rank * bytesPerRank);
            long end = Math.min(windowOffset(step) + windowBytes(step), (rank + 1) * bytesPerRank);
            return Math.max(0, end - begin);
        }
    }
}
