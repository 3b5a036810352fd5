package com.example.millrace.experts;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.gin.GinDeviceCommunicators;
import org.millrace.device.gin.GinTeam;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.LsaMemory;
import org.millrace.device.gin.RemoteAction;
import org.millrace.device.gin.WorldBarrier;
import org.millrace.gin.Window;

/**
 * One rank's part of an exchange in two levels, as DeepEP's hybrid mode. A token travels once to each destination host,
 * to the rank of the sender's rail. That rank stores the token in the windows of the destination ranks on its host. The
 * experts' results return to that rank, which sends back one sum.
 *
 * <pre>
 *   dispatch   ChannelSender  ──put──→  ChannelReceiver → ForwardedTokens  ──store──→  NearBlock → ExpertTokens
 *   combine    ChannelReceiver  ←──put──  ChannelSender ← ForwardedTokens  ←──store──  NearBlock ← results of experts
 * </pre>
 */
public final class HybridExchange implements TokenExchange {

    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT;
    private static final long HEADER_BYTES = HybridLayout.HEADER_WORDS * Long.BYTES;

    private final GinDeviceCommunicator communicator;
    private final HostedPlan hosted;
    private final ExpertPlan plan;
    private final HybridLayout layout;
    private final GinTeam rail;
    private final Window window;
    private final MemorySegment memory;
    private final HostGin[] gins;
    private final LsaMemory near;
    private final WorldBarrier barrier;
    private final LsaRing[] rings;
    /**
     * Numbers of tokens in a batch, for each channel. The numbers are of tokens to each host, from each host, to each
     * near rank for forwarding, and from each near rank.
     */
    private final long[][] toHosts;
    private final long[][] fromHosts;
    private final long[][] forwarded;
    private final long[][] expected;
    /** Number of tokens that each expert receives. */
    private final long[] expectedByExpert = new long[HostedPlan.EXPERTS];

    /**
     * Creates an exchange of all ranks. Collective: all ranks create it.
     *
     * @param communicators device communicators with at least {@link HybridLayout#signals()} free signals, and with as
     *                      many near ranks as the plan has on a host
     */
    public HybridExchange(GinDeviceCommunicators communicators, HostedPlan hosted, Window window,
            MemorySegment memory) {
        this.communicator = communicators.first();
        this.hosted = hosted;
        this.plan = hosted.plan();
        this.rail = communicator.rail();
        this.window = window;
        this.memory = memory;
        if (communicator.lsa().ranks() != hosted.perHost() || communicator.world().ranks() != plan.ranks()) {
            throw new IllegalArgumentException(
                    "the plan is for " + plan.ranks() + " ranks, " + hosted.perHost() + " a host; the communicator has "
                            + communicator.world().ranks() + ", " + communicator.lsa().ranks() + " near each other");
        }
        layout = new HybridLayout(hosted, communicators.signalsBase(new HybridLayout(hosted).signals()));
        gins = communicators.hold();
        near = LsaMemory.connect(gins[0], window, memory, layout.addresses(), layout.addressSignal());
        barrier = new WorldBarrier(gins[0], near, layout.barrier(), 0);
        rings = new LsaRing[plan.channels()];
        Arrays.setAll(rings, channel -> new LsaRing(near, layout, channel));
        toHosts = new long[plan.channels()][hosted.hosts()];
        fromHosts = new long[plan.channels()][hosted.hosts()];
        forwarded = new long[plan.channels()][hosted.perHost()];
        expected = new long[plan.channels()][hosted.perHost()];
    }

    private HostGin gin(int channel) {
        return gins[channel % gins.length];
    }

    @Override
    public void close() {
        near.close();
    }

    @Override
    public long run(long batch) {
        writeMetadata(batch);
        reset();
        exchangeMetadata();
        ForwardedTokens[] passed = new ForwardedTokens[plan.channels()];
        Arrays.setAll(passed, channel -> new ForwardedTokens(hosted, rings[channel], channel));
        ExpertTokens experts = new ExpertTokens(plan, communicator.rank(), batch);
        List<List<Queue<long[]>>> made = dispatch(batch, passed, experts);
        experts.verify();
        experts.verifyCounts(hosted, expectedByExpert);
        reset();
        CombinedTokens combined = new CombinedTokens(plan, communicator.rank(), batch);
        combine(batch, passed, made, combined);
        combined.verify();
        return experts.count();
    }

    /**
     * Writes the numbers of this rank's tokens by destination and channel. Each peer receives its numbers before a
     * token.
     */
    private void writeMetadata(long batch) {
        for (int host = 0; host < hosted.hosts(); host++) {
            long counts = layout.countsTo(host);
            memory.asSlice(counts, layout.countsBytes()).fill((byte) 0);
            for (int channel = 0; channel < plan.channels(); channel++) {
                long metadata = layout.metadataTo(host, channel);
                for (int rank = 0; rank <= hosted.perHost(); rank++) {
                    memory.set(INT, layout.first(metadata, rank), memory.get(INT, layout.rankCount(counts, rank)));
                }
                for (int token = plan.firstToken(channel); token < plan.firstToken(channel + 1); token++) {
                    count(batch, token, host);
                }
                for (int rank = 0; rank <= hosted.perHost(); rank++) {
                    memory.set(INT, layout.last(metadata, rank), memory.get(INT, layout.rankCount(counts, rank)));
                }
            }
        }
    }

    private void count(long batch, int token, int host) {
        long counts = layout.countsTo(host);
        long ranks = hosted.near(plan.destinations(batch, communicator.rank(), token), host);
        for (int rank = 0; rank < hosted.perHost(); rank++) {
            if ((ranks >>> rank & 1) != 0) {
                int expert = hosted.expert(batch, communicator.rank(), token, host * hosted.perHost() + rank);
                add(layout.rankCount(counts, rank), 1);
                add(layout.expertCount(counts, rank, expert), 1);
            }
        }
        add(layout.rankCount(counts, hosted.perHost()), ranks == 0 ? 0 : 1);
    }

    private void add(long at, int count) {
        memory.set(INT, at, memory.get(INT, at) + count);
    }

    /** Resets heads and tails of the rails to 0 on all ranks. No updates of them are in flight. */
    private void reset() {
        GinDeviceCommunicators.quiet(gins);
        barrier.sync();
        for (int channel = 0; channel < plan.channels(); channel++) {
            for (int host = 0; host < hosted.hosts(); host++) {
                gin(channel).resetSignal(layout.rails().headSignal(channel, host));
                gin(channel).resetSignal(layout.rails().tailSignal(channel, host));
            }
        }
        barrier.sync();
    }

    /**
     * Exchanges the counts and the metadata. Counts use the context of their destination host, and a channel's metadata
     * the channel's context.
     */
    private void exchangeMetadata() {
        int signal = layout.rails().countsSignal();
        RemoteAction here = RemoteAction.increment(signal);
        for (int host = 0; host < hosted.hosts(); host++) {
            gin(host).put(rail, host, window, layout.countsFrom(rail.rank()), window, layout.countsTo(host),
                    layout.countsBytes(), here, -1);
            for (int channel = 0; channel < plan.channels(); channel++) {
                gin(channel).put(rail, host, window, layout.metadataFrom(rail.rank(), channel), window,
                        layout.metadataTo(host, channel), layout.metadataBytes(), here, -1);
            }
        }
        gin(rail.rank()).increaseSignalShadow(signal, hosted.hosts());
        for (int channel = 0; channel < plan.channels(); channel++) {
            gin(channel).increaseSignalShadow(signal, hosted.hosts());
        }
        for (HostGin gin : gins) {
            gin.waitSignalMeetShadow(signal);
        }
        for (int channel = 0; channel < plan.channels(); channel++) {
            Arrays.fill(forwarded[channel], 0);
            for (int host = 0; host < hosted.hosts(); host++) {
                toHosts[channel][host] = tokens(layout.metadataTo(host, channel), hosted.perHost());
                fromHosts[channel][host] = tokens(layout.metadataFrom(host, channel), hosted.perHost());
                for (int rank = 0; rank < hosted.perHost(); rank++) {
                    forwarded[channel][rank] += tokens(layout.metadataFrom(host, channel), rank);
                }
            }
            for (int rank = 0; rank < hosted.perHost(); rank++) {
                near.release(rank, layout.total(channel, near.self()), forwarded[channel][rank]);
            }
        }
        for (int rank = 0; rank < hosted.perHost(); rank++) {
            for (int expert = 0; expert < HostedPlan.EXPERTS; expert++) {
                long count = 0;
                for (int host = 0; host < hosted.hosts(); host++) {
                    count += memory.get(INT, layout.expertCount(layout.countsFrom(host), rank, expert));
                }
                near.release(rank, layout.expertTotal(expert, near.self()), count);
            }
        }
        barrier.sync();
        for (int channel = 0; channel < plan.channels(); channel++) {
            for (int rank = 0; rank < hosted.perHost(); rank++) {
                expected[channel][rank] = near.acquire(near.self(), layout.total(channel, rank));
            }
        }
        Arrays.fill(expectedByExpert, 0);
        for (int expert = 0; expert < HostedPlan.EXPERTS; expert++) {
            for (int rank = 0; rank < hosted.perHost(); rank++) {
                expectedByExpert[expert] += near.acquire(near.self(), layout.expertTotal(expert, rank));
            }
        }
    }

    /** Returns the number of a channel's tokens for a rank of a host, or for the host as a whole. */
    private int tokens(long metadata, int rank) {
        return memory.get(INT, layout.last(metadata, rank)) - memory.get(INT, layout.first(metadata, rank));
    }

    /** Returns the results of the experts, for each channel and near rank to which they return. */
    private List<List<Queue<long[]>>> dispatch(long batch, ForwardedTokens[] passed, ExpertTokens experts) {
        List<Block> blocks = new ArrayList<>();
        List<List<Queue<long[]>>> made = new ArrayList<>();
        for (int channel = 0; channel < plan.channels(); channel++) {
            ForwardedTokens forwards = passed[channel];
            List<Queue<long[]>> results = new ArrayList<>();
            for (int rank = 0; rank < hosted.perHost(); rank++) {
                results.add(new ArrayDeque<>());
            }
            made.add(results);
            blocks.add(railSender(channel, toHosts[channel], ownTokens(batch, channel)));
            blocks.add(railReceiver(channel, fromHosts[channel], forwards::forward));
            blocks.add(NearBlock.receiver(rings[channel], expected[channel], near.self(), (from, at, offset) -> {
                long name = at.get(LONG, offset);
                // the ranks of a rail have the same index on their hosts, so the forwarding rank shows the index of the
                // origin
                int origin = ForwardedTokens.host(name) * hosted.perHost() + from;
                long[] answer = new long[1 + plan.words()];
                answer[0] = name;
                System.arraycopy(experts.take(origin, (int) name, at, offset + HEADER_BYTES), 0, answer, 1,
                        plan.words());
                return results.get(from).add(answer);
            }));
        }
        ExpertKernel.run(gins[0], "dispatch of batch " + batch, blocks);
        return made;
    }

    private ChannelSender.TokenSource ownTokens(long batch, int channel) {
        int[] next = new int[hosted.hosts()];
        Arrays.fill(next, plan.firstToken(channel));
        return (host, at, offset) -> {
            long to;
            do {
                to = hosted.near(plan.destinations(batch, communicator.rank(), next[host]++), host);
            } while (to == 0); // the loop ends, because the tokens were counted
            int token = next[host] - 1;
            at.set(LONG, offset, token);
            at.set(LONG, offset + Long.BYTES, to);
            for (int word = 0; word < plan.words(); word++) {
                at.set(LONG, offset + HEADER_BYTES + (long) word * Long.BYTES,
                        plan.word(batch, communicator.rank(), token, word));
            }
            return true;
        };
    }

    private void combine(long batch, ForwardedTokens[] passed, List<List<Queue<long[]>>> made,
            CombinedTokens combined) {
        List<Block> blocks = new ArrayList<>();
        for (int channel = 0; channel < plan.channels(); channel++) {
            ForwardedTokens forwards = passed[channel];
            List<Queue<long[]>> results = made.get(channel);
            blocks.add(NearBlock.sender(rings[channel], expected[channel], (to, at, offset) -> {
                long[] answer = results.get(to).remove();
                at.set(LONG, offset, answer[0]);
                MemorySegment.copy(answer, 1, at, LONG, offset + HEADER_BYTES, plan.words());
                return true;
            }));
            blocks.add(NearBlock.receiver(rings[channel], forwarded[channel], near.self(),
                    (from, at, offset) -> forwards.add(at, offset)));
            blocks.add(railSender(channel, fromHosts[channel], forwards::writeBack));
            blocks.add(railReceiver(channel, toHosts[channel], (host, at, offset) -> {
                combined.add((int) at.get(LONG, offset), at, offset + HEADER_BYTES);
                return true;
            }));
        }
        ExpertKernel.run(gins[0], "combine of batch " + batch, blocks);
    }

    private Block railSender(int channel, long[] total, ChannelSender.TokenSource source) {
        return new ChannelSender(gin(channel), rail, layout.railPlan(), layout.rails(), window, memory, channel, total,
                source);
    }

    private Block railReceiver(int channel, long[] total, ChannelReceiver.TokenSink sink) {
        return new ChannelReceiver(gin(channel), rail, layout.rails(), memory, channel, total, sink);
    }
}
