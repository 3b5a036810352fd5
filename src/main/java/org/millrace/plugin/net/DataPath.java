package org.millrace.plugin.net;

import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Network;

/**
 * Decides who moves the data of connections. The two ends of a connection have the same path, as its frames are its
 * own.
 */
public interface DataPath extends AutoCloseable {

    /** Tells paths apart in the handles that peers exchange. */
    byte id();

    /** Whether kernels gather what they receive from pages. */
    default boolean unpacks() {
        return false;
    }

    /** Whether Java moves the data, and NCCL's own proxy does not. */
    default boolean takesOver() {
        return false;
    }

    /** Connections will be made by this endpoint, which is closed after the path. */
    default void opened(NetEndpoint endpoint) {
        // most need nothing
    }

    /** What it does, for the log. */
    @Override
    String toString();

    /**
     * Takes over the sending end of a connection that was just made.
     *
     * @param sender the path's to use and to close
     */
    NetConnection sending(FrameSender sender, Network network, DrainTimeout timeout);

    /**
     * Takes over the receiving end of a connection that was just made.
     *
     * @param receiver the path's to use and to close
     */
    NetConnection receiving(FrameReceiver receiver, Network network, DrainTimeout timeout);

    /** Ends what the path runs. Its connections are closed before. */
    @Override
    void close();
}
