package org.millrace.net.socket.stream;

import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SocketChannel;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.net.ConnectionException;
import org.millrace.net.PeerClosedException;

/**
 * The TCP streams of one connection, their end, and the first thing that went wrong with them: from then on every call
 * says so.
 */
public final class StreamSet {

    private static final Logger LOG = LogManager.getLogger(StreamSet.class);

    /** More than any system allows: it gives what it allows. */
    private static final int LARGEST_BUFFER_BYTES = 1 << 30;

    private final String name;
    private final SocketChannel[] channels;
    private final AtomicBoolean closed = new AtomicBoolean();
    private volatile ConnectionException failure;

    /**
     * Takes connected streams over.
     *
     * @param name     of the connection, with its peer, for messages
     * @param channels stream 0 first; non-blocking
     */
    public StreamSet(String name, SocketChannel[] channels) {
        this.name = name;
        this.channels = channels;
    }

    public int count() {
        return channels.length;
    }

    public SocketChannel channel(int stream) {
        return channels[stream];
    }

    public void checkOpen() {
        ConnectionException first = failure;
        if (first != null) {
            throw first;
        }
    }

    /** What to throw when a stream ended, or a call on it failed. */
    public ConnectionException lost(IOException cause, String progress) {
        if (cause instanceof ClosedChannelException) {
            return fail(new ConnectionException(name + ": was closed on this side"));
        }
        String what =
                cause == null ? "the peer's end of the connection is gone, without a goodbye" : cause.getMessage();
        return fail(new ConnectionException(
                name + ": connection lost (" + what + ") " + progress
                        + "; the peer's process ended, or the network between failed: look at what the peer said last",
                cause));
    }

    public ConnectionException closedByPeer(String progress) {
        return fail(new PeerClosedException(name + ": closed by the peer " + progress));
    }

    /**
     * What to throw for bytes that are not of this protocol. The streams are closed: nothing after such bytes can be
     * believed.
     */
    public ConnectionException notProtocol(String problem) {
        ConnectionException first = fail(new ConnectionException(name + ": received bytes that are no frame: " + problem
                + "; the connection is closed. Something between the two ends changes data, or one end runs another version"));
        closeChannels();
        return first;
    }

    private ConnectionException fail(ConnectionException what) {
        if (failure == null) {
            failure = what;
        }
        return failure;
    }

    /** Tells the peer that the end is meant, as far as that needs no waiting. */
    public void sayGoodbye() {
        ByteBuffer goodbye = ByteBuffer.allocate(HeaderFormat.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        HeaderFormat.encodeGoodbye(goodbye, 0);
        try {
            channels[0].write(goodbye);
            if (goodbye.hasRemaining()) {
                // The send buffer is full of frames that the peer has not read yet. A larger one takes these few bytes
                // too.
                channels[0].setOption(StandardSocketOptions.SO_SNDBUF, LARGEST_BUFFER_BYTES);
                channels[0].write(goodbye);
            }
        } catch (IOException gone) {
            // The peer is gone before us: nobody is left to be told.
        }
    }

    /**
     * Closes all streams, once.
     *
     * @param farewell what to do first, if the connection has not failed
     * @param whenDone told once, after all is closed
     */
    public void close(Runnable farewell, Runnable whenDone) {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        if (failure == null) {
            farewell.run();
            fail(new ConnectionException(name + ": was closed on this side"));
        }
        closeChannels();
        whenDone.run();
    }

    private void closeChannels() {
        closeAll(channels);
    }

    /** Closes channels, some of which may be null. */
    public static void closeAll(SocketChannel[] channels) {
        for (SocketChannel channel : channels) {
            if (channel != null) {
                try {
                    channel.close();
                } catch (IOException e) {
                    LOG.debug("closing {} failed; the system has given it back all the same", channel, e);
                }
            }
        }
    }

    @Override
    public String toString() {
        return name;
    }
}
