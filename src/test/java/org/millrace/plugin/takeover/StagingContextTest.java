package org.millrace.plugin.takeover;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;
import org.millrace.net.DeviceRegion;

/**
 * The thread that closes a connection belongs to NCCL or the program. When the close returns, the thread's current
 * context may not be the context for copies.
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
        Staging staging = new Staging(new Device(copies), new Device(copies));
        staging.awaitCopy(staging.copyOut(0, 8));
        assertEquals(1, entered);
        assertEquals(1, left);
    }

    private record Device(DeviceRegion.Copies copies) implements DeviceRegion {
        @Override
        public MemorySegment segment() {
            return MemorySegment.NULL;
        }

        @Override
        public long address() {
            return 0;
        }

        @Override
        public long bytes() {
            return 8;
        }

        @Override
        public Ticket ticket() {
            return null;
        }

        @Override
        public long map(long process, Ticket ticket) {
            return 0;
        }

        @Override
        public void close() {
            // this object holds no resources
        }
    }
}
