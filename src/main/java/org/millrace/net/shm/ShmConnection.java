package org.millrace.net.shm;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.file.ProcessIdentity;
import org.millrace.net.ConnectionException;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.OpenResources;

/**
 * Common part of a connection's two ends: the mapped ring, the socket that shows whether the peer is alive, and their
 * end.
 */
final class ShmConnection extends ConnectionState {

    private static final Logger LOG = LogManager.getLogger(ShmConnection.class);

    /** Maximum number of idle calls between two looks at the clock. */
    private static final int CLOCK_INTERVAL = 256;
    /**
     * Minimum time between two checks of the socket and of the peer's process. The check of the socket costs one system
     * call, and the check of the process costs several.
     */
    private static final long SOCKET_INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
    private static final long PROCESS_INTERVAL_NANOS = 100 * SOCKET_INTERVAL_NANOS;
    /** If the time between two looks is this multiple of the interval or more, the caller parks between its calls. */
    private static final int LATE = 4;

    private final SocketChannel socket;
    private final ProcessIdentity peer;
    private final RingMemory ring;
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(1);
    private Runnable lastAct = () -> {};
    private int idleCalls;
    private int clockInterval = CLOCK_INTERVAL;
    private long lastLookNanos = System.nanoTime();
    private long lastProcessLookNanos = lastLookNanos;

    /** Takes ownership of an established connection. The non-blocking socket carries no more data. */
    public ShmConnection(OpenResources network, String name, SocketChannel socket, ProcessIdentity peer,
            RingMemory ring) {
        super(network, name, peer + " on " + ProcessIdentity.HOST);
        this.socket = socket;
        this.peer = peer;
        this.ring = ring;
    }

    RingMemory ring() {
        return ring;
    }

    /** Returns the ID of the peer's process. */
    long peerProcess() {
        return peer.pid();
    }

    /** Sets an end's last action, for any kind of end, while the ring is still mapped. */
    void beforeRelease(Runnable last) {
        lastAct = last;
    }

    /**
     * Checks at intervals, when called often, whether the peer's process is alive. Its end of the socket closes with
     * it, unless it has children that inherited the socket: then the process itself is checked. The clock is read more
     * often the longer the caller parks between its calls.
     */
    boolean peerIsGone() {
        if (++idleCalls < clockInterval) {
            return false;
        }
        idleCalls = 0;
        long now = System.nanoTime();
        long passed = now - lastLookNanos;
        if (passed < SOCKET_INTERVAL_NANOS) {
            clockInterval = Math.min(2 * clockInterval, CLOCK_INTERVAL);
            return false;
        }
        if (passed > LATE * SOCKET_INTERVAL_NANOS) {
            clockInterval = Math.max(clockInterval / 2, 1);
        }
        lastLookNanos = now;
        try {
            int read = socket.read(buffer);
            if (read > 0) {
                throw corrupt("the peer said something over a socket that is there for its end only");
            }
            if (read < 0 || now - lastProcessLookNanos < PROCESS_INTERVAL_NANOS) {
                return read < 0;
            }
            lastProcessLookNanos = now;
            return peer.isProvablyDead();
        } catch (IOException e) {
            LOG.debug("{}: the socket failed, so the peer is gone", this, e);
            return true;
        }
    }

    ConnectionException lost(String progress) {
        network().peerWasLost();
        return lost("the peer's process, " + peer + ", is gone without a shutdown message", progress,
                "; it was killed, or it aborted the connection: look at what it said last", null);
    }

    /**
     * Returns the exception for a ring whose contents violate the protocol. Later contents are not trustworthy, so this
     * ends the connection for the peer.
     */
    ConnectionException corrupt(String problem) {
        return failAndClose(": the ring is corrupted: " + problem + "; the connection is closed. A process wrote to "
                + "memory that is not its own, or the two ends run different versions");
    }

    /** Ends the connection for the peer. */
    private ConnectionException failAndClose(String what) {
        ConnectionException first = fail(new ConnectionException(this + what));
        closeQuietly(socket);
        return first;
    }

    /** Returns the exception for a payload that cannot be read in the peer's memory. */
    ConnectionException unreadable(long address, long bytes, String why, String progress) {
        return failAndClose(": cannot read " + bytes + " bytes of a payload at 0x" + Long.toHexString(address)
                + " in the memory of " + peer + ": " + why + "; the connection is closed " + progress + ". "
                + SingleCopy.SETTING + "=0 has payloads copied through the ring");
    }

    /**
     * Returns the exception for memory that was unmapped during its use.
     *
     * @param e an {@link IllegalStateException}: another thread closed the connection, or the memory is the caller's.
     *          Or an {@link InternalError}, which is a SIGBUS: the ring's file is shorter than its mapping
     */
    RuntimeException endedBy(Throwable e) {
        if (e instanceof InternalError) {
            return corrupt("its file was made shorter (" + e.getMessage() + ")");
        }
        ConnectionException first = failure();
        return first == null ? (IllegalStateException) e : first;
    }

    /** Closes the connection, once, after a last use of the ring, if that exists. */
    void closeWith(Runnable last) {
        close(() -> ifThere(last));
    }

    private void ifThere(Runnable use) {
        try {
            use.run();
        } catch (InternalError shorter) {
            LOG.debug("{}: nothing can be said in a ring that was made shorter", this, shorter);
        }
    }

    @Override
    protected void release() {
        ifThere(lastAct);
        closeQuietly(socket);
        ring.close();
    }
}
