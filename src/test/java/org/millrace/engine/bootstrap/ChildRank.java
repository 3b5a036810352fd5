package org.millrace.engine.bootstrap;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.millrace.MillraceException;

/**
 * A rank in a process of its own. Says what happens to it, a line each, and waits to be killed or told of another
 * rank's loss.
 */
final class ChildRank {

    private ChildRank() {}

    /** Arguments: rendezvous, rank, size, and {@code poll} or {@code gather} for how to wait. */
    public static void main(String[] arguments) {
        int rank = Integer.parseInt(arguments[1]);
        int size = Integer.parseInt(arguments[2]);
        ControlPlane plane = ControlPlane.join(arguments[0], rank, size, Duration.ofSeconds(60));
        plane.barrier();
        System.out.println("joined");
        try {
            if (arguments[3].equals("gather")) {
                plane.allGather(new byte[1]);
            } else {
                long end = System.nanoTime() + Duration.ofSeconds(60).toNanos();
                while (plane.failure() == null && System.nanoTime() - end < 0) {
                    LockSupport.parkNanos(100_000);
                }
                System.out.println(
                        plane.failure() == null ? "nothing" : plane.failure().rank() + " " + plane.failure().message());
            }
        } catch (MillraceException e) {
            System.out.println(e.getMessage());
        }
        plane.close();
        System.out.println("left");
    }
}
