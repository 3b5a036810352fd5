package org.millrace.device;

import java.util.List;
import org.millrace.ReduceOp;
import org.millrace.abi.KernelChannel;
import org.millrace.abi.kernel.CollectiveWork;

/** A collective around the channel's ring. Each rank receives from the previous rank and sends to the next rank. */
abstract class RingFunction extends CollectiveFunction {

    private final ChunkShape inSlots;

    /** @param inSlots shape of the chunks of protocol Simple if they pass through slots */
    RingFunction(ChunkShape inSlots) {
        this.inSlots = inSlots;
    }

    abstract ChunkSchedule schedule(int number, ChannelPart part, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel);

    int parts(int number, CollectiveWork work, int ranks) {
        return parts(ranks);
    }

    @Override
    final ChunkShape shape(int number, CollectiveWork work, DeviceCommunicator communicator, DeviceChannel channel) {
        int parts = parts(number, work, communicator.ranks());
        long chunkBytes = (work.elements(channel.number()) + parts - 1) / parts * FunctionNumber.type(number).bytes();
        ChunkShape shape = inSlots.in(FunctionNumber.protocol(number)).of(chunkBytes, communicator.layout());
        if ((work.flags() & CollectiveWork.NETWORK_REGISTERED) != 0) {
            shape = shape.inUserMemory(shape.chunkBytes(communicator.layout()));
        }
        return shape;
    }

    @Override
    public final List<ChannelTask> tasks(int number, CollectiveWork work, DeviceCommunicator communicator,
            DeviceChannel channel) {
        ChunkShape shape = shape(number, work, communicator, channel);
        ChunkSchedule schedule =
                schedule(number, part(number, work, communicator, channel, shape), work, communicator, channel);
        return List.of(ChannelTask.between(channel.view().previous(), schedule, shape, KernelChannel.COLLECTIVE,
                channel.view().next()));
    }

    /** A broadcast around the ring, from the root to the last rank, which precedes the root in the ring. */
    static final class RingBroadcast extends RingFunction {

        RingBroadcast() {
            super(ChunkShape.ONE_STEP);
        }

        @Override
        public InPlace inPlace() {
            return InPlace.OUTPUT;
        }

        @Override
        ChunkSchedule schedule(int number, ChannelPart part, CollectiveWork work, DeviceCommunicator communicator,
                DeviceChannel channel) {
            boolean begins = communicator.rank() == work.root();
            return ChunkSchedule.spread(part, begins, !begins || work.sendBuffer() != work.receiveBuffer(),
                    channel.view().next() != work.root());
        }
    }

    /** A reduction around the ring, from the rank that follows the root to the root. */
    static final class RingReduce extends RingFunction {

        RingReduce() {
            super(ChunkShape.ONE_STEP);
        }

        @Override
        ChunkSchedule schedule(int number, ChannelPart part, CollectiveWork work, DeviceCommunicator communicator,
                DeviceChannel channel) {
            boolean last = communicator.rank() == work.root();
            return ChunkSchedule.combine(part, channel.view().previous() != work.root(), last, !last);
        }
    }

    /**
     * An all-reduce around a ring of n ranks, in rounds of one chunk per rank. In a round every chunk travels 2(n - 1)
     * hops. On the first n - 1 hops each rank adds its own elements. Then one rank has the sum. On the other n - 1 hops
     * the sum is passed to all other ranks. The last line of the table shows the chunk that the rank at place r
     * handles:
     *
     * <pre>
     *   primitive         0     1 .. n-2               n-1                         n .. 2n-3             2n-2
     *                     send  receive, reduce, send  receive, reduce, keep, send receive, keep, send   receive, keep
     *   chunk (place r)   r-1   r-2 .. r-n+1           r                           r-1 .. r-n+2          r+1
     * </pre>
     *
     * If the ring has two ranks and the operation is small, the ranks {@linkplain #exchanges exchange} their elements
     * instead. Each rank sends all its elements to the other rank and adds the received elements to its own elements.
     * Both algorithms send the same number of bytes, but the exchange needs one hop, and the ring needs two.
     */
    static final class RingAllReduce extends RingFunction {

        /**
         * Maximum size of an exchange in bytes. The table shows the time of an exchange divided by the time of two hops
         * around the ring. The first number of a pair is for an operation out of place, and the second for an operation
         * in place. Measured with two processes on the two cores of a busy machine (JDK 25, medians of two alternating
         * rounds): <pre>
         *   bytes    TCP           shared memory
         *   128      0.55  0.60    1.09  0.79
         *   1024     0.58  0.65    0.99  0.92
         *   8192     0.64  0.63    0.78  1.44
         *   32768    1.18  1.09
         *   65536    1.12  0.87    1.04  1.02
         *   131072   1.78  1.64
         * </pre>
         */
        private static final long MAX_EXCHANGED_BYTES = 16 << 10;

        RingAllReduce() {
            super(ChunkShape.FOUR_SLICES);
        }

        @Override
        public int parts(int ranks) {
            return ranks;
        }

        @Override
        public InPlace inPlace() {
            return InPlace.IF_REACHED;
        }

        @Override
        int parts(int number, CollectiveWork work, int ranks) {
            return exchanges(number, work, ranks) ? 1 : ranks;
        }

        @Override
        public boolean staysInSlots(int number, CollectiveWork work, int ranks) {
            return exchanges(number, work, ranks);
        }

        /**
         * Returns whether two ranks exchange their elements, so that both ranks compute the whole result. Returns false
         * if the operator first changes each rank's own elements, because the two ranks would then compute different
         * bits. The result does not depend on this rank's registered memory, because the peer does not know of it.
         */
        private static boolean exchanges(int number, CollectiveWork work, int ranks) {
            return ranks == 2 && work.count() * FunctionNumber.type(number).bytes() <= MAX_EXCHANGED_BYTES
                    && FunctionNumber.op(number, 0) instanceof ReduceOp.BuiltIn op && op != ReduceOp.BuiltIn.AVG;
        }

        @Override
        BlockMemory memory(int number, CollectiveWork work, int ranks, KernelMemory lookup) {
            BlockMemory memory = super.memory(number, work, ranks, lookup);
            return exchanges(number, work, ranks)
                    ? memory.reducedAlike(FunctionNumber.type(number), (ReduceOp.BuiltIn) FunctionNumber.op(number, 0))
                    : memory;
        }

        @Override
        ChunkSchedule schedule(int number, ChannelPart part, CollectiveWork work, DeviceCommunicator communicator,
                DeviceChannel channel) {
            return exchanges(number, work, communicator.ranks()) ? exchange(part)
                    : schedule(part, channel.view().index(), communicator.ranks());
        }

        private static ChunkSchedule exchange(ChannelPart part) {
            return new ChunkSchedule(part, 1, 2, 1, 1) {
                @Override
                void choose(int primitive) {
                    set(primitive == 0 ? Primitives.INPUT | Primitives.SEND
                            : Primitives.RECEIVE | Primitives.INPUT | Primitives.LAST | Primitives.OUTPUT, 0, 0, 0);
                }
            };
        }

        static ChunkSchedule schedule(ChannelPart part, int place, int ranks) {
            return new ChunkSchedule(part, ranks, 2 * ranks - 1, 2 * (ranks - 1), 2 * (ranks - 1)) {
                @Override
                void choose(int primitive) {
                    // The first primitive only sends, and the last primitive only stores the result. The sum is
                    // complete at the middle primitive (index `ranks - 1`).
                    int kind = (primitive > 0 ? Primitives.RECEIVE : 0) | (primitive < ranks ? Primitives.INPUT : 0)
                            | (primitive == ranks - 1 ? Primitives.LAST : 0)
                            | (primitive >= ranks - 1 ? Primitives.OUTPUT : 0)
                            | (primitive < 2 * ranks - 2 ? Primitives.SEND : 0);
                    set(kind, Math.floorMod(place - 1 - primitive, ranks), 0, 0);
                }
            };
        }
    }

    /**
     * An all-gather around a ring of n ranks. In a round each rank sends one chunk of its own and passes on chunks of
     * other ranks. Each chunk travels n - 1 hops. The last line of the table shows the rank that owns the chunk:
     *
     * <pre>
     *   primitive          0           1 .. n-2             n-1
     *                      keep, send  receive, keep, send  receive, keep
     *   whose (on rank r)  r           r-1 .. r-n+2         r+1
     * </pre>
     */
    static final class RingAllGather extends RingFunction {

        RingAllGather() {
            super(ChunkShape.FOUR_SLICES);
        }

        @Override
        public InPlace inPlace() {
            return InPlace.OUTPUT;
        }

        @Override
        ChunkSchedule schedule(int number, ChannelPart part, CollectiveWork work, DeviceCommunicator communicator,
                DeviceChannel channel) {
            return schedule(part, channel, communicator.ranks(), work.count(),
                    work.sendBuffer() == work.receiveBuffer() + communicator.rank() * work.count());
        }

        /**
         * @param perRank number of elements of each rank; the elements of rank i begin at index {@code i * perRank} of
         *                the output
         * @param inPlace whether the output already contains this rank's elements
         */
        static ChunkSchedule schedule(ChannelPart part, DeviceChannel channel, int ranks, long perRank,
                boolean inPlace) {
            int first = Primitives.INPUT | Primitives.SEND | (inPlace ? 0 : Primitives.OUTPUT);
            return new ChunkSchedule(part, 1, ranks, ranks - 1, ranks - 1) {
                @Override
                void choose(int primitive) {
                    int kind = primitive == 0 ? first
                            : Primitives.RECEIVE | Primitives.OUTPUT | (primitive < ranks - 1 ? Primitives.SEND : 0);
                    set(kind, 0, 0, channel.ringRank((ranks - primitive) % ranks) * perRank);
                }
            };
        }
    }

    /**
     * A reduce-scatter around a ring of n ranks. In a round one chunk for each rank travels n - 1 hops to that rank.
     * Each rank on the way adds its own elements. The last line of the table shows the rank that the chunk is for:
     *
     * <pre>
     *   primitive          0     1 .. n-2               n-1
     *                      send  receive, reduce, send  receive, reduce, keep
     *   whose (on rank r)  r-1   r-2 .. r-n+1           r
     * </pre>
     */
    static final class RingReduceScatter extends RingFunction {

        RingReduceScatter() {
            super(ChunkShape.FOUR_SLICES);
        }

        @Override
        ChunkSchedule schedule(int number, ChannelPart part, CollectiveWork work, DeviceCommunicator communicator,
                DeviceChannel channel) {
            return schedule(part, channel, communicator.ranks(), work.count());
        }

        /**
         * @param perRank number of elements of each rank's result; the elements for rank i begin at index
         *                {@code i * perRank} of the input
         */
        static ChunkSchedule schedule(ChannelPart part, DeviceChannel channel, int ranks, long perRank) {
            return new ChunkSchedule(part, 1, ranks, ranks - 1, ranks - 1) {
                @Override
                void choose(int primitive) {
                    int kind = Primitives.INPUT | (primitive > 0 ? Primitives.RECEIVE : 0)
                            | (primitive < ranks - 1 ? Primitives.SEND : Primitives.OUTPUT | Primitives.LAST);
                    set(kind, 0, channel.ringRank((2 * ranks - 1 - primitive) % ranks) * perRank, 0);
                }
            };
        }
    }
}
