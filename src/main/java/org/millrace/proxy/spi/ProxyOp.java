package org.millrace.proxy.spi;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.net.MemoryRegion;

/**
 * The part of one operation on one connection, as an engine announces it ({@code ncclProxyOp} in NCCL).
 *
 * @param opCount    number of the operation within its communicator, the same on all ranks
 * @param signature  identity of the operation, packed by {@link OperationSignature}
 * @param count      number of elements of the whole operation. The receiver compares it with the peer's number.
 * @param steps      number of steps on this connection; 0 if the operation has no data on this connection. Such an
 *                   operation is announced only to detect a peer that runs another operation.
 * @param chunkSteps number of steps of a chunk, a power of two. The operation's first step is a multiple of this
 *                   number.
 * @param sliceSteps number of steps of a slice, a power of two. One frame contains the data of at most one slice.
 * @param protocol   protocol, which determines the layout of the data in slots
 * @param user       the user's memory in mode PTR; null if the data passes through slots. In mode PTR the device stores
 *                   addresses of this memory in {@code connFifo}, and no copy is necessary. Each end of a connection
 *                   chooses its own mode, independent of the other end.
 * @param collNet    request to a network that reduces; null if the peer is a rank
 */
public record ProxyOp(long opCount, long signature, long count, long steps, int chunkSteps, int sliceSteps,
        Protocol protocol, @Nullable MemoryRegion user, @Nullable CollNetOp collNet) {

    /**
     * Checks the numbers of steps.
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
     * {@return the number of a collective; -1 for sends and receives, which have a separate number for each peer}
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

    /** {@return an operation that has no data on its connection} */
    public static ProxyOp without(long opCount, long signature, long count) {
        return new ProxyOp(opCount, signature, count, 0, 1, 1);
    }

    /** {@return an operation that differs from this operation only by its number} */
    public ProxyOp numbered(long number) {
        return new ProxyOp(number, signature, count, steps, chunkSteps, sliceSteps, protocol, user, collNet);
    }

    /**
     * {@return an operation that differs from this operation only by its request to a network that reduces}
     *
     * @param windows request to that network
     */
    public ProxyOp asking(CollNetOp windows) {
        return new ProxyOp(opCount, signature, count, steps, chunkSteps, sliceSteps, protocol, user, windows);
    }

    /**
     * Returns the offset in {@link #user} of an address that a device stored in {@code connFifo} (mode PTR).
     *
     * @throws ProxyException if the data at the address is not completely inside {@link #user}. This check protects all
     *                        other memory from wrong addresses.
     */
    public long offset(ConnectionName name, long step, long address, long bytes) {
        if (bytes == 0) {
            return 0; // an empty payload has no address
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
     * The requests to a network that reduces, for one channel's part of an operation. Each step is one request. A
     * request covers a window, which is a contiguous part of the operation's buffer. If each rank contributes its own
     * part, the buffer contains the parts of all ranks one after another. Offsets and lengths are in bytes.
     *
     * @param operation    all-reduce, all-gather or reduce-scatter
     * @param first        offset of the channel's part in the operation's buffer
     * @param bytes        length of the channel's part
     * @param windowBytes  length of each window except the last one, a whole number of elements
     * @param bytesPerRank length of each rank's part; 0 for an all-reduce
     */
    public record CollNetOp(Operation operation, DataType type, ReduceOp.BuiltIn op, long first, long bytes,
            long windowBytes, long bytesPerRank) {

        /** {@return the offset of a step's window in the operation's buffer} */
        public long windowOffset(long step) {
            return first + step * windowBytes;
        }

        /** {@return the length of a step's window} */
        public long windowBytes(long step) {
            return Math.min(windowBytes, bytes - step * windowBytes);
        }

        /** {@return the number of bytes that a step's window and a rank's own part have in common} */
        public long ownBytes(long step, int rank) {
            long begin = Math.max(windowOffset(step), rank * bytesPerRank);
            long end = Math.min(windowOffset(step) + windowBytes(step), (rank + 1) * bytesPerRank);
            return Math.max(0, end - begin);
        }
    }
}
