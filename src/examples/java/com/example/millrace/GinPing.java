package com.example.millrace;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import org.millrace.device.gin.GinDeviceCommunicators;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.GinTeam;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.RemoteAction;
import org.millrace.engine.GinRank;

/**
 * Puts and signals of kernels, on the emulated device. Rank 0 puts a number into rank 1's window and increments its
 * signal. Rank 1 waits for the signal and puts an answer. Each rank uses two device communicators, as DeepEP's kernels
 * use their {@code dcomms[]}. On GPUs, NCCL has the same calls in CUDA: {@link GinOnGpus}.
 */
public final class GinPing {

    public static void main(String[] args) throws Exception {
        Ranks.run(2, GinPing::rank);
    }

    private static void rank(String rendezvous, int number, int size) {
        try (Arena arena = Arena.ofShared(); GinRank rank = GinRank.join(rendezvous, number, size, Map.of())) {
            GinRank.LocalWindow source = rank.window(arena, Long.BYTES);
            GinRank.LocalWindow target = rank.window(arena, Long.BYTES);
            GinRequirements requirements = GinRequirements.of(1, 2, 0);
            GinDeviceCommunicators devices =
                    new GinDeviceCommunicators(List.of(rank.device(requirements), rank.device(requirements)));
            int arrived = devices.signalsBase(1);
            HostGin[] gins = devices.hold();
            GinTeam world = devices.first().world();
            for (HostGin gin : gins) {
                if (number == 1) {
                    gin.waitSignal(arrived, 1);
                }
                long seen = target.memory().get(ValueLayout.JAVA_LONG, 0);
                GinDeviceCommunicators.quiet(gins); // the source may be written again, because the put has read it
                source.memory().set(ValueLayout.JAVA_LONG, 0, seen + 42);
                gin.put(world, 1 - number, target.window(), 0, source.window(), 0, Long.BYTES,
                        RemoteAction.increment(arrived), -1);
                if (number == 0) {
                    gin.waitSignal(arrived, 1);
                }
            }
            if (number == 0) {
                System.out.println("the answer is " + target.memory().get(ValueLayout.JAVA_LONG, 0));
            }
            GinDeviceCommunicators.quiet(gins);
            rank.barrier();
        }
    }
}
