package org.millrace.net.socket;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.millrace.net.Network;
import org.millrace.net.NetworkContract;
import org.millrace.net.TestOptions;

/**
 * Three rails, and payloads divided into pieces. The threshold for a division is so low that small frames reach it too.
 */
@Tag("slow")
@Tag("optimized")
public class SocketNetworkRailsTest extends NetworkContract {
    @Override
    protected Network newNetwork() {
        return new SocketNetwork(TestOptions.frames(5).withStreams(1, 20_000).withRails(loopbacks(3)));
    }

    @Override
    protected int framesWithoutAllocation() {
        return 250_000;
    }

    /** Returns 127.0.0.1 and the addresses that follow it. Every machine has all these addresses. */
    public static List<InetAddress> loopbacks(int count) {
        return java.util.stream.IntStream.rangeClosed(1, count).mapToObj(last -> {
            try {
                return InetAddress.getByAddress(new byte[] {127, 0, 0, (byte) last});
            } catch (UnknownHostException e) {
                throw new AssertionError(e);
            }
        }).toList();
    }
}
