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

/** The TCP streams of one connection, their end, and the connection's own views of the memory that it uses. */
public final class StreamSet extends ConnectionState {

    /**
     * How many calls of progress that moved nothing pass between two looks at whether the peer is still there; a power
     * of two.
     */
    public static final int WATCH_INTERVAL = 256;

    /** More than any system allows: it gives what it allows. */
    private static final int LARGEST_BUFFER_BYTES = 1 << 30;

    private final SocketChannel[] channels;
    private final StreamInput[] inputs;
    private final @Nullable TcpStream[] watched;
    private final SocketRegion.Views views = new SocketRegion.Views();
    private final @Nullable StreamRecovery recovery;
    final Reconnector.Outage outage;
    /** By stream: whether the last words are said there, and the other end is given time to read them. */
    private final boolean[] lingers;
    private final Arena memory = Arena.ofShared();
    private boolean released;
    /** What the peer was told of this process's own silent links. Of the owner's thread. */
    private @Nullable SilentLink told;

    /**
     * Takes connected streams over.
     *
     * @param name     of the connection, with its peer, for messages
     * @param peer     the process at the other end, for messages
     * @param channels stream 0 first; non-blocking
     * @param recovery makes lost ones again; null if nobody does
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

    /**
     * Makes a stream non-blocking, undelayed, and able to notice that the peer's host is gone while nothing is sent.
     */
    public static void configure(SocketChannel channel, SocketOptions options) throws IOException {
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        TcpStreams.keepAlive(channel);
        if (options.sendBufferBytes() > 0) {
            channel.setOption(StandardSocketOptions.SO_SNDBUF, options.sendBufferBytes());
        }
    }

    /** How many rails or streams there are, for a connection's name, if there are several. */
    static String count(int rails, int streams) {
        return rails > 1 ? " (" + rails + " rails)" : streams > 1 ? " (" + streams + " streams)" : "";
    }

    @Nullable
    StreamRecovery recovery() {
        return recovery;
    }

    /** A stream takes the place of one that is closed. */
    synchronized void replace(int stream, SocketChannel channel) {
        if (released) {
            closeQuietly(channel);
            throw closedHere();
        }
        channels[stream] = channel;
        inputs[stream] = new StreamInput(channel);
        watched[stream] = TcpStreams.watch(channel, peer(), null);
    }

    /** What a stream is lost by that can be made again, and on which nothing has come for too long; null otherwise. */
    @Nullable
    IOException silence(int stream) {
        TcpStream known = watched[stream];
        return recovery != null && known != null && known.isLost() ? new IOException(TcpStreams.SILENT) : null;
    }

    /**
     * What a stream stages is in this. It ends with the connection: the collector would give it back when the heap is
     * full of other things, as what refers to it there is small. A stream that takes the place of a lost one has its
     * own, as what the lost one has staged may be sent again.
     */
    Arena memory(boolean first) {
        return first ? memory : Arena.ofAuto();
    }

    SocketChannel channel(int stream) {
        return channels[stream];
    }

    /** What arrives on a stream. */
    StreamInput input(int stream) {
        return inputs[stream];
    }

    /**
     * The view that holds a payload, which begins in it at {@link SocketRegion#viewOffset}; its position and limit are
     * those of its last use. Throws if this connection may not use these bytes of the region.
     */
    public ByteBuffer view(@Nullable MemoryRegion region, long offset, int length) {
        return views.view((SocketRegion) NativeRegion.check(region, network(), offset, length), offset);
    }

    /** What to throw when a stream ended, or a call on it failed. */
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
     * What to throw for bytes that are not of this protocol. The streams are closed: nothing after such bytes can be
     * believed.
     */
    public ConnectionException notProtocol(String problem) {
        ConnectionException first = fail(new ConnectionException(this + ": received bytes that are no frame: " + problem
                + "; the connection is closed. Something between the two ends changes data, or one end runs another "
                + "version"));
        release();
        return first;
    }

    /** Whether the peer is to be told, on this stream, of a link that is silent, or of its end. */
    boolean hasSilence(SocketChannel channel) {
        if (TcpStreams.silent() == told) {
            return false;
        }
        TcpStream known = watched[Arrays.asList(channels).indexOf(channel)];
        return known == null || known.isHeard();
    }

    /** What to tell the peer; null if nothing is silent any more. */
    @Nullable
    SilentLink takeSilence() {
        return told = TcpStreams.silent();
    }

    /** What the peer says of a link of its own; null if none of them is silent any more. */
    synchronized void reported(@Nullable SilentLink link) {
        if (!released) {
            TcpStreams.reported(this, peer(), link);
        }
    }

    /** Says the last words on a stream, as far as that needs no waiting. */
    void sendLast(int stream, ByteBuffer words) {
        try {
            channels[stream].write(words);
            if (words.hasRemaining()) {
                // The send buffer is full of what the peer has not read yet. A larger one takes these few bytes too.
                channels[stream].setOption(StandardSocketOptions.SO_SNDBUF, LARGEST_BUFFER_BYTES);
                channels[stream].write(words);
            }
            lingers[stream] = !words.hasRemaining();
        } catch (IOException gone) {
            // The peer is gone before us.
        }
    }

    /** The connection is closed in order, though it may have no stream to say so: the other end is told if it asks. */
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
