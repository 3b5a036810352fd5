package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.PointToPointWork;
import org.millrace.abi.WorkType;
import org.millrace.device.function.Block;
import org.millrace.device.function.BlockPair;
import org.millrace.device.function.Chain;
import org.millrace.device.function.ChannelPart;
import org.millrace.device.function.LocalBlock;
import org.millrace.device.primitives.BlockMemory;
import org.millrace.device.primitives.ChunkShape;
import org.millrace.device.work.KernelMemory;
import org.millrace.engine.connect.Connector;
import org.millrace.engine.connect.Connectors;
import org.millrace.engine.connect.Hops;
import org.millrace.proxy.OperationSignature;
import org.millrace.transport.Connections;

/**
 * Sends and receives, over connections of their own that are made when they are first needed; what one waits for holds
 * up no other. A transfer's bytes are spread over channels in parts, part by part from channel 0 on.
 */
final class Transfers {

    /** For a half of an item that is not there. */
    private static final int NOBODY = -1;

    private final int rank;
    private final Connectors connectors;
    private final int channels;
    private final ConnectionLayout layout;
    private final Registrations registrations;
    private final TransferOptions options;

    Transfers(int rank, Connectors connectors, Registrations registrations, EngineOptions options) {
        this.rank = rank;
        this.connectors = connectors;
        this.channels = options.channels();
        this.layout = options.layout();
        this.registrations = registrations;
        this.options = options.transfers();
    }

    /** A send, or a receive, of this rank. */
    Transfer transfer(boolean sends, MemorySegment buffer, long count, DataType type, int peer) {
        long bytes = count * type.bytes();
        UserRegions regions = peer == rank ? UserRegions.NONE
                : registrations.of(buffer, bytes, options.protocol(bytes), sends ? Registrations.NOBODY : peer,
                        sends ? peer : Registrations.NOBODY);
        return new Transfer(sends, buffer, count, type, peer, regions);
    }

    /** An item of either or both; null for none. */
    PointToPointWork work(Transfer send, Transfer receive) {
        PointToPointWork work =
                PointToPointWork.of(MemorySegment.ofArray(new long[WorkType.POINT_TO_POINT.itemBytes() / Long.BYTES]));
        work.channels(powerOfTwo(channels));
        work.flags(PointToPointWork.PROFILED | (inPlace(send) ? PointToPointWork.SEND_REGISTERED : 0)
                | (inPlace(receive) ? PointToPointWork.RECEIVE_REGISTERED : 0));
        work.sendRank(send == null ? NOBODY : send.peer());
        work.receiveRank(receive == null ? NOBODY : receive.peer());
        if (send != null) {
            work.sendAddress(send.buffer().address());
            work.sendBytes(send.bytes());
            work.sendChannels(parts(send));
        }
        if (receive != null) {
            work.receiveAddress(receive.buffer().address());
            work.receiveBytes(receive.bytes());
            work.receiveChannels(parts(receive));
        }
        return work;
    }

    private static boolean inPlace(Transfer transfer) {
        return transfer != null && transfer.regions() != UserRegions.NONE;
    }

    private static int powerOfTwo(int atLeast) {
        return Integer.highestOneBit(2 * atLeast - 1);
    }

    /** A transfer of nothing takes a step, too: both ends must have meant it. */
    private int parts(Transfer transfer) {
        return transfer.peer() == rank ? 1 : Shares.channels(transfer.bytes(), 1, channels);
    }

    /** Tells the proxies of a transfer. What a rank hands to itself needs none. */
    void announce(Transfer transfer) {
        int parts = transfer.peer() == rank ? 0 : parts(transfer);
        for (int part = 0; part < parts; part++) {
            Passage passage = transfer.sends() ? send(transfer.peer(), transfer.bytes(), part, parts, inPlace(transfer))
                    : receive(transfer.peer(), transfer.bytes(), part, parts, inPlace(transfer));
            Connector<?> connector =
                    transfer.sends() ? passage.to().connectors().getFirst() : passage.from().connectors().getFirst();
            passage.announce(new Identity(connector.nextTransfer(),
                    OperationSignature.pack(OperationSignature.SEND_RECEIVE, transfer.type(), ReduceOp.SUM, 0),
                    transfer.count()), transfer.regions());
        }
    }

    private Passage send(int peer, long bytes, int part, int parts, boolean inPlace) {
        ChunkShape shape = shape(bytes, inPlace);
        return new Passage(Chain.spread(share(bytes, part, parts, shape), true, false, true), shape, Hops.none(),
                connectors.send(peer, part, Connections.POINT_TO_POINT).alone());
    }

    private Passage receive(int peer, long bytes, int part, int parts, boolean inPlace) {
        ChunkShape shape = shape(bytes, inPlace);
        return new Passage(Chain.spread(share(bytes, part, parts, shape), false, true, false), shape,
                connectors.receive(peer, part, Connections.POINT_TO_POINT).alone(), Hops.none());
    }

    private ChunkShape shape(long bytes, boolean inPlace) {
        return inPlace ? ChunkShape.ONE_STEP.inUserMemory(options.chunkBytes())
                : ChunkShape.ONE_STEP.in(options.protocol(bytes));
    }

    private ChannelPart share(long bytes, int part, int parts, ChunkShape shape) {
        long begin = PointToPointWork.partBegin(parts, part, bytes);
        return ChannelPart.of(begin, PointToPointWork.partBegin(parts, part + 1, bytes) - begin, 1,
                options.chunkBytes(shape.protocol(), shape.chunkBytes(layout)));
    }

    /** The block that runs a channel's part of an item, on the device. */
    Block block(PointToPointWork work, int channel, KernelMemory memory) {
        int part = work.part(channel);
        boolean sends = work.sendRank() != NOBODY && part < work.sendChannels();
        boolean receives = work.receiveRank() != NOBODY && part < work.receiveChannels();
        MemorySegment from = sends ? memory.at(work.sendAddress(), work.sendBytes()) : null;
        MemorySegment to = receives ? memory.at(work.receiveAddress(), work.receiveBytes()) : null;
        if (work.sendRank() == rank) {
            return new LocalBlock(BlockMemory.copied(from, to), work.sendBytes());
        }
        Block send = sends
                ? send(work.sendRank(), work.sendBytes(), part, work.sendChannels(),
                        (work.flags() & PointToPointWork.SEND_REGISTERED) != 0).block(BlockMemory.copied(from, from))
                : null;
        Block receive = receives
                ? receive(work.receiveRank(), work.receiveBytes(), part, work.receiveChannels(),
                        (work.flags() & PointToPointWork.RECEIVE_REGISTERED) != 0).block(BlockMemory.copied(to, to))
                : null;
        return send == null ? receive : receive == null ? send : new BlockPair(send, receive);
    }
}
