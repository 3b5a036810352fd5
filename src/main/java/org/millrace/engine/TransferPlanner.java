package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.Protocol;
import org.millrace.abi.kernel.PointToPointWork;
import org.millrace.abi.kernel.WorkType;
import org.millrace.device.ChunkShape;
import org.millrace.device.CollectiveFunction;
import org.millrace.device.FunctionNumber;
import org.millrace.engine.EngineOptions.TransferOptions;
import org.millrace.engine.PlannedOperation.SendOrReceive;
import org.millrace.engine.Registrations.UserRegions;

/**
 * Plans the work of sends and receives. Transfers do not use the connections of collectives. Each peer has separate
 * connections for transfers, so that a transfer that waits for one peer does not delay transfers with other peers. A
 * connection is made at its first use. A transfer's bytes are divided into parts, one for each of the first channels,
 * from channel 0 on.
 */
final class TransferPlanner {

    /** Number of the device function for transfers. The transfers' work items contain all other properties. */
    static final int FUNCTION = FunctionNumber.pack(Operation.SEND_RECEIVE, CollectiveFunction.Algorithm.DIRECT,
            Protocol.SIMPLE, DataType.UINT8, ReduceOp.SUM);

    private final int rank;
    private final int channels;
    private final Registrations registrations;
    private final TransferOptions options;
    private final long llChunkBytes;

    public TransferPlanner(int rank, Registrations registrations, EngineOptions options) {
        this.rank = rank;
        this.channels = options.channels();
        this.registrations = registrations;
        this.options = options.transfers();
        this.llChunkBytes = ChunkShape.ONE_STEP.in(Protocol.LL).chunkBytes(options.layout());
    }

    public SendOrReceive transfer(boolean sends, MemorySegment buffer, long count, DataType type, int peer) {
        long bytes = count * type.bytes();
        UserRegions regions = peer == rank ? UserRegions.NONE
                : registrations.of(buffer, bytes, options.protocol(bytes), sends ? Registrations.NO_RANK : peer,
                        sends ? peer : Registrations.NO_RANK);
        boolean read = regions == UserRegions.NONE
                && registrations.isRead(buffer, bytes, bytes, false, options.protocol(bytes));
        return new SendOrReceive(sends, buffer, count, type, peer, regions, read);
    }

    /**
     * Returns a work item for a send, a receive or both. {@code send} or {@code receive} is null if the item has no
     * such transfer.
     */
    PointToPointWork work(@Nullable SendOrReceive send, @Nullable SendOrReceive receive) {
        PointToPointWork work =
                PointToPointWork.of(MemorySegment.ofArray(new long[WorkType.POINT_TO_POINT.itemBytes() / Long.BYTES]));
        work.set(powerOfTwo(channels),
                PointToPointWork.PROFILED | flags(send, PointToPointWork.SEND_REGISTERED, PointToPointWork.SEND_LL)
                        | flags(receive, PointToPointWork.RECEIVE_REGISTERED, PointToPointWork.RECEIVE_LL));
        work.chunks(chunkBytes(send), chunkBytes(receive));
        if (send == null) {
            work.send(PointToPointWork.NO_RANK, 0, 0, 0);
        } else {
            work.send(send.peer(), send.buffer().address(), send.bytes(), parts(send));
        }
        if (receive == null) {
            work.receive(PointToPointWork.NO_RANK, 0, 0, 0);
        } else {
            work.receive(receive.peer(), receive.buffer().address(), receive.bytes(), parts(receive));
        }
        return work;
    }

    private long chunkBytes(@Nullable SendOrReceive transfer) {
        return transfer == null ? 0
                : options.protocol(transfer.bytes()) == Protocol.LL ? llChunkBytes : options.chunkBytes();
    }

    private int flags(@Nullable SendOrReceive transfer, int registered, int ll) {
        if (transfer == null) {
            return 0;
        }
        return (transfer.regions() != UserRegions.NONE ? registered : 0)
                | (transfer.sends() && transfer.read() ? PointToPointWork.SEND_READ : 0)
                | (options.protocol(transfer.bytes()) == Protocol.LL ? ll : 0);
    }

    private static int powerOfTwo(int atLeast) {
        return Integer.highestOneBit(2 * atLeast - 1);
    }

    /**
     * Returns the number of parts of a transfer. An empty transfer has one part, because its step shows that both ranks
     * called the transfer.
     */
    private int parts(SendOrReceive transfer) {
        return transfer.peer() == rank ? 1 : CollectivePlanner.ChannelPartition.channels(transfer.bytes(), 1, channels);
    }
}
