package org.millrace.bootstrap;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.HashMap;
import java.util.Map;
import org.millrace.foreign.SystemError;
import org.millrace.net.connection.ConnectionState;

/**
 * Checks whether ranks still listen. No call waits, so an unreachable rank does not delay the checks of other ranks.
 * Used by one thread.
 */
final class ListenerProbes implements AutoCloseable {

    private final Map<Integer, SocketChannel> open = new HashMap<>();

    /**
     * Returns whether a rank certainly no longer listens, according to the check that an earlier call has begun. Begins
     * the next check if none is in progress.
     */
    boolean isGone(int rank, InetSocketAddress address) {
        SocketChannel channel = open.remove(rank);
        try {
            if (channel != null && channel.finishConnect()) {
                channel.close();
                channel = null;
            }
            if (channel == null) {
                channel = SocketChannel.open();
                channel.configureBlocking(false);
                channel.connect(address);
            }
            open.put(rank, channel);
            return false;
        } catch (IOException e) {
            ConnectionState.closeQuietly(channel);
            return SystemError.isRefusal(e);
        }
    }

    @Override
    public void close() {
        open.values().forEach(ConnectionState::closeQuietly);
    }
}
