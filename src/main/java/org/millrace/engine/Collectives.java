package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.util.List;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.abi.CollectiveWork;
import org.millrace.abi.Protocol;
import org.millrace.device.arithmetic.ElementKernels;
import org.millrace.device.function.Block;
import org.millrace.device.function.BlockPair;
import org.millrace.device.function.FunctionNumber;
import org.millrace.device.function.FunctionNumber.Kind;
import org.millrace.device.function.LocalBlock;
import org.millrace.device.primitives.BlockMemory;
import org.millrace.device.work.KernelMemory;
import org.millrace.engine.connect.Connectors;
import org.millrace.proxy.OperationSignature;

/**
 * Collectives as work: what the host says about one, what it announces to the proxies, and the blocks that the device
 * makes of it.
 */
final class Collectives {

    private final int rank;
    private final int ranks;
    private final Connectors connectors;
    private final EngineOptions options;
    private final Routes routes;
    private final Registrations registrations;
    /** Null where no network reduces. */
    private final CollNet collNet;
    /** Null in a group of one. */
    private final Rings rings;
    /** Null in a group of one. */
    private final Trees trees;
    /** Collectives announced so far: all ranks count alike. Guarded by whoever issues. */
    private long announced;

    Collectives(int rank, int ranks, Members members, Routes routes) {
        this.routes = routes;
        this.rank = rank;
        this.ranks = ranks;
        this.connectors = members.connectors();
        this.options = members.options();
        this.registrations = members.registrations();
        this.collNet = members.collNet();
        this.rings = ranks == 1 ? null : new Rings(rank, ranks, connectors, options);
        this.trees = ranks == 1 ? null : new Trees(rank, ranks, connectors, options);
    }

    /**
     * Plans a collective.
     *
     * @param signature says the function, the type and the operator
     * @param count     as the program said; of each rank
     * @param send      null where it is not looked at
     * @param receive   null where it is not looked at
     * @param root      this rank, where there is none
     * @throws IllegalArgumentException if the operator has no meaning for the type
     */
    PlannedCollective plan(long signature, long count, DataType type, ReduceOp op, MemorySegment send,
            MemorySegment receive, int root) {
        int ncclFunction = OperationSignature.kind(signature);
        Kind kind = ranks == 1 || count == 0 ? Kind.LOCAL : kind(ncclFunction, count * type.bytes(), type, op);
        boolean copies = ncclFunction == OperationSignature.BROADCAST || ncclFunction == OperationSignature.ALL_GATHER;
        if (!copies) {
            ElementKernels.of(type, op, ranks); // refuses what makes no sense, before anything is done
        }
        DataType moved = copies ? DataType.UINT8 : type;
        long elements = copies ? count * type.bytes() : count;
        int parts = rings == null ? 1 : rings.parts(kind);
        long hopBytes = count * type.bytes() / parts;
        Protocol protocol = options.protocols().of(ncclFunction, hopBytes);
        CollectiveWork work = CollectiveWork.of(MemorySegment.ofArray(new long[CollectiveWork.BYTES / Long.BYTES]));
        Shares.spread(work, elements, moved.bytes(), parts, channels(kind));
        UserRegions regions = kind == Kind.LOCAL ? UserRegions.NONE
                : rings.regions(kind, protocol, receive, elements, hopBytes, root, registrations);
        work.flags(CollectiveWork.PROFILED | (regions == UserRegions.NONE ? 0 : CollectiveWork.NETWORK_REGISTERED));
        work.root(root);
        work.sendBuffer(send == null ? 0 : send.address());
        work.receiveBuffer(receive == null ? 0 : receive.address());
        work.reductionArgument(FunctionNumber.argument(op));
        return new PlannedCollective(this, FunctionNumber.pack(kind, protocol, moved, copies ? ReduceOp.SUM : op), work,
                signature, count, send, receive, regions);
    }

    private Kind kind(int ncclFunction, long bytes, DataType type, ReduceOp op) {
        return switch (ncclFunction) {
            case OperationSignature.BROADCAST -> Kind.BROADCAST;
            case OperationSignature.REDUCE -> Kind.REDUCE;
            case OperationSignature.ALL_GATHER -> Kind.ALL_GATHER;
            case OperationSignature.REDUCE_SCATTER -> Kind.REDUCE_SCATTER;
            default -> collNet != null && collNet.takes(bytes, type, op) ? Kind.NETWORK_ALL_REDUCE
                    : options.algorithms().prefersTree(ranks, bytes) ? Kind.TREE_ALL_REDUCE : Kind.RING_ALL_REDUCE;
        };
    }

    /** The most channels that one takes. */
    int channels() {
        return trees == null ? options.channels() : trees.channels();
    }

    private int channels(Kind kind) {
        return switch (kind) {
            case LOCAL, NETWORK_ALL_REDUCE -> 1;
            case TREE_ALL_REDUCE -> trees.channels();
            case RING_ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, TRANSFER -> options.channels();
        };
    }

    /** Tells the proxies of the next run of a collective, and those that have no part in it. */
    Identity announce(PlannedCollective planned) {
        Identity identity = new Identity(announced++, planned.signature(), planned.count());
        int function = planned.function();
        CollectiveWork work = planned.work();
        switch (FunctionNumber.kind(function)) {
            case LOCAL -> {}
            case NETWORK_ALL_REDUCE -> {
                routes.collNet(identity);
                collNet.announce(work.count() * FunctionNumber.type(function).bytes(), FunctionNumber.type(function),
                        FunctionNumber.op(function, 0));
            }
            case TREE_ALL_REDUCE -> {
                routes.tree(identity);
                for (int channel = 0; channel <= work.channelHigh(); channel++) {
                    trees.passages(function, work, channel)
                            .forEach(passage -> passage.announce(identity, UserRegions.NONE));
                }
            }
            case RING_ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, TRANSFER -> {
                routes.ring(identity);
                for (int channel = 0; channel <= work.channelHigh(); channel++) {
                    rings.passage(function, work, channel).announce(identity, planned.regions());
                }
            }
        }
        connectors.announceWithout(identity.without());
        return identity;
    }

    /** The block that runs a channel's part of an item, on the device. */
    Block block(int function, CollectiveWork work, int channel, KernelMemory lookup) {
        Kind kind = FunctionNumber.kind(function);
        BlockMemory memory = memory(kind, function, work, lookup);
        return switch (kind) {
            case LOCAL -> new LocalBlock(memory, work.count());
            case NETWORK_ALL_REDUCE -> collNet.block(memory.input(), memory.output(),
                    work.count() * memory.elementBytes(), memory.elementBytes());
            case TREE_ALL_REDUCE -> {
                List<Passage> passages = trees.passages(function, work, channel);
                Block up = passages.getFirst().block(memory);
                yield passages.size() == 1 ? up : new BlockPair(up, passages.getLast().block(memory));
            }
            case RING_ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, REDUCE, TRANSFER ->
                rings.passage(function, work, channel).block(memory);
        };
    }

    private BlockMemory memory(Kind kind, int function, CollectiveWork work, KernelMemory lookup) {
        DataType type = FunctionNumber.type(function);
        long bytes = work.count() * type.bytes();
        MemorySegment input = lookup.at(work.sendBuffer(), kind == Kind.REDUCE_SCATTER ? ranks * bytes : bytes);
        MemorySegment output = lookup.at(work.receiveBuffer(), kind == Kind.ALL_GATHER ? ranks * bytes : bytes);
        boolean copies = kind == Kind.ALL_GATHER || kind == Kind.BROADCAST;
        return copies ? BlockMemory.copied(input, output)
                : BlockMemory.reduced(input, output, type, FunctionNumber.op(function, work.reductionArgument()),
                        ranks);
    }
}
