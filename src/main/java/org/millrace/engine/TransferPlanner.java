package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.Operation;
import org.millrace.ReduceOp;
import org.millrace.abi.PointToPointWork;
import org.millrace.abi.Protocol;
import org.millrace.abi.WorkType;
import org.millrace.device.ChunkShape;
import org.millrace.device.CollectiveFunction;
import org.millrace.device.FunctionNumber;
import org.millrace.engine.EngineOptions.TransferOptions;
import org.millrace.engine.PlannedOperation.SendOrReceive;
import org.millrace.engine.Registrations.UserRegions;

/**
 * Sends and receives as work. They travel over connections of their own that are made when they are first needed; what
 * one waits for holds up no other. A transfer's bytes are spread over channels in parts, part by part from channel 0
 * on.
 */
final class TransferPlanner {

    /** Number of their device function: their items say the rest. */
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
                : registrations.of(buffer, bytes, options.protocol(bytes), sends ? Registrations.NOBODY : peer,
                        sends ? peer : Registrations.NOBODY);
        boolean read = regions == UserRegions.NONE
                && registrations.isRead(buffer, bytes, bytes, false, options.protocol(bytes));
        return new SendOrReceive(sends, buffer, count, type, peer, regions, read);
    }

    /** An item of either or both; null for none. */
    PointToPointWork work(@Nullable SendOrReceive send, @Nullable SendOrReceive receive) {
        PointToPointWork work =
                PointToPointWork.of(MemorySegment.ofArray(new long[WorkType.POINT_TO_POINT.itemBytes() / Long.BYTES]));
        work.set(powerOfTwo(channels),
                PointToPointWork.PROFILED | flags(send, PointToPointWork.SEND_REGISTERED, PointToPointWork.SEND_LL)
                        | flags(receive, PointToPointWork.RECEIVE_REGISTERED, PointToPointWork.RECEIVE_LL));
        work.chunks(chunkBytes(send), chunkBytes(receive));
        if (send == null) {
            work.send(PointToPointWork.NOBODY, 0, 0, 0);
        } else {
            work.send(send.peer(), send.buffer().address(), send.bytes(), parts(send));
        }
        if (receive == null) {
            work.receive(PointToPointWork.NOBODY, 0, 0, 0);
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

    /** A transfer of nothing takes a step, too: both ends must have meant it. */
    private int parts(SendOrReceive transfer) {
        return transfer.peer() == rank ? 1 : CollectivePlanner.ChannelPartition.channels(transfer.bytes(), 1, channels);
    }
}
