package org.millrace.net.auto;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.shm.SharedMemory;
import org.millrace.net.shm.ShmNetwork.ShmAddress;
import org.millrace.net.shm.ShmNetwork;
import org.millrace.net.shm.ShmUnavailableException;
import org.millrace.net.socket.SocketNetwork;
import org.millrace.net.ucx.UcxNetwork;

/**
 * Chooses the network for each pair of processes. Two processes use shared memory if they are on one host, belong to
 * one user and see the same shared directory. Other pairs use UCX if both processes have a card with RDMA, and
 * otherwise TCP. If shared memory should be possible but fails, the reason is logged once, and the connection uses TCP
 * or UCX.
 */
final class AutoNetwork implements Network {

    private static final Logger LOG = LogManager.getLogger(AutoNetwork.class);

    private final ShmNetwork shm;
    private final SocketNetwork socket;
    /** UCX; null if the process has no card that UCX could use. */
    private final @Nullable UcxNetwork ucx;
    private final AtomicBoolean unavailableLogged = new AtomicBoolean();

    /**
     * Creates a network that consists of other networks, which are closed with it. UCX replaces TCP for connections to
     * peers that also have UCX. UCX finds its peers over TCP.
     */
    AutoNetwork(ShmNetwork shm, SocketNetwork socket, Optional<UcxNetwork> ucx) {
        this.shm = shm;
        this.socket = socket;
        this.ucx = ucx.orElse(null);
    }

    @Override
    public String name() {
        return "auto";
    }

    @Override
    public Listener listen() {
        Listener overSocket = socket.listen();
        AutoAddress address = new AutoAddress(overSocket.address(), SharedMemory.thisHost(), ucx != null);
        try {
            return new BothListener(address.encode(), overSocket, shm.listen(address.shm()), ucx);
        } catch (ShmUnavailableException e) {
            noSharedMemory(e);
            return new BothListener(new AutoAddress(overSocket.address(), 0, ucx != null).encode(), overSocket, null,
                    ucx);
        } catch (RuntimeException e) {
            overSocket.close();
            throw e;
        }
    }

    @Override
    public Pending<FrameSender> connect(byte[] address, ConnectionKey key) {
        return new AutoConnect(this, AutoAddress.decode(address), key);
    }

    @Override
    public MemoryRegion register(MemorySegment memory) {
        return withUcx(new NativeRegion.Pair(shm.register(memory), socket.register(memory)),
                ucx == null ? null : ucx.register(memory));
    }

    @Override
    public MemoryRegion allMemory() {
        return withUcx(new NativeRegion.Pair(shm.allMemory(), socket.allMemory()),
                ucx == null ? null : ucx.allMemory());
    }

    private static MemoryRegion withUcx(NativeRegion.Pair pair, @Nullable NativeRegion overUcx) {
        return overUcx == null ? pair : new NativeRegion.Pair(overUcx, pair);
    }

    /** Begins to connect to a peer, over UCX or TCP. */
    private Pending<FrameSender> connectRemote(AutoAddress address, ConnectionKey key) {
        return ucx != null && address.ucx() ? ucx.connectBeside(address.socket(), key)
                : socket.connect(address.socket(), key);
    }

    /** Logs the reason why shared memory is not used although it should be possible. Warns only once. */
    void noSharedMemory(ConnectionException why) {
        LOG.log(unavailableLogged.compareAndSet(false, true) ? Level.WARN : Level.DEBUG,
                "no shared memory, TCP instead: {}", why.getMessage());
    }

    @Override
    public void close() {
        try {
            shm.close();
            if (ucx != null) {
                ucx.close();
            }
        } finally {
            socket.close();
        }
    }

    /**
     * A listener that consists of a listener for TCP and a listener for shared memory. UCX uses the listener for TCP.
     *
     * @param shm null if shared memory is unavailable
     * @param ucx null if UCX is unavailable
     */
    private record BothListener(byte[] address, Listener socket, @Nullable Listener shm,
            @Nullable UcxNetwork ucx) implements Listener {

        @Override
        public byte[] address() {
            return address.clone();
        }

        @Override
        public Pending<FrameReceiver> expect(ConnectionKey key) {
            Pending<FrameReceiver> overSocket = socket.expect(key);
            return new AutoAccept(shm == null ? null : shm.expect(key),
                    ucx == null ? null : ucx.expectBeside(socket, key), overSocket);
        }

        /**
         * {@inheritDoc} {@code attend} is not called for the listener for shared memory, because only processes of this
         * user can connect to that listener.
         */
        @Override
        public void attend() {
            socket.attend();
        }

        @Override
        public long dropped() {
            return socket.dropped() + (shm == null ? 0 : shm.dropped());
        }

        @Override
        public void close() {
            socket.close();
            if (shm != null) {
                shm.close();
            }
        }

        @Override
        public String toString() {
            return shm == null ? socket.toString() : socket + " and " + shm;
        }
    }

    /**
     * A pending connection. If the peer is on this host, the connection is first attempted over shared memory. If this
     * is not possible, UCX or TCP is used.
     */
    private static final class AutoConnect implements Pending<FrameSender> {

        private final AutoNetwork network;
        private final AutoAddress address;
        private final ConnectionKey key;
        private Pending<FrameSender> current;
        private boolean closed;

        AutoConnect(AutoNetwork network, AutoAddress address, ConnectionKey key) {
            this.network = network;
            this.address = address;
            this.key = key;
            if (address.isOnThisHost()) {
                try {
                    current = network.shm.connect(address.shm().encode(), key);
                    return;
                } catch (ShmUnavailableException e) {
                    network.noSharedMemory(e);
                }
            }
            current = network.connectRemote(address, key);
        }

        @Override
        public synchronized @Nullable FrameSender poll() {
            try {
                return current.poll();
            } catch (ShmUnavailableException e) {
                if (closed) {
                    throw e;
                }
                network.noSharedMemory(e);
                try {
                    current = network.connectRemote(address, key);
                } catch (ConnectionException neither) {
                    neither.addSuppressed(e);
                    throw neither;
                }
                return null;
            }
        }

        @Override
        public synchronized String describe() {
            return current.describe();
        }

        @Override
        public synchronized void close() {
            closed = true;
            current.close();
        }

        @Override
        public String toString() {
            return current.toString();
        }
    }

    /** A connection that is expected on all networks, and that arrives on one of them. */
    private static final class AutoAccept implements Pending<FrameReceiver> {

        /** Connection expected over shared memory; null without shared memory, or after the connection has failed. */
        private @Nullable Pending<FrameReceiver> overShm;
        private final @Nullable Pending<FrameReceiver> overUcx;
        private final Pending<FrameReceiver> overSocket;

        AutoAccept(@Nullable Pending<FrameReceiver> overShm, @Nullable Pending<FrameReceiver> overUcx,
                Pending<FrameReceiver> overSocket) {
            this.overUcx = overUcx;
            this.overShm = overShm;
            this.overSocket = overSocket;
        }

        @Override
        public synchronized @Nullable FrameReceiver poll() {
            FrameReceiver receiver = pollShm();
            if (receiver == null) {
                receiver = overUcx == null ? null : overUcx.poll();
                receiver = receiver == null ? overSocket.poll() : receiver;
                if (receiver == null) {
                    return null;
                }
            }
            // Cancels the connections that are expected on the other networks. The returned connection stays open,
            // because it is established.
            close();
            return receiver;
        }

        private @Nullable FrameReceiver pollShm() {
            if (overShm == null) {
                return null;
            }
            try {
                return overShm.poll();
            } catch (ConnectionException e) {
                // The connection over shared memory has failed, for one of two reasons. If this process cannot map the
                // peer's ring, the shared-memory network has logged this and has informed the peer. The peer then
                // connects over UCX or TCP. If the listener was closed, the expected connection over TCP reports the
                // close, too.
                overShm = null;
                return null;
            }
        }

        @Override
        public synchronized void close() {
            if (overShm != null) {
                overShm.close();
            }
            if (overUcx != null) {
                overUcx.close();
            }
            overSocket.close();
        }

        @Override
        public String toString() {
            return overSocket.toString();
        }
    }

    /**
     * Address of a listener for several networks, little-endian. The socket network's address ends with zeros after its
     * secret. The address of this class has the host and a magic number instead of the zeros.
     *
     * <pre>
     *   0                                  52       60       64
     *   +----------------------------------+--------+--------+
     *   | socket network's address         | host   | magic  |
     *   | with its secret                  | i64    | u32    |
     *   +----------------------------------+--------+--------+
     * </pre>
     *
     * <p>
     * The host is 0 if the listener has no shared memory. The address does not contain the ID and the secret of the
     * shared-memory listener. Both processes compute this ID and this secret from a hash of the socket network's
     * address. The socket network's address contains a secret, so a process without this address cannot compute the
     * hash.
     *
     * @param socket the address for the socket network
     * @param host   number of the host, see {@link SharedMemory#thisHost}; 0 for a listener without shared memory
     * @param ucx    whether the listener's process has a card that UCX can use; determines the magic number
     */
    record AutoAddress(byte[] socket, long host, boolean ucx) {

        private static final int HOST_OFFSET = 52;
        private static final int MAGIC_OFFSET = 60;
        private static final int MAGIC = 0x6f747541;
        private static final int MAGIC_UCX = 0x75747541;

        byte[] encode() {
            byte[] bytes = socket.clone();
            ByteBuffer buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
            if (buffer.getLong(HOST_OFFSET) != 0 || buffer.getInt(MAGIC_OFFSET) != 0) {
                throw new IllegalStateException("the socket network's addresses use bytes from " + HOST_OFFSET
                        + " on, which are used for host and magic number");
            }
            buffer.putLong(HOST_OFFSET, host).putInt(MAGIC_OFFSET, ucx ? MAGIC_UCX : MAGIC);
            return bytes;
        }

        static AutoAddress decode(byte[] address) {
            ByteBuffer buffer = Listener.numbers(address);
            int magic = buffer.getInt(MAGIC_OFFSET);
            if (magic != MAGIC && magic != MAGIC_UCX) {
                throw new ConnectionException(
                        "not an address of the network 'auto'. Both ends of a connection must use the same network");
            }
            return new AutoAddress(Arrays.copyOf(Arrays.copyOf(address, HOST_OFFSET), address.length),
                    buffer.getLong(HOST_OFFSET), magic == MAGIC_UCX);
        }

        boolean isOnThisHost() {
            return host == SharedMemory.thisHost();
        }

        /** Returns the address of the shared-memory listener. */
        ShmAddress shm() {
            try {
                ByteBuffer hash = ByteBuffer
                        .wrap(MessageDigest.getInstance("SHA-256").digest(Arrays.copyOf(socket, HOST_OFFSET)));
                byte[] secret = new byte[ShmAddress.SECRET_BYTES];
                long id = hash.getLong();
                hash.get(secret);
                return new ShmAddress(id, host, secret);
            } catch (NoSuchAlgorithmException e) {
                throw new IllegalStateException("every JDK has SHA-256", e);
            }
        }
    }
}
