package org.millrace.net.socket;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.connection.SilentLink;
import org.millrace.net.connection.TcpStream;
import org.millrace.net.connection.TcpStreams;

/** The TCP streams of one connection, and the connection's buffers over registered memory. */
public final class StreamSet extends ConnectionState {

    /**
     * Number of calls of {@code progress} without data after which the streams are checked for silence; a power of two.
     */
    public static final int WATCH_INTERVAL = 256;

    /** Send buffer size that exceeds the limit of any system. The system reduces the size to its limit. */
    private static final int LARGEST_BUFFER_BYTES = 1 << 30;

    private final SocketChannel[] channels;
    private final StreamInput[] inputs;
    private final @Nullable TcpStream[] watched;
    private final SocketRegion.Views views = new SocketRegion.Views();
    private final @Nullable StreamRecovery recovery;
    final Reconnector.Outage outage;
    /**
     * For each stream, whether the shutdown message was sent on it. If so, the stream lingers until the peer has read
     * the message.
     */
    private final boolean[] lingers;
    private final Arena memory = Arena.ofShared();
    private boolean released;
    /** Silent link in the newest report to the peer; null for none. Used by the thread that moves frames. */
    private @Nullable SilentLink told;

    /**
     * Creates the set. The set owns the streams from now on.
     *
     * @param name     name of the connection, with its peer, for messages
     * @param peer     the peer process, for messages
     * @param channels connected streams in the order of their numbers; non-blocking
     * @param recovery object that restores lost streams; null if lost streams are not restored
     */
    StreamSet(OpenResources network, String name, String peer, SocketChannel[] channels,
            @Nullable StreamRecovery recovery) {
        super(network, name, peer);
        this.channels = channels;
        this.recovery = recovery;
        outage = new Reconnector.Outage(this, peer);
        lingers = new boolean[channels.length];
        inputs = Arrays.stream(channels).map(StreamInput::new).toArray(StreamInput[]::new);
        watched = new TcpStream[channels.length];
        for (int stream = 0; stream < channels.length; stream++) {
            watched[stream] = TcpStreams.watch(channels[stream], peer, null);
        }
    }

    /** Makes a stream non-blocking, without send delays, and able to detect the loss of the peer's host while idle. */
    public static void configure(SocketChannel channel, SocketOptions options) throws IOException {
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        TcpStreams.keepAlive(channel);
        if (options.sendBufferBytes() > 0) {
            channel.setOption(StandardSocketOptions.SO_SNDBUF, options.sendBufferBytes());
        }
    }

    /** Returns the number of rails or streams as a part of a connection's name; empty for a single stream. */
    static String count(int rails, int streams) {
        return rails > 1 ? " (" + rails + " rails)" : streams > 1 ? " (" + streams + " streams)" : "";
    }

    @Nullable
    StreamRecovery recovery() {
        return recovery;
    }

    synchronized void replace(int stream, SocketChannel channel) {
        if (released) {
            closeQuietly(channel);
            throw closedHere();
        }
        channels[stream] = channel;
        inputs[stream] = new StreamInput(channel);
        watched[stream] = TcpStreams.watch(channel, peer(), null);
    }

    /**
     * Returns the exception for a stream that can be restored and on which nothing has arrived for too long; null
     * otherwise.
     */
    @Nullable
    IOException silence(int stream) {
        TcpStream known = watched[stream];
        return recovery != null && known != null && known.isLost() ? new SocketTimeoutException(TcpStreams.SILENT)
                : null;
    }

    /**
     * Returns the arena for the staging buffers of a stream. The arena of the connection's initial streams is closed
     * with the connection. This memory is not left to the garbage collector, which frees memory late if the objects
     * that refer to it are small. A replacement stream gets new memory, which the garbage collector frees. The
     * replacement does not reuse the lost stream's buffers, because their data may be sent again.
     */
    Arena memory(boolean first) {
        return first ? memory : Arena.ofAuto();
    }

    SocketChannel channel(int stream) {
        return channels[stream];
    }

    StreamInput input(int stream) {
        return inputs[stream];
    }

    /**
     * Returns the view that contains a payload at {@link SocketRegion#viewOffset}. The view has the position and limit
     * of its last use. Throws an exception if this connection is not allowed to use these bytes of the region.
     */
    public ByteBuffer view(@Nullable MemoryRegion region, long offset, int length) {
        return views.view((SocketRegion) NativeRegion.check(region, network(), offset, length), offset);
    }

    /** Returns the exception for the loss of the connection, after a stream has ended or a call on it has failed. */
    public ConnectionException lost(@Nullable IOException cause, String progress) {
        if (cause instanceof ClosedChannelException) {
            return closedHere();
        }
        if (recovery != null) {
            recovery.close(false);
        }
        outage.over();
        String what = cause == null ? "the peer's end of the connection is gone, without a shutdown message"
                : cause.getMessage();
        return fail(new ConnectionException(
                this + ": connection lost (" + what + ") " + progress + "; " + TcpStreams.reason(cause), cause));
    }

    /**
     * Returns the exception for received bytes that violate the protocol. The streams are closed, because later bytes
     * cannot be trusted.
     */
    public ConnectionException notProtocol(String problem) {
        ConnectionException first = fail(new ConnectionException(this + ": received bytes that are not a frame: "
                + problem
                + "; the connection is closed. Something between the two ends changes data, or one end runs another "
                + "version"));
        release();
        return first;
    }

    /**
     * Returns whether this stream must report to the peer that a link is silent, or that data arrives over the link
     * again.
     */
    boolean hasSilence(SocketChannel channel) {
        if (TcpStreams.silent() == told) {
            return false;
        }
        TcpStream known = watched[Arrays.asList(channels).indexOf(channel)];
        return known == null || known.isHeard();
    }

    /** Returns the silent link to report, and records it as reported; null if no link is silent. */
    @Nullable
    SilentLink takeSilence() {
        return told = TcpStreams.silent();
    }

    /** Records the peer's report about its links: the silent link, or null if none of its links is silent. */
    synchronized void reported(@Nullable SilentLink link) {
        if (!released) {
            TcpStreams.reported(this, peer(), link);
        }
    }

    /** Sends the shutdown message on a stream, if that is possible without waiting. */
    void sendLast(int stream, ByteBuffer words) {
        try {
            channels[stream].write(words);
            if (words.hasRemaining()) {
                // The send buffer is full of data that the peer has not read. A larger buffer has room for this short
                // message.
                channels[stream].setOption(StandardSocketOptions.SO_SNDBUF, LARGEST_BUFFER_BYTES);
                channels[stream].write(words);
            }
            lingers[stream] = !words.hasRemaining();
        } catch (IOException gone) {
            // The peer closed the stream first.
        }
    }

    /**
     * Records that the connection is closed deliberately (see {@link StreamRecovery#close}), even if no stream exists
     * for the shutdown message. The answers to later requests of the peer state that the close was deliberate.
     */
    void closesInOrder() {
        if (recovery != null) {
            recovery.close(true);
        }
    }

    @Override
    protected synchronized void release() {
        reported(null);
        outage.over();
        released = true;
        if (recovery != null) {
            recovery.close(false);
        }
        for (int stream = 0; stream < channels.length; stream++) {
            inputs[stream].leave();
            if (lingers[stream]) {
                LingeringStreams.close(network(), channels[stream]);
            } else {
                closeQuietly(channels[stream]);
            }
        }
        if (memory.scope().isAlive()) {
            closeQuietly(memory::close);
        }
    }
}
