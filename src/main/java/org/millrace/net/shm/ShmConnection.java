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
 * What the two ends of a connection have in common: the mapped ring, the socket that shows whether the peer lives, and
 * their end.
 */
final class ShmConnection extends ConnectionState {

    private static final Logger LOG = LogManager.getLogger(ShmConnection.class);

    /** How many idle calls pass at the most between two looks at the clock. */
    private static final int CLOCK_INTERVAL = 256;
    /**
     * How long at least passes between two looks at the socket, and at the peer's process, which cost a system call and
     * several.
     */
    private static final long SOCKET_INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
    private static final long PROCESS_INTERVAL_NANOS = 100 * SOCKET_INTERVAL_NANOS;
    /** So many times the interval and more between two looks: the caller parks between its calls. */
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

    /** Takes over what was set up: nothing more is sent over the socket, which does not block. */
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

    /** Number of the peer's process. */
    long peerProcess() {
        return peer.pid();
    }

    /** Says what an end does last, however it ends, while the ring is still mapped. */
    void beforeRelease(Runnable last) {
        lastAct = last;
    }

    /**
     * Looks now and then, when called often, whether the peer's process is still there. Its end of the socket closes
     * with it, unless it left children behind that inherited the socket: then the process itself is looked for. The
     * clock is looked at more often the longer the caller parks between its calls.
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
     * What to throw for a ring whose contents are not of this protocol. Nothing that follows can be believed, so the
     * peer sees the connection end here.
     */
    ConnectionException corrupt(String problem) {
        return failAndClose(": the ring is corrupted: " + problem + "; the connection is closed. A process wrote to "
                + "memory that is not its own, or the two ends run different versions");
    }

    /** The peer sees the connection end here. */
    private ConnectionException failAndClose(String what) {
        ConnectionException first = fail(new ConnectionException(this + what));
        closeQuietly(socket);
        return first;
    }

    /** What to throw when a payload cannot be read in the peer's memory. */
    ConnectionException unreadable(long address, long bytes, String why, String progress) {
        return failAndClose(": cannot read " + bytes + " bytes of a payload at 0x" + Long.toHexString(address)
                + " in the memory of " + peer + ": " + why + "; the connection is closed " + progress + ". "
                + SingleCopy.SETTING + "=0 has payloads copied through the ring");
    }

    /**
     * What to throw when memory was gone while it was used.
     *
     * @param e an {@link IllegalStateException}: another thread closed the connection, or else the memory is the
     *          caller's; or an {@link InternalError}, which is a SIGBUS: the ring's file has become shorter than what
     *          is mapped
     */
    RuntimeException endedBy(Throwable e) {
        if (e instanceof InternalError) {
            return corrupt("its file was made shorter (" + e.getMessage() + ")");
        }
        ConnectionException first = failure();
        return first == null ? (IllegalStateException) e : first;
    }

    /** Closes the connection, once, after a last use of the ring, if that is there. */
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
