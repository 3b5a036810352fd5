package org.millrace.net.shm;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.TestOptions;

/** Payloads of 1 KiB and more are read in the sender's memory. */
@Tag("optimized")
class ShmNetworkSingleCopyTest extends NetworkContract {

    private static final SingleCopy READ = new SingleCopy(SingleCopy.Use.REQUIRED, 1 << 10);

    @BeforeAll
    static void possible() {
        assumeTrue(SingleCopy.isPossible(), SingleCopy::describe);
    }

    @Override
    protected Network newNetwork() {
        return new ShmNetwork(TestOptions.ring(64 << 10, 4 << 10).withSingleCopy(READ));
    }
}
