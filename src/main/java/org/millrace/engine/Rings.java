package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.millrace.abi.CollectiveWork;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.device.channel.ReceivePort;
import org.millrace.device.channel.SendPort;
import org.millrace.device.function.Chain;
import org.millrace.device.function.ChannelPart;
import org.millrace.device.function.ChunkSchedule;
import org.millrace.device.function.FunctionNumber;
import org.millrace.device.function.RingAllGather;
import org.millrace.device.function.RingAllReduce;
import org.millrace.device.function.RingReduceScatter;
import org.millrace.device.primitives.ChunkShape;
import org.millrace.engine.connect.Connectors;
import org.millrace.engine.connect.Hops;
import org.millrace.transport.Connections;

/** Collectives around rings through all ranks, in the order of their numbers: one ring for each channel. */
final class Rings {

    private final int rank;
    private final int ranks;
    private final ConnectionLayout layout;
    private final List<Hops<ReceivePort>> previous = new ArrayList<>();
    private final List<Hops<SendPort>> next = new ArrayList<>();

    Rings(int rank, int ranks, Connectors connectors, EngineOptions options) {
        this.rank = rank;
        this.ranks = ranks;
        this.layout = options.layout();
        for (int channel = 0; channel < options.channels(); channel++) {
            next.add(connectors.send((rank + 1) % ranks, channel, Connections.COLLECTIVE).alone());
            previous.add(connectors.receive((rank + ranks - 1) % ranks, channel, Connections.COLLECTIVE).alone());
        }
    }

    /** Chunks of a round. */
    int parts(FunctionNumber.Kind kind) {
        return kind == FunctionNumber.Kind.RING_ALL_REDUCE ? ranks : 1;
    }

    Passage passage(int function, CollectiveWork work, int channel) {
        FunctionNumber.Kind kind = FunctionNumber.kind(function);
        boolean flows = kind == FunctionNumber.Kind.BROADCAST || kind == FunctionNumber.Kind.REDUCE;
        ChunkShape shape = (flows ? ChunkShape.ONE_STEP : ChunkShape.TWO_SLICES).in(FunctionNumber.protocol(function));
        if ((work.flags() & CollectiveWork.NETWORK_REGISTERED) != 0) {
            shape = shape.inUserMemory(shape.chunkBytes(layout));
        }
        ChannelPart share = ChannelPart.of(work.firstElement(channel), work.elements(channel),
                FunctionNumber.type(function).bytes(), shape.chunkBytes(layout));
        ChunkSchedule algorithm = algorithm(kind, work, share);
        return new Passage(algorithm, shape, algorithm.chunksReceived() > 0 ? previous.get(channel) : Hops.none(),
                algorithm.chunksSent() > 0 ? next.get(channel) : Hops.none());
    }

    /**
     * The memory in which elements stay that this rank sends, or only passes on.
     *
     * @param output   registered, perhaps; then that is what is used in place
     * @param bytes    of each rank
     * @param hopBytes what one hop carries
     */
    UserRegions regions(FunctionNumber.Kind kind, Protocol protocol, MemorySegment output, long bytes, long hopBytes,
            int root, Registrations registrations) {
        int before = (rank + ranks - 1) % ranks;
        int behind = (rank + 1) % ranks;
        return switch (kind) {
            case ALL_GATHER -> registrations.of(output, bytes * ranks, protocol, before, behind)
                    .or(() -> registrations.ofAny(hopBytes, protocol, before, behind));
            case BROADCAST -> {
                int from = rank == root ? Registrations.NOBODY : before;
                int to = behind == root ? Registrations.NOBODY : behind;
                yield registrations.of(output, bytes, protocol, from, to)
                        .or(() -> registrations.ofAny(hopBytes, protocol, from, to));
            }
            case RING_ALL_REDUCE -> registrations.ofAny(hopBytes, protocol, before, behind);
            default -> UserRegions.NONE;
        };
    }

    private ChunkSchedule algorithm(FunctionNumber.Kind kind, CollectiveWork work, ChannelPart share) {
        int root = work.root();
        return switch (kind) {
            case RING_ALL_REDUCE -> new RingAllReduce(share, rank, ranks);
            case ALL_GATHER -> new RingAllGather(share, rank, ranks, work.count(),
                    work.sendBuffer() == work.receiveBuffer() + rank * work.count());
            case REDUCE_SCATTER -> new RingReduceScatter(share, rank, ranks, work.count());
            case BROADCAST -> Chain.spread(share, rank == root,
                    rank != root || work.sendBuffer() != work.receiveBuffer(), (rank + 1) % ranks != root);
            case REDUCE -> Chain.combine(share, rank != (root + 1) % ranks, rank == root, rank != root);
            case LOCAL, TREE_ALL_REDUCE, NETWORK_ALL_REDUCE, TRANSFER ->
                throw new IllegalStateException(kind + " does not go around a ring");
        };
    }
}
