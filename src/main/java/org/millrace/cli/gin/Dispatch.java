package org.millrace.cli.gin;

import java.io.PrintWriter;
import java.lang.foreign.Arena;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.expert.ExpertExchange;
import org.millrace.device.gin.expert.ExpertLayout;
import org.millrace.device.gin.expert.ExpertPlan;
import org.millrace.engine.GinRank;

/** Batches of tokens to experts and back. */
final class Dispatch {

    private static final int SLOTS = 64;
    private static final long REPORT_NANOS = 2_000_000_000L;

    private final GinPlan plan;
    private final GinRank rank;
    private final PrintWriter out;
    private final ExpertExchange exchange;

    Dispatch(GinPlan plan, GinRank rank, Arena arena, PrintWriter out) {
        this.plan = plan;
        this.rank = rank;
        this.out = out;
        ExpertPlan experts = new ExpertPlan(plan.ranks(), plan.channels(), SLOTS, plan.batch(),
                Math.min(plan.experts(), plan.ranks()), plan.tokenWords(), plan.seed());
        ExpertLayout layout = new ExpertLayout(experts);
        GinRank.LocalWindow window = rank.window(arena, layout.windowBytes());
        GinDeviceCommunicator device =
                rank.device(GinRequirements.of(plan.contexts(), layout.signals(), 0).withFormat(plan.format()));
        exchange = new ExpertExchange(device, experts, false, window.window(), window.memory());
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
                out.printf(
                        "%12d of %d tokens dispatched to %d experts each and combined, all as the reference has it; "
                                + "%.0f tokens/s%n",
                        (batch + 1) * perBatch, batches * perBatch, Math.min(plan.experts(), plan.ranks()),
                        (batch + 1) * perBatch / seconds);
                out.flush();
            }
        }
    }
}
