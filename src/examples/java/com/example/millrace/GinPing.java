package com.example.millrace;

import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.RemoteAction;
import org.millrace.engine.GinRank;

/**
 * Kernels that put and signal by themselves, on the emulated device: rank 0 puts a number into rank 1's window and
 * counts up its signal; rank 1 waits for the signal and puts an answer. On GPUs the same calls are NCCL's, in CUDA:
 * {@code src/main/cuda/gin.cu}. These classes are not exported by the module: they are for the class path.
 */
public final class GinPing {

    public static void main(String[] args) throws Exception {
        Ranks.run(2, GinPing::rank);
    }

    private static void rank(String rendezvous, int number, int size) {
        try (Arena arena = Arena.ofShared(); GinRank rank = GinRank.join(rendezvous, number, size, Map.of())) {
            GinRank.LocalWindow source = rank.window(arena, Long.BYTES);
            GinRank.LocalWindow target = rank.window(arena, Long.BYTES);
            GinDeviceCommunicator device = rank.device(GinRequirements.of(1, 1, 0));
            HostGin gin = new HostGin(device, 0);
            if (number == 1) {
                gin.waitSignal(0, 1);
            }
            long seen = target.memory().get(ValueLayout.JAVA_LONG, 0);
            source.memory().set(ValueLayout.JAVA_LONG, 0, seen + 42);
            gin.put(device.world(), 1 - number, target.window(), 0, source.window(), 0, Long.BYTES,
                    RemoteAction.increment(0), -1);
            if (number == 0) {
                gin.waitSignal(0, 1);
                System.out.println("the answer is " + target.memory().get(ValueLayout.JAVA_LONG, 0));
            }
            gin.flush();
            rank.barrier();
        }
    }
}
