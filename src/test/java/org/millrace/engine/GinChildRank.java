package org.millrace.engine;

import java.lang.foreign.Arena;
import java.util.Map;
import org.millrace.device.gin.GinBarrier;
import org.millrace.device.gin.GinDeviceCommunicator;
import org.millrace.device.gin.GinRequirements;
import org.millrace.device.gin.HostGin;
import org.millrace.device.gin.RemoteAction;

/** A GIN rank in a process of its own: puts its number to rank 0, says so, and waits to be killed. */
final class GinChildRank {

    private GinChildRank() {}

    /** Arguments: rendezvous, rank, size, network. */
    public static void main(String[] arguments) {
        int rank = Integer.parseInt(arguments[1]);
        try (Arena arena = Arena.ofShared();
                GinRank joined = GinRank.join(arguments[0], rank, Integer.parseInt(arguments[2]),
                        Map.of("MILLRACE_NET", arguments[3]))) {
            GinRank.LocalWindow window = joined.window(arena, 64);
            GinDeviceCommunicator device = joined.device(GinRequirements.of(2, 1, 0));
            HostGin gin = new HostGin(device, 1);
            gin.putValue(device.world(), 0, window.window(), 8L * rank, rank, 8, RemoteAction.increment(0));
            GinBarrier.world(gin, 0).sync();
            gin.waitSignal(0, Long.MAX_VALUE);
        } catch (RuntimeException e) {
            System.out.println(e.getMessage());
        }
    }
}
