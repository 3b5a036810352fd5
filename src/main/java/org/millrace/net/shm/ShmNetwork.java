package org.millrace.net.shm;

import java.lang.foreign.MemorySegment;
import java.security.SecureRandom;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.millrace.net.AllMemory;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.shm.file.ShmUnavailableException;
import org.millrace.net.shm.file.StaleFiles;
import org.millrace.net.shm.handshake.ShmAddress;
import org.millrace.net.shm.handshake.ShmConnect;
import org.millrace.net.shm.handshake.ShmListener;
import org.millrace.net.shm.ring.RingLayout;
import org.millrace.net.shm.ring.ShmOptions;
import org.millrace.net.shm.ring.ShmRegion;

/**
 * Frames over memory that processes of one user on one host share: no system call, no lock and no thread of its own on
 * the path of a frame.
 */
public final class ShmNetwork implements Network {

    private final ShmOptions options;
    private final long firstPosition;
    /** What is open, and how to close it. */
    private final Map<Object, Runnable> open = new ConcurrentHashMap<>();
    private volatile boolean lostAPeer;
    private volatile boolean closed;

    /**
     * A network.
     *
     * @param options where to make rings, and how to move frames
     */
    public ShmNetwork(ShmOptions options) {
        this(options, 0);
    }

    /**
     * A network whose rings begin at a given position: for tests of what happens when positions wrap.
     *
     * @param firstPosition any multiple of {@link RingLayout#ALIGNMENT}
     */
    public ShmNetwork(ShmOptions options, long firstPosition) {
        this.options = options;
        this.firstPosition = firstPosition;
    }

    @Override
    public String name() {
        return "shm";
    }

    @Override
    public Listener listen() {
        SecureRandom random = new SecureRandom();
        byte[] secret = new byte[ShmAddress.SECRET_BYTES];
        random.nextBytes(secret);
        return listen(ShmAddress.here(random.nextLong(), secret));
    }

    /**
     * Opens a place for peers to connect to at an address that the caller made, so that peers can know it by other
     * means than {@link Listener#address}.
     *
     * @param address on this host, with an id and a secret that no other listener has
     * @return a listener
     * @throws ShmUnavailableException if no place can be opened
     */
    public Listener listen(ShmAddress address) {
        checkOpen();
        ShmListener listener = new ShmListener(this, address);
        opened(listener, listener::close);
        return listener;
    }

    /**
     * Begins to connect to a listener.
     *
     * @throws ShmUnavailableException if the listener is on another host, or its socket is not to be seen from here
     */
    @Override
    public Pending<FrameSender> connect(byte[] address, ConnectionKey key) {
        checkOpen();
        ShmConnect connection = new ShmConnect(this, ShmAddress.decode(address), key);
        opened(connection, connection::close);
        return connection;
    }

    @Override
    public MemoryRegion register(MemorySegment memory) {
        checkOpen();
        return new ShmRegion(this, memory);
    }

    @Override
    public MemoryRegion allMemory() {
        return register(AllMemory.SEGMENT);
    }

    public ShmOptions options() {
        return options;
    }

    public long firstPosition() {
        return firstPosition;
    }

    /** Notes what is to be closed with the network. */
    public void opened(Object what, Runnable close) {
        open.put(what, close);
        if (closed) {
            // The network was closed meanwhile, and may have missed it.
            close.run();
            checkOpen();
        }
    }

    /** Notes that something was closed. */
    public void forget(Object what) {
        open.remove(what);
    }

    /**
     * Notes that a peer was killed: what it left behind is cleaned up when the network is closed, as it is not quite
     * dead when its sockets are.
     */
    public void peerWasLost() {
        lostAPeer = true;
    }

    private void checkOpen() {
        if (closed) {
            throw new IllegalStateException("the shared-memory network was closed");
        }
    }

    @Override
    public void close() {
        closed = true;
        open.values().forEach(Runnable::run);
        if (lostAPeer) {
            StaleFiles.sweep(options.directory());
        }
    }
}
