package org.millrace.cli.gin;

import java.lang.foreign.Arena;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.millrace.cli.console.ResultTable;
import org.millrace.device.gin.GinDeviceCommunicators;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.expert.ExpertExchange;
import org.millrace.device.gin.expert.ExpertLayout;
import org.millrace.device.gin.expert.ExpertPlan;
import org.millrace.device.gin.expert.HostedPlan;
import org.millrace.device.gin.expert.HybridExchange;
import org.millrace.device.gin.expert.HybridLayout;
import org.millrace.device.gin.expert.LowLatencyExchange;
import org.millrace.device.gin.expert.LowLatencyLayout;
import org.millrace.device.gin.expert.TokenExchange;
import org.millrace.engine.GinRank;

/** Batches of tokens to experts and back. */
final class Dispatch {

    private static final int SLOTS = 64;
    private static final long REPORT_NANOS = 2_000_000_000L;

    private final GinPlan plan;
    private final GinRank rank;
    private final ResultTable table;
    private final TokenExchange exchange;

    Dispatch(GinPlan plan, GinRank rank, Arena arena, ResultTable table) {
        this.plan = plan;
        this.rank = rank;
        this.table = table;
        ExpertPlan experts = new ExpertPlan(plan.ranks(), plan.channels(), SLOTS, plan.batch(),
                Math.min(plan.experts(), plan.ranks()), plan.tokenWords(), plan.seed());
        if (plan.lowLatency()) {
            HostedPlan hosts = new HostedPlan(experts, plan.ranksPerHost());
            LowLatencyLayout layout = new LowLatencyLayout(hosts);
            GinRank.LocalWindow window = rank.window(arena, layout.windowBytes());
            exchange = new LowLatencyExchange(devices(layout.signals()), hosts, window.window(), window.memory());
        } else if (plan.ranksPerHost() > 1) {
            HostedPlan hosts = new HostedPlan(experts, plan.ranksPerHost());
            HybridLayout layout = new HybridLayout(hosts);
            GinRank.LocalWindow window = rank.window(arena, layout.windowBytes());
            exchange = new HybridExchange(devices(layout.signals()), hosts, window.window(), window.memory());
        } else {
            ExpertLayout layout = new ExpertLayout(experts);
            GinRank.LocalWindow window = rank.window(arena, layout.windowBytes());
            exchange = new ExpertExchange(devices(layout.signals()), experts, false, window.window(), window.memory());
        }
    }

    private GinDeviceCommunicators devices(int signals) {
        GinRequirements requirements = GinRequirements.of(plan.contexts(), signals, 0)
                .withFormat(plan.format())
                .withLsaSize(plan.ranksPerHost());
        return new GinDeviceCommunicators(
                Stream.generate(() -> rank.device(requirements)).limit(plan.communicators()).toList());
    }

    void run() {
        long perBatch = (long) plan.batch() * plan.ranks();
        long batches = (plan.tokens() + perBatch - 1) / perBatch;
        boolean first = rank.communicator().rank() == 0;
        long begin = System.nanoTime();
        long reported = begin;
        for (long batch = 0; batch < batches; batch++) {
            exchange.run(batch);
            long now = System.nanoTime();
            if (first && (now - reported > REPORT_NANOS || batch == batches - 1)) {
                reported = now;
                double seconds = (now - begin) / 1e9;
                long done = (batch + 1) * perBatch;
                int to = Math.min(plan.experts(), plan.ranks());
                table.say(String.format("%12d of %d tokens dispatched to %d experts each and combined, all as the "
                        + "reference has it; %.0f tokens/s", done, batches * perBatch, to, done / seconds));
                if (batch == batches - 1) {
                    Map<String, Object> row = new LinkedHashMap<>();
                    row.put("tokens", done);
                    row.put("experts", to);
                    row.put("seconds", seconds);
                    row.put("tokens_per_s", done / seconds);
                    table.record(row);
                }
            }
        }
    }
}
