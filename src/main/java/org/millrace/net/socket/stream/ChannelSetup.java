package org.millrace.net.socket.stream;

import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.channels.SocketChannel;
import jdk.net.ExtendedSocketOptions;

/** The options of a TCP stream that do not depend on which side opened it. */
public final class ChannelSetup {

    private static final int KEEP_ALIVE_IDLE_SECONDS = 30;
    private static final int KEEP_ALIVE_INTERVAL_SECONDS = 10;
    private static final int KEEP_ALIVE_PROBES = 3;

    private ChannelSetup() {}

    /**
     * Makes a stream non-blocking, undelayed, and able to notice within a minute that the peer's host is gone even
     * while nothing is sent.
     */
    public static void apply(SocketChannel channel, SocketOptions options) throws IOException {
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
        if (channel.supportedOptions().contains(ExtendedSocketOptions.TCP_KEEPIDLE)) {
            channel.setOption(ExtendedSocketOptions.TCP_KEEPIDLE, KEEP_ALIVE_IDLE_SECONDS);
            channel.setOption(ExtendedSocketOptions.TCP_KEEPINTERVAL, KEEP_ALIVE_INTERVAL_SECONDS);
            channel.setOption(ExtendedSocketOptions.TCP_KEEPCOUNT, KEEP_ALIVE_PROBES);
        }
        if (options.sendBufferBytes() > 0) {
            channel.setOption(StandardSocketOptions.SO_SNDBUF, options.sendBufferBytes());
        }
    }
}
