package org.millrace.net.plugin;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.LostPeerName;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.plugin.NetTable.NetFunction;
import org.millrace.net.plugin.PluginLibrary.Session;

/**
 * State that a connection's sender or receiver uses. Besides the plugin's communicators, each connection has a TCP
 * connection. The TCP connection shows whether the peer's process is alive, and transfers the shutdown message of each
 * side. This class closes the communicators and the TCP connection.
 *
 * <pre>
 *   0          8         16               64      a shutdown message, little-endian
 *   +----------+---------+----------------+
 *   | magic    | frames  | process that   |
 *   | 8 chars  | i64     | was lost, or 0 |
 *   +----------+---------+----------------+
 * </pre>
 *
 * <p>
 * A plugin may report the loss of a peer before TCP reports the loss. Even frames that have arrived may then still be
 * unread. A failure of the plugin is therefore thrown only after this side has waited for the plugin for one second
 * without interruption. If the TCP connection has ended without a shutdown message, the failure is thrown without this
 * delay. No new request begins after a failure.
 */
final class PluginConnection extends ConnectionState {

    private static final Logger LOG = LogManager.getLogger(PluginConnection.class);

    /** Number of calls without progress between two reads of the clock; a power of two. */
    private static final int CLOCK_INTERVAL = 128;
    /** Minimum time between two reads of the TCP connection. Each of these reads is a system call. */
    private static final long LOOK_INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(2);
    private static final long LAST_WORD_NANOS = TimeUnit.SECONDS.toNanos(1);
    /**
     * Time limit for the arrival of all frames after the peer's shutdown message. The plugin already holds these
     * frames.
     */
    private static final long ARRIVAL_NANOS = TimeUnit.SECONDS.toNanos(20);

    private static final int SHUTDOWN_BYTES = 64;
    private static final long SHUTDOWN = 0x4559_4244_4f4f_474dL;
    private static final int FRAMES_OFFSET = 8;
    private static final int NAME_OFFSET = 16;

    private final SocketChannel socket;
    private final Session session;
    private final CallWatch watch;
    private final CallWatch slowWatch;
    private final ByteBuffer received = ByteBuffer.allocateDirect(SHUTDOWN_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private Runnable release = () -> {};
    private int idleCalls;
    private long lastLookNanos = System.nanoTime();
    private long shutdownNanos;
    private @Nullable IOException socketFailure;
    private boolean gone;
    private @Nullable ConnectionException broken;
    private long brokenNanos;

    /**
     * Creates the common part of a sender or receiver. This object owns the non-blocking socket, which carries only
     * shutdown messages from now on.
     */
    public PluginConnection(OpenResources network, String name, String peer, SocketChannel socket, Session session,
            Duration callLimit) {
        super(network, name, peer);
        this.socket = socket;
        this.session = session;
        watch = CallWatch.of(name, callLimit);
        slowWatch = CallWatch.of(name, callLimit);
    }

    Session session() {
        return session;
    }

    /** Returns the watch for calls of the thread that moves frames. */
    CallWatch watch() {
        return watch;
    }

    /** Returns the watch for calls that establish or close the connection, and for calls by other threads. */
    CallWatch slowWatch() {
        return slowWatch;
    }

    /** Sets the action that releases the resources of the sender or receiver when the connection is closed. */
    void onRelease(Runnable last) {
        release = last;
    }

    /** Returns whether a function of the plugin has failed. If so, no new request may begin. */
    boolean isBroken() {
        return broken != null;
    }

    void broken(NetFunction function, int result) {
        broken(session.failed(function, result));
    }

    private void broken(String what) {
        if (broken == null) {
            broken = new ConnectionException(this + ": connection lost (" + what + ")");
            brokenNanos = System.nanoTime();
        }
    }

    /**
     * Checks whether the peer has shut down, or whether its process has ended. May be called often: most calls do
     * nothing, because a minimum time must pass between two checks.
     *
     * @param expects whether this side waits for the plugin; false while the owner must first accept a frame
     * @param frames  number of frames that this side has received completely; {@link Long#MAX_VALUE} for a sender
     * @param end     object with a text that describes this side's progress, for messages
     * @throws ConnectionException if the connection has ended
     */
    public void lookAtPeer(boolean expects, long frames, Object end) {
        if (broken == null && (++idleCalls & CLOCK_INTERVAL - 1) != 0) {
            return;
        }
        long now = System.nanoTime();
        if (now - lastLookNanos < LOOK_INTERVAL_NANOS) {
            return;
        }
        lastLookNanos = now;
        read(now);
        boolean hasShutDown = !received.hasRemaining();
        if (hasShutDown || gone || broken != null) {
            judge(now, hasShutDown, expects, frames, end.toString());
        }
    }

    private void judge(long now, boolean hasShutDown, boolean expects, long frames, String progress) {
        if (hasShutDown && frames >= received.getLong(FRAMES_OFFSET)) {
            throw closedByPeer(progress, LostPeerName.read(i -> received.getLong(NAME_OFFSET + i * Long.BYTES)));
        }
        if (!expects) {
            shutdownNanos = now;
            brokenNanos = now;
        }
        if (broken != null) {
            if (gone && !hasShutDown || now - brokenNanos > LAST_WORD_NANOS) {
                throw fail(new ConnectionException(
                        broken.getMessage() + " " + progress + (gone ? "; the peer's end is gone, too" : ""), broken));
            }
        } else if (hasShutDown && now - shutdownNanos > ARRIVAL_NANOS) {
            throw lost("the peer has sent " + received.getLong(FRAMES_OFFSET)
                    + " frames and a shutdown message, and the plugin has not delivered the rest of them in "
                    + TimeUnit.NANOSECONDS.toSeconds(ARRIVAL_NANOS) + " s", progress, "", null);
        } else if (gone && !hasShutDown) {
            IOException why = socketFailure;
            throw lost(
                    why == null ? "the peer's end of the connection is gone, without a shutdown message"
                            : String.valueOf(why.getMessage()),
                    progress, "; the peer's process ended, or it aborted the connection: see the peer's last log lines",
                    why);
        }
    }

    private void read(long now) {
        if (gone || !received.hasRemaining()) {
            return;
        }
        try {
            gone = socket.read(received) < 0;
        } catch (IOException e) {
            socketFailure = e;
            gone = true;
        }
        if (!received.hasRemaining()) {
            shutdownNanos = now;
            if (received.getLong(0) != SHUTDOWN) {
                throw corrupt("the peer's message over TCP is not a shutdown message");
            }
        }
    }

    /** Returns the exception for a received message that violates the protocol. Later messages cannot be trusted. */
    ConnectionException corrupt(String problem) {
        ConnectionException first = fail(new ConnectionException(this + ": received an invalid message: " + problem
                + "; the connection is closed. The plugin mixes up messages, or one end runs another version"));
        closeQuietly(socket);
        return first;
    }

    /**
     * Sends the shutdown message, with the number of frames that the peer can expect. The peer then treats the close of
     * the connection as normal.
     */
    void sendShutdown(long frames) {
        ByteBuffer message = ByteBuffer.allocate(SHUTDOWN_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        message.putLong(0, SHUTDOWN).putLong(FRAMES_OFFSET, frames);
        LostPeerName.write(blamed(), (i, word) -> message.putLong(NAME_OFFSET + i * Long.BYTES, word));
        try {
            // The message fits into the send buffer, which is empty because this is the first message.
            socket.write(message);
        } catch (IOException e) {
            LOG.debug("{}: the peer is gone before us", this, e);
        }
    }

    @Override
    protected void release() {
        release.run();
        watch.close();
        slowWatch.close();
        closeQuietly(socket);
    }
}
