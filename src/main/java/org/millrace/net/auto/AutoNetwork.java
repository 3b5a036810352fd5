package org.millrace.net.auto;

import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.file.ShmUnavailableException;
import org.millrace.net.shm.handshake.ShmAddress;
import org.millrace.net.socket.SocketNetwork;

/**
 * Frames over shared memory between processes of one user that see one shared directory of one host, and over TCP
 * between all others. Where shared memory should work and does not, the reason is logged once, and the connection is
 * made over TCP.
 */
public final class AutoNetwork implements Network {

    private static final Logger LOG = LogManager.getLogger(AutoNetwork.class);

    private final ShmNetwork shm;
    private final SocketNetwork socket;
    private final AtomicBoolean unavailableLogged = new AtomicBoolean();

    /**
     * Takes two networks over: they are closed with this one.
     *
     * @param shm    for peers on this host
     * @param socket for the others
     */
    public AutoNetwork(ShmNetwork shm, SocketNetwork socket) {
        this.shm = shm;
        this.socket = socket;
    }

    @Override
    public String name() {
        return "auto";
    }

    @Override
    public Listener listen() {
        Listener overSocket = socket.listen();
        AutoAddress address = new AutoAddress(overSocket.address(), ShmAddress.thisHost());
        try {
            return new AutoListener(address.encode(), overSocket, shm.listen(address.shm()));
        } catch (ShmUnavailableException e) {
            noSharedMemory(e);
            return new AutoListener(new AutoAddress(overSocket.address(), 0).encode(), overSocket, null);
        } catch (RuntimeException e) {
            overSocket.close();
            throw e;
        }
    }

    @Override
    public Pending<FrameSender> connect(byte[] address, ConnectionKey key) {
        return new Connecting(this, AutoAddress.decode(address), key);
    }

    @Override
    public MemoryRegion register(MemorySegment memory) {
        return new AutoRegion(shm.register(memory), socket.register(memory));
    }

    @Override
    public MemoryRegion allMemory() {
        return new AutoRegion(shm.allMemory(), socket.allMemory());
    }

    /**
     * What of a region the connections of one network take. A region that is none of ours is left for them to refuse.
     */
    static MemoryRegion part(MemoryRegion region, boolean overShm) {
        return region instanceof AutoRegion both ? overShm ? both.shm() : both.socket() : region;
    }

    ShmNetwork shm() {
        return shm;
    }

    SocketNetwork socket() {
        return socket;
    }

    /** Logs why shared memory is not used where it might be. */
    void noSharedMemory(ConnectionException why) {
        LOG.log(unavailableLogged.compareAndSet(false, true) ? Level.WARN : Level.DEBUG,
                "no shared memory, TCP instead: {}", why.getMessage());
    }

    @Override
    public void close() {
        try {
            shm.close();
        } finally {
            socket.close();
        }
    }
}
