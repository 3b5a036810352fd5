package org.millrace.net.shm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;

/** Payloads of 1 KiB and more are read in the sender's memory. */
@Tag("optimized")
class ShmNetworkSingleCopyTest extends NetworkContract {

    private static final SingleCopy READ = new SingleCopy(SingleCopy.Use.REQUIRED, 1 << 10);

    @BeforeAll
    static void possible() {
        assumeTrue(SingleCopy.isPossible(), SingleCopy::describe);
        // These calls make the JIT compile the code of system calls. The test itself makes one call in 64 frames, and
        // would take long to reach the JIT's threshold.
        PeerMemory self = READ.open(ProcessIdentity.CURRENT, READ.invite());
        for (int i = 0; i < 50_000; i++) {
            assertEquals(0, self.read(0, 0));
        }
    }

    @Override
    protected Network newNetwork() {
        return new ShmNetwork(ShmOptions.defaults().withRing(64 << 10, 4 << 10).withSingleCopy(READ));
    }

    /** Each system call allocates a memory slice unless the optimizing compiler removes the allocation. */
    @Override
    protected int framesWithoutAllocation() {
        String level = ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class)
                .getVMOption("TieredStopAtLevel")
                .getValue();
        return level.equals("4") ? 300_000 : 0;
    }
}
