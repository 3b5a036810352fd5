package com.example.millrace.experts;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.millrace.MillraceException;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.gin.GinDeviceCommunicators;
import org.millrace.device.gin.GinTeam;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.LsaMemory;
import org.millrace.device.gin.RemoteAction;
import org.millrace.device.gin.WorldBarrier;
import org.millrace.gin.Window;

/**
 * One rank's part of an exchange with low latency, as in DeepEP. Every token travels directly to each destination rank,
 * into a place of its own. This rank stores the token there if the destination is a near rank, and puts it otherwise.
 * After the last token follows the number of tokens. The experts' results return in the same way.
 */
public final class LowLatencyExchange implements TokenExchange {

    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

    private final HostedPlan hosted;
    private final ExpertPlan plan;
    private final LowLatencyLayout layout;
    private final GinTeam world;
    private final int firstNear;
    private final Window window;
    private final MemorySegment memory;
    private final HostGin[] gins;
    private final LsaMemory near;
    private final WorldBarrier barrier;

    /**
     * Creates an exchange of all ranks. Collective: all ranks create it.
     *
     * @param communicators device communicators with at least {@link LowLatencyLayout#signals()} free signals, and with
     *                      as many near ranks as the plan has on a host
     */
    public LowLatencyExchange(GinDeviceCommunicators communicators, HostedPlan hosted, Window window,
            MemorySegment memory) {
        this.hosted = hosted;
        this.plan = hosted.plan();
        GinDeviceCommunicator communicator = communicators.first();
        this.layout = new LowLatencyLayout(hosted, communicators.signalsBase(new LowLatencyLayout(hosted).signals()));
        this.world = communicator.world();
        this.firstNear = communicator.rank() - communicator.lsa().rank();
        this.window = window;
        this.memory = memory;
        gins = communicators.hold();
        near = LsaMemory.connect(gins[0], window, memory, layout.addresses(), layout.addressSignal());
        barrier = new WorldBarrier(gins[0], near, layout.barrier(), 0);
    }

    /** Returns the context for operations to a rank. That rank waits for its signal in the same context. */
    private HostGin ginTo(int rank) {
        return gins[rank % gins.length];
    }

    private boolean isNear(int rank) {
        return rank >= firstNear && rank < firstNear + hosted.perHost();
    }

    @Override
    public void close() {
        near.close();
    }

    @Override
    public long run(long batch) {
        GinDeviceCommunicators.quiet(gins); // the puts of the previous batch have read their sources
        barrier.sync(); // all ranks have used the tokens of the previous batch
        dispatch(batch);
        ExpertTokens experts = new ExpertTokens(plan, world.rank(), batch);
        CombinedTokens combined = new CombinedTokens(plan, world.rank(), batch);
        for (int i = 0; i < plan.ranks(); i++) {
            answer((world.rank() + i) % plan.ranks(), batch, experts);
        }
        experts.verify();
        for (int rank = 0; rank < plan.ranks(); rank++) {
            long count = await(LowLatencyLayout.COMBINE, rank, batch);
            for (long index = 0; index < count; index++) {
                long at = layout.received(LowLatencyLayout.COMBINE, rank, index);
                combined.add((int) memory.get(LONG, at), memory, at + Long.BYTES);
            }
        }
        combined.verify();
        return experts.count();
    }

    private void dispatch(long batch) {
        long[] counts = new long[plan.ranks()];
        for (int token = 0; token < plan.tokens(); token++) {
            long at = layout.own(token);
            memory.set(LONG, at, token);
            for (int word = 0; word < plan.words(); word++) {
                memory.set(LONG, at + (1L + word) * Long.BYTES, plan.word(batch, world.rank(), token, word));
            }
            long destinations = plan.destinations(batch, world.rank(), token);
            for (int rank = 0; rank < plan.ranks(); rank++) {
                if ((destinations >>> rank & 1) != 0) {
                    send(rank, layout.received(LowLatencyLayout.DISPATCH, world.rank(), counts[rank]++), at, 1);
                }
            }
        }
        for (int rank = 0; rank < plan.ranks(); rank++) {
            announce(LowLatencyLayout.DISPATCH, rank, counts[rank], batch);
        }
    }

    /** Takes the tokens of a rank, and returns the experts' results to it. */
    private void answer(int rank, long batch, ExpertTokens experts) {
        long count = await(LowLatencyLayout.DISPATCH, rank, batch);
        for (long index = 0; index < count; index++) {
            long from = layout.received(LowLatencyLayout.DISPATCH, rank, index);
            long to = layout.returned(rank, index);
            int token = (int) memory.get(LONG, from);
            memory.set(LONG, to, token);
            MemorySegment.copy(experts.take(rank, token, memory, from + Long.BYTES), 0, memory, LONG, to + Long.BYTES,
                    plan.words());
        }
        if (count > 0) {
            send(rank, layout.received(LowLatencyLayout.COMBINE, world.rank(), 0), layout.returned(rank, 0), count);
        }
        announce(LowLatencyLayout.COMBINE, rank, count, batch);
    }

    /** Sends consecutive tokens to a rank. */
    private void send(int rank, long to, long from, long count) {
        long bytes = count * layout.tokenBytes();
        if (isNear(rank)) {
            MemorySegment.copy(memory, from, near.of(rank - firstNear), to, bytes);
        } else {
            ginTo(rank).put(world, rank, window, to, window, from, bytes);
        }
    }

    /** Sends the number of tokens to a rank, after all of the tokens. */
    private void announce(int phase, int rank, long count, long batch) {
        if (isNear(rank)) {
            near.release(rank - firstNear, layout.count(phase, near.self()), batch + 1 << Integer.SIZE | count);
        } else {
            ginTo(rank).signal(world, rank, RemoteAction.add(layout.countSignal(phase, world.rank()), count + 1));
        }
    }

    /** Waits for a rank's number of tokens and returns it. */
    private long await(int phase, int rank, long batch) {
        long count;
        if (isNear(rank)) {
            long cell = layout.count(phase, rank - firstNear);
            gins[0].waitUntil("the tokens of rank " + rank + ", which is near it",
                    () -> near.acquire(near.self(), cell) >>> Integer.SIZE == batch + 1);
            count = near.acquire(near.self(), cell) & (1L << Integer.SIZE) - 1;
        } else {
            count = ginTo(world.rank()).waitSignalFollowShadow(layout.countSignal(phase, rank), 1) - 1;
        }
        if (count < 0 || count > plan.tokens()) {
            throw new MillraceException("rank " + rank + " announces " + count + " of its " + plan.tokens()
                    + " tokens to rank " + world.rank());
        }
        return count;
    }
}
