package com.example.millrace.experts;

import com.example.millrace.experts.ChannelReceiver.TokenSink;
import com.example.millrace.experts.ChannelSender.TokenSource;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.IntFunction;
import org.millrace.MillraceException;
import org.millrace.device.gin.GinBarrier;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.gin.GinDeviceCommunicators;
import org.millrace.device.gin.GinTeam;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.RemoteAction;
import org.millrace.gin.Window;

/**
 * One rank's part of an exchange of batches. For each batch, it resets heads and tails, and the ranks announce the
 * numbers of tokens in each channel. It then dispatches the tokens, and combines the results of the experts. Used by
 * one thread.
 */
public final class ExpertExchange implements TokenExchange {

    private final GinDeviceCommunicator communicator;
    private final ExpertPlan plan;
    private final ExpertLayout layout;
    private final GinTeam team;
    private final Window window;
    private final MemorySegment memory;
    private final HostGin[] gins;
    private final GinBarrier barrier;

    /**
     * Creates an exchange over a team.
     *
     * @param communicators device communicators with at least {@link ExpertLayout#signals()} free signals
     * @param rail          whether only the ranks of this rank's rail take part, as in DeepEP's low-latency mode
     */
    public ExpertExchange(GinDeviceCommunicators communicators, ExpertPlan plan, boolean rail, Window window,
            MemorySegment memory) {
        this.communicator = communicators.first();
        this.plan = plan;
        this.team = rail ? communicator.rail() : communicator.world();
        this.window = window;
        this.memory = memory;
        if (team.ranks() != plan.ranks()) {
            throw new IllegalArgumentException(
                    "the plan is for " + plan.ranks() + " ranks, the team has " + team.ranks());
        }
        layout = new ExpertLayout(plan, communicators.signalsBase(new ExpertLayout(plan).signals()));
        gins = communicators.hold();
        // uses the rail barrier with this rank's index among its near ranks; one barrier would suffice for all rails
        barrier = rail ? GinBarrier.rail(gins[0], communicator.lsa().rank()) : GinBarrier.world(gins[0], 0);
    }

    private HostGin gin(int channel) {
        return gins[channel % gins.length];
    }

    @Override
    public long run(long batch) {
        prepare(batch);
        long[][] incoming = new long[plan.channels()][];
        long[][] outgoing = new long[plan.channels()][];
        readCounts(incoming, outgoing);
        ReceivedTokens received = new ReceivedTokens(plan, team.rank(), batch, incoming);
        launch("dispatch of batch " + batch, outgoing, incoming,
                channel -> new OwnTokens(plan, team.rank(), batch, channel), received::sink);
        reset();
        CombinedTokens combined = new CombinedTokens(plan, team.rank(), batch);
        launch("combine of batch " + batch, incoming, outgoing, received::source,
                channel -> ownOrder(combined, channel));
        combined.verify();
        return received.count();
    }

    /**
     * Waits for the end of earlier batches, resets heads and tails to 0 on all ranks, and exchanges the numbers of
     * tokens.
     */
    private void prepare(long batch) {
        for (int rank = 0; rank < plan.ranks(); rank++) {
            for (int channel = 0; channel < plan.channels(); channel++) {
                memory.set(ValueLayout.JAVA_LONG, layout.countsTo(rank) + (long) channel * Long.BYTES,
                        plan.countTokens(batch, team.rank(), channel, rank));
            }
        }
        reset();
        int signal = layout.countsSignal();
        for (int rank = 0; rank < plan.ranks(); rank++) {
            gins[0].put(team, rank, window, layout.countsFrom(team.rank()), window, layout.countsTo(rank),
                    layout.countsBytes(), RemoteAction.increment(signal), -1);
        }
        gins[0].increaseSignalShadow(signal, plan.ranks());
        gins[0].waitSignalMeetShadow(signal);
    }

    /**
     * Resets every head and tail to 0 on all ranks, in the context of its channel. No updates of them are in flight,
     * because senders have read their last heads.
     */
    private void reset() {
        GinDeviceCommunicators.quiet(gins);
        barrier.sync();
        for (int channel = 0; channel < plan.channels(); channel++) {
            for (int rank = 0; rank < plan.ranks(); rank++) {
                gin(channel).resetSignal(layout.headSignal(channel, rank));
                gin(channel).resetSignal(layout.tailSignal(channel, rank));
            }
        }
        barrier.sync();
    }

    private void readCounts(long[][] incoming, long[][] outgoing) {
        for (int channel = 0; channel < plan.channels(); channel++) {
            incoming[channel] = new long[plan.ranks()];
            outgoing[channel] = new long[plan.ranks()];
            for (int rank = 0; rank < plan.ranks(); rank++) {
                incoming[channel][rank] =
                        memory.get(ValueLayout.JAVA_LONG, layout.countsFrom(rank) + (long) channel * Long.BYTES);
                outgoing[channel][rank] =
                        memory.get(ValueLayout.JAVA_LONG, layout.countsTo(rank) + (long) channel * Long.BYTES);
            }
        }
    }

    /**
     * Returns a sink for results. Each rank returns its results in the order in which this rank sent the tokens.
     */
    private TokenSink ownOrder(CombinedTokens combined, int channel) {
        int[] token = new int[plan.ranks()];
        Arrays.fill(token, plan.firstToken(channel));
        return (rank, memory, offset) -> {
            token[rank] = plan.nextToken(combined.batch(), team.rank(), channel, rank, token[rank]);
            combined.add(token[rank]++, memory, offset);
            return true;
        };
    }

    /** Runs one sending block and one receiving block for each channel. */
    private void launch(String name, long[][] outgoing, long[][] incoming, IntFunction<TokenSource> sources,
            IntFunction<TokenSink> sinks) {
        List<Block> blocks = new ArrayList<>();
        for (int channel = 0; channel < plan.channels(); channel++) {
            blocks.add(new ChannelSender(gin(channel), team, plan, layout, window, memory, channel, outgoing[channel],
                    sources.apply(channel)));
            blocks.add(new ChannelReceiver(gin(channel), team, layout, memory, channel, incoming[channel],
                    sinks.apply(channel)));
        }
        ExpertKernel.run(gins[0], name, blocks);
    }

    /** Source of a rank's own tokens in one channel, for each rank. */
    private static final class OwnTokens implements TokenSource {

        private final ExpertPlan plan;
        private final int self;
        private final long batch;
        private final int channel;
        private final int[] next;

        OwnTokens(ExpertPlan plan, int self, long batch, int channel) {
            this.plan = plan;
            this.self = self;
            this.batch = batch;
            this.channel = channel;
            this.next = new int[plan.ranks()];
            Arrays.fill(next, plan.firstToken(channel));
        }

        @Override
        public boolean write(int rank, MemorySegment memory, long offset) {
            int token = plan.nextToken(batch, self, channel, rank, next[rank]);
            next[rank] = token + 1;
            for (int word = 0; word < plan.words(); word++) {
                memory.set(ValueLayout.JAVA_LONG, offset + (long) word * Long.BYTES,
                        plan.word(batch, self, token, word));
            }
            return true;
        }
    }

    /**
     * Tokens that this rank's experts received in a batch. They are compared with the plan on arrival, kept, and sent
     * back changed.
     */
    private static final class ReceivedTokens {

        private final ExpertPlan plan;
        private final int self;
        private final long batch;
        private final long[][][] kept;
        private long count;

        ReceivedTokens(ExpertPlan plan, int self, long batch, long[][] incoming) {
            this.plan = plan;
            this.self = self;
            this.batch = batch;
            kept = new long[plan.channels()][plan.ranks()][];
            for (int channel = 0; channel < plan.channels(); channel++) {
                for (int rank = 0; rank < plan.ranks(); rank++) {
                    int expected = plan.countTokens(batch, rank, channel, self);
                    if (incoming[channel][rank] != expected) {
                        throw wrong(rank, channel,
                                "announces " + incoming[channel][rank] + " tokens instead of " + expected);
                    }
                    kept[channel][rank] = new long[expected * plan.words()];
                    count += expected;
                }
            }
        }

        long count() {
            return count;
        }

        TokenSink sink(int channel) {
            int[] token = new int[plan.ranks()];
            int[] position = new int[plan.ranks()];
            Arrays.fill(token, plan.firstToken(channel));
            return (rank, memory, offset) -> {
                token[rank] = plan.nextToken(batch, rank, channel, self, token[rank]);
                for (int word = 0; word < plan.words(); word++) {
                    long value = memory.get(ValueLayout.JAVA_LONG, offset + (long) word * Long.BYTES);
                    long expected = plan.word(batch, rank, token[rank], word);
                    if (value != expected) {
                        throw wrong(rank, channel, "sent token " + token[rank] + " with " + value + " as word " + word
                                + " instead of " + expected);
                    }
                    kept[channel][rank][position[rank]++] = value;
                }
                token[rank]++;
                return true;
            };
        }

        TokenSource source(int channel) {
            int[] position = new int[plan.ranks()];
            return (int rank, MemorySegment memory, long offset) -> {
                for (int word = 0; word < plan.words(); word++) {
                    memory.set(ValueLayout.JAVA_LONG, offset + (long) word * Long.BYTES,
                            ExpertPlan.expert(self, kept[channel][rank][position[rank]++]));
                }
                return true;
            };
        }

        private MillraceException wrong(int rank, int channel, String what) {
            return new MillraceException("dispatch to rank " + self + " (seed " + plan.seed() + ", batch " + batch
                    + "): rank " + rank + ", channel " + channel + ", " + what);
        }
    }
}
