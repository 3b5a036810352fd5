package org.millrace.net.shm;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.file.ProcessIdentity;
import org.millrace.file.WatchedProcess;
import org.millrace.net.ConnectionException;
import org.millrace.net.connection.ConnectionState;
import org.millrace.net.connection.OpenResources;

/**
 * Data that the sender and the receiver both need: the mapped ring, and the socket that shows whether the peer is
 * alive. This class also closes the ring and the socket.
 */
final class ShmConnection extends ConnectionState {

    private static final Logger LOG = LogManager.getLogger(ShmConnection.class);

    /** Maximum number of idle calls between two reads of the clock. */
    private static final int CLOCK_INTERVAL = 256;
    /**
     * Intended time between two reads of the clock, in nanoseconds. If less time has passed, the clock is read less
     * often from then on.
     */
    private static final long CLOCK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);
    /**
     * Factor: if more than {@value} times {@link #CLOCK_NANOS} passes between two reads of the clock, the caller
     * probably sleeps between its calls. If so, the clock is read more often.
     */
    private static final int LATE = 4;
    /**
     * Minimum time between two checks of the socket. A check costs one system call. An idle rank has dozens of
     * connections, so frequent checks would take most of the rank's processor time.
     */
    private static final long SOCKET_INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private final SocketChannel socket;
    private final WatchedProcess peer;
    private final RingMemory ring;
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(1);
    private Runnable lastAct = () -> {};
    private int idleCalls;
    private int clockInterval = CLOCK_INTERVAL;
    private long lastClockNanos = System.nanoTime();
    private long lastLookNanos = lastClockNanos;

    /** Takes ownership of an established connection. The socket is non-blocking, and no more data is sent over it. */
    public ShmConnection(OpenResources network, String name, SocketChannel socket, ProcessIdentity peer,
            RingMemory ring) {
        super(network, name, peer + " on " + ProcessIdentity.HOST);
        this.socket = socket;
        this.peer = WatchedProcess.of(peer);
        this.ring = ring;
    }

    RingMemory ring() {
        return ring;
    }

    /** Returns the ID of the peer's process. */
    long peerProcess() {
        return peer.identity().pid();
    }

    /**
     * Sets an action that is executed when the connection is closed or lost, before the ring is unmapped.
     */
    void beforeRelease(Runnable last) {
        lastAct = last;
    }

    /**
     * Returns whether the peer's process has ended. An idle sender or receiver calls this method often, but most calls
     * check nothing. When the peer's process ends, the operating system closes the peer's socket, unless child
     * processes have inherited the socket. Therefore this method also checks the process, but less often than the
     * socket. If the caller sleeps between its calls, fewer calls pass between two reads of the clock.
     */
    boolean peerIsGone() {
        if (++idleCalls < clockInterval) {
            return false;
        }
        idleCalls = 0;
        long now = System.nanoTime();
        long passed = now - lastClockNanos;
        lastClockNanos = now;
        if (passed < CLOCK_NANOS) {
            clockInterval = Math.min(2 * clockInterval, CLOCK_INTERVAL);
        } else if (passed > LATE * CLOCK_NANOS) {
            clockInterval = Math.max(clockInterval / 2, 1);
        }
        if (now - lastLookNanos < SOCKET_INTERVAL_NANOS) {
            return false;
        }
        lastLookNanos = now;
        try {
            int read = socket.read(buffer);
            if (read > 0) {
                throw corrupt("the peer sent data over a socket that only shows the peer's end");
            }
            return read < 0 || peer.isProvablyDead();
        } catch (IOException e) {
            LOG.debug("{}: the socket failed, so the peer is gone", this, e);
            return true;
        }
    }

    ConnectionException lost(String progress) {
        network().peerWasLost();
        return lost("the peer's process, " + peer.identity() + ", is gone without a shutdown message", progress,
                "; it was killed, or it aborted the connection: see the peer's last log lines", null);
    }

    /**
     * Closes the connection because the contents of the ring violate the protocol. Later contents cannot be trusted
     * either. Returns the exception.
     */
    ConnectionException corrupt(String problem) {
        return failAndClose(": the ring is corrupted: " + problem + "; the connection is closed. A process wrote to "
                + "memory that is not its own, or the two ends run different versions");
    }

    /** Records a failure, and closes the socket, so that the peer detects the loss of the connection. */
    private ConnectionException failAndClose(String what) {
        ConnectionException first = fail(new ConnectionException(this + what));
        closeQuietly(socket);
        return first;
    }

    /** Closes the connection because a payload in the peer's memory cannot be read. Returns the exception. */
    ConnectionException unreadable(long address, long bytes, String why, String progress) {
        return failAndClose(": cannot read " + bytes + " bytes of a payload at 0x" + Long.toHexString(address)
                + " in the memory of " + peer.identity() + ": " + why + "; the connection is closed " + progress + ". "
                + SingleCopy.SETTING + "=0 has payloads copied through the ring");
    }

    /**
     * Returns the exception for an access to memory that is no longer mapped.
     *
     * @param e exception of the access. An {@link IllegalStateException} means that another thread closed the
     *          connection, or that the caller's memory was closed. An {@link InternalError} is a SIGBUS: the ring's
     *          file has become shorter than its mapping.
     */
    RuntimeException endedBy(Throwable e) {
        if (e instanceof InternalError) {
            return corrupt("its file was truncated (" + e.getMessage() + ")");
        }
        ConnectionException first = failure();
        return first == null ? (IllegalStateException) e : first;
    }

    /** Closes the connection once. First executes an action that may use the ring. */
    void closeWith(Runnable last) {
        close(() -> ifThere(last));
    }

    private void ifThere(Runnable use) {
        try {
            use.run();
        } catch (InternalError shorter) {
            LOG.debug("{}: nothing can be written to a ring whose file was truncated", this, shorter);
        }
    }

    @Override
    protected void release() {
        ifThere(lastAct);
        closeQuietly(socket);
        peer.close();
        ring.close();
    }
}
