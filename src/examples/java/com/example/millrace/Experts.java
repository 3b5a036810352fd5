package com.example.millrace;

import com.example.millrace.experts.ExpertExchange;
import com.example.millrace.experts.ExpertLayout;
import com.example.millrace.experts.ExpertPlan;
import com.example.millrace.experts.HostedPlan;
import com.example.millrace.experts.HybridExchange;
import com.example.millrace.experts.HybridLayout;
import com.example.millrace.experts.LowLatencyExchange;
import com.example.millrace.experts.LowLatencyLayout;
import com.example.millrace.experts.TokenExchange;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Map;
import org.millrace.device.gin.GinDeviceCommunicators;
import org.millrace.device.gin.GinRequirements;
import org.millrace.engine.GinRank;

/**
 * Sends tokens to the ranks of their experts and back, as DeepEP does, and compares each token with a reference. With
 * {@code flat}, each rank sends to each rank. With {@code hybrid}, a token travels once to each destination host, of
 * two ranks each, and is forwarded there. With {@code low-latency}, a token travels directly to each destination rank.
 * On GPUs: {@code bench/gpu/nccl_expert.cu}.
 */
public final class Experts {

    private static final int RANKS = 4;
    private static final int RANKS_PER_HOST = 2;
    private static final ExpertPlan PLAN = new ExpertPlan(RANKS, 4, 64, 100, 2, 32, 42);

    /**
     * Runs all ranks.
     *
     * @param args {@code flat}, {@code hybrid} or {@code low-latency}, and the number of batches, 2 by default
     */
    public static void main(String[] args) throws Exception {
        long batches = args.length > 1 ? Long.parseLong(args[1]) : 2;
        Ranks.run(RANKS, (rendezvous, number, size) -> rank(rendezvous, number, args[0], batches));
    }

    private static void rank(String rendezvous, int number, String mode, long batches) {
        try (Arena arena = Arena.ofShared(); GinRank rank = GinRank.join(rendezvous, number, RANKS, Map.of())) {
            try (TokenExchange exchange = exchange(rank, arena, mode)) {
                for (long batch = 0; batch < batches; batch++) {
                    exchange.run(batch);
                }
                rank.barrier();
            }
            if (number == 0) {
                System.out.println(batches * RANKS * PLAN.tokens() + " tokens went to " + PLAN.experts()
                        + " experts each and came back, all as the reference has it");
            }
        }
    }

    private static TokenExchange exchange(GinRank rank, Arena arena, String mode) {
        HostedPlan hosts = new HostedPlan(PLAN, RANKS_PER_HOST);
        return switch (mode) {
            case "flat" -> {
                ExpertLayout layout = new ExpertLayout(PLAN);
                GinRank.LocalWindow window = rank.window(arena, layout.windowBytes());
                yield new ExpertExchange(devices(rank, layout.signals(), 1), PLAN, false, window.window(),
                        window.memory());
            }
            case "hybrid" -> {
                HybridLayout layout = new HybridLayout(hosts);
                GinRank.LocalWindow window = rank.window(arena, layout.windowBytes());
                yield new HybridExchange(devices(rank, layout.signals(), RANKS_PER_HOST), hosts, window.window(),
                        window.memory());
            }
            case "low-latency" -> {
                LowLatencyLayout layout = new LowLatencyLayout(hosts);
                GinRank.LocalWindow window = rank.window(arena, layout.windowBytes());
                yield new LowLatencyExchange(devices(rank, layout.signals(), RANKS_PER_HOST), hosts, window.window(),
                        window.memory());
            }
            default -> throw new IllegalArgumentException(mode + ": there are flat, hybrid and low-latency");
        };
    }

    /** Returns two device communicators with two contexts each, which the channels share. */
    private static GinDeviceCommunicators devices(GinRank rank, int signals, int ranksPerHost) {
        GinRequirements requirements = GinRequirements.of(2, signals, 0).withLsaSize(ranksPerHost);
        return new GinDeviceCommunicators(List.of(rank.device(requirements), rank.device(requirements)));
    }
}
