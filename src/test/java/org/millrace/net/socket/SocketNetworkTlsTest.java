package org.millrace.net.socket;

import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.millrace.config.Configuration;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.TestOptions;
import org.millrace.net.connection.TlsIdentity;

/** Payloads divided over three streams, all under TLS. */
@Tag("slow")
@Tag("optimized")
class SocketNetworkTlsTest extends NetworkContract {

    static final TlsIdentity IDENTITY =
            TlsIdentity.of(Configuration.load(Map.of("MILLRACE_TLS", "1", "MILLRACE_SECRET", "of the test")));

    /** Options of a client with a wrong secret. Under TLS the client connects again until its deadline. */
    static SocketOptions stranger(SocketOptions options) {
        return options.withDeadlines(Duration.ofSeconds(2), options.handshakeDeadline());
    }

    private static SocketOptions options() {
        return TestOptions.frames(5).withStreams(3, 10_000).withTls(IDENTITY);
    }

    @Override
    protected Network newNetwork() {
        return new SocketNetwork(options());
    }

    @Override
    protected Network newStranger() {
        return new SocketNetwork(stranger(options()));
    }

    /** The JDK's {@code SSLEngine} allocates, so allocation is not tested. */
    @Override
    protected int framesWithoutAllocation() {
        return 0;
    }
}
