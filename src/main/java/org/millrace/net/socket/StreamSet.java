package org.millrace.net.socket;

import java.io.IOException;
import java.lang.foreign.Arena;
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

/** The TCP streams of one connection, their end, and the connection's own views of its memory. */
public final class StreamSet extends ConnectionState {

    /** Number of calls of progress without data between two checks that the peer is alive; a power of two. */
    public static final int WATCH_INTERVAL = 256;

    /** More than any system allows; the system reduces it to its limit. */
    private static final int LARGEST_BUFFER_BYTES = 1 << 30;

    private final SocketChannel[] channels;
    private final StreamInput[] inputs;
    private final @Nullable TcpStream[] watched;
    private final SocketRegion.Views views = new SocketRegion.Views();
    private final @Nullable StreamRecovery recovery;
    final Reconnector.Outage outage;
    /** By stream: whether the shutdown message was sent there, so that the peer gets time to read it. */
    private final boolean[] lingers;
    private final Arena memory = Arena.ofShared();
    private boolean released;
    /** The last report to the peer about this process's own silent links. Owned by the owner's thread. */
    private @Nullable SilentLink told;

    /**
     * Takes ownership of connected streams.
     *
     * @param name     name of the connection, with its peer, for messages
     * @param peer     the peer process, for messages
     * @param channels streams, stream 0 first; non-blocking
     * @param recovery restores lost streams; null if they are not restored
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

    /** Makes a stream non-blocking, undelayed, and able to detect the loss of the peer's host while idle. */
    public static void configure(SocketChannel channel, SocketOptions options) throws IOException {
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        TcpStreams.keepAlive(channel);
        if (options.sendBufferBytes() > 0) {
            channel.setOption(StandardSocketOptions.SO_SNDBUF, options.sendBufferBytes());
        }
    }

    /** Returns the numbers of rails and streams for a connection's name, if it has several. */
    static String count(int rails, int streams) {
        return rails > 1 ? " (" + rails + " rails)" : streams > 1 ? " (" + streams + " streams)" : "";
    }

    @Nullable
    StreamRecovery recovery() {
        return recovery;
    }

    /** Replaces a closed stream. */
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
     * Returns the reason for the loss of a restorable stream on which nothing has arrived for too long; null otherwise.
     */
    @Nullable
    IOException silence(int stream) {
        TcpStream known = watched[stream];
        return recovery != null && known != null && known.isLost() ? new IOException(TcpStreams.SILENT) : null;
    }

    /**
     * Returns the arena of a stream's staging buffers. It ends with the connection: the garbage collector would free
     * the memory only when the heap is full, because the referring objects are small. A replacement stream has its own
     * arena, because the lost stream's buffers may be resent.
     */
    Arena memory(boolean first) {
        return first ? memory : Arena.ofAuto();
    }

    SocketChannel channel(int stream) {
        return channels[stream];
    }

    /** Returns the input of a stream. */
    StreamInput input(int stream) {
        return inputs[stream];
    }

    /**
     * Returns the view of a payload, which begins in it at {@link SocketRegion#viewOffset}. Its position and limit are
     * those of its last use. Throws if this connection may not use these bytes of the region.
     */
    public ByteBuffer view(@Nullable MemoryRegion region, long offset, int length) {
        return views.view((SocketRegion) NativeRegion.check(region, network(), offset, length), offset);
    }

    /** Returns the exception for a stream that ended, or a failed call on it. */
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
     * Returns the exception for bytes that violate the protocol. The streams are closed, because later bytes are not
     * trustworthy.
     */
    public ConnectionException notProtocol(String problem) {
        ConnectionException first = fail(new ConnectionException(this + ": received bytes that are no frame: " + problem
                + "; the connection is closed. Something between the two ends changes data, or one end runs another "
                + "version"));
        release();
        return first;
    }

    /**
     * Returns whether the peer must receive a report on this stream: about a silent link, or the end of its silence.
     */
    boolean hasSilence(SocketChannel channel) {
        if (TcpStreams.silent() == told) {
            return false;
        }
        TcpStream known = watched[Arrays.asList(channels).indexOf(channel)];
        return known == null || known.isHeard();
    }

    /** Returns the report for the peer; null if no link is silent. */
    @Nullable
    SilentLink takeSilence() {
        return told = TcpStreams.silent();
    }

    /** Records the peer's report about its own link; null if none of them is silent. */
    synchronized void reported(@Nullable SilentLink link) {
        if (!released) {
            TcpStreams.reported(this, peer(), link);
        }
    }

    /** Sends the shutdown message on a stream, as far as that needs no waiting. */
    void sendLast(int stream, ByteBuffer words) {
        try {
            channels[stream].write(words);
            if (words.hasRemaining()) {
                // The send buffer is full of data that the peer has not read. A larger buffer also takes these few
                // bytes.
                channels[stream].setOption(StandardSocketOptions.SO_SNDBUF, LARGEST_BUFFER_BYTES);
                channels[stream].write(words);
            }
            lingers[stream] = !words.hasRemaining();
        } catch (IOException gone) {
            // The peer left first.
        }
    }

    /**
     * Records that the connection is closed in order, possibly without a stream for the message. The peer learns it if
     * it asks.
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
