package org.millrace.net.socket;

import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.TestOptions;

/** Two rails, both under TLS. */
@Tag("slow")
@Tag("optimized")
class SocketNetworkTlsRailsTest extends NetworkContract {

    private static SocketOptions options() {
        return TestOptions.frames(5)
                .withStreams(1, 20_000)
                .withRails(SocketNetworkRailsTest.loopbacks(2))
                .withTls(SocketNetworkTlsTest.IDENTITY);
    }

    @Override
    protected Network newNetwork() {
        return new SocketNetwork(options());
    }

    @Override
    protected Network newStranger() {
        return new SocketNetwork(SocketNetworkTlsTest.stranger(options()));
    }

    /** The JDK's {@code SSLEngine} allocates, so allocation is not tested. */
    @Override
    protected int framesWithoutAllocation() {
        return 0;
    }
}
