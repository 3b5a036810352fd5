package org.millrace.plugin.takeover;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;
import org.millrace.net.DeviceRegion;
import org.millrace.net.HostDevice;

/**
 * The thread that closes a connection belongs to NCCL or the program. When the close returns, the thread must have its
 * previous CUDA context again.
 */
final class StagingContextTest {

    private int entered;
    private int left;

    private final DeviceRegion.Copies copies = new DeviceRegion.Copies() {
        private int asked;

        @Override
        public long copy(long to, long from, long bytes) {
            return 1;
        }

        @Override
        public boolean isDone(long number) {
            assertEquals(1, entered - left, "copies are asked after by a thread that has not entered");
            return ++asked == 3;
        }

        @Override
        public DeviceRegion.Use enter() {
            entered++;
            return () -> left++;
        }
    };

    @Test
    void whoWaitsForTheLastCopyIsItselfAgain() {
        HostDevice device = new HostDevice(Arena.ofAuto().allocate(8), copies);
        Staging staging = new Staging(device, device);
        staging.awaitCopy(staging.copyOut(0, 8));
        assertEquals(1, entered);
        assertEquals(1, left);
    }
}
