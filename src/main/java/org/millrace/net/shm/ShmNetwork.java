package org.millrace.net.shm;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.SecureRandom;
import java.util.Arrays;
import org.millrace.file.StaleFiles;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.connection.HelloFormat;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;

/**
 * Frames over memory that processes of one user on one host share. To move frames, this network uses no lock and no
 * additional thread. It uses a system call only to read a large payload in the sender's memory
 * ({@link ShmOptions#singleCopy}).
 */
public final class ShmNetwork implements Network {

    private final ShmOptions options;
    private final long firstPosition;
    private final OpenResources open = new OpenResources("shared-memory network");

    public ShmNetwork(ShmOptions options) {
        this(options, 0);
    }

    /**
     * Position at which rings begin, a multiple of their alignment. Tests choose it so that positions wrap soon.
     */
    ShmNetwork(ShmOptions options, long firstPosition) {
        this.options = options;
        this.firstPosition = firstPosition;
    }

    @Override
    public String name() {
        return "shm";
    }

    @Override
    public Listener listen() {
        return listen(ShmAddress.here(new SecureRandom().nextLong(), HelloFormat.newSecret()));
    }

    /**
     * Opens a listener at an address that the caller has created. Peers may then learn the address without
     * {@link Listener#address}.
     *
     * @param address address on this host, with an ID and a secret that no other listener has
     * @throws org.millrace.net.shm.ShmUnavailableException if no listener can be opened
     */
    public Listener listen(ShmAddress address) {
        open.checkOpen();
        ShmListener listener = ShmListener.open(open, options, address);
        open.opened(listener, listener::close);
        return listener;
    }

    @Override
    public Pending<FrameSender> connect(byte[] address, ConnectionKey key) {
        open.checkOpen();
        ShmConnect connection = ShmConnect.begin(open, options, firstPosition, ShmAddress.decode(address), key);
        open.opened(connection, connection::close);
        return connection;
    }

    @Override
    public NativeRegion register(MemorySegment memory) {
        open.checkOpen();
        return ShmRegion.of(open, memory, options.singleCopy());
    }

    @Override
    public NativeRegion allMemory() {
        open.checkOpen();
        return ShmRegion.all(open);
    }

    @Override
    public void close() {
        open.close();
        if (open.hasLostPeer()) {
            // Deletes the files of processes that have ended, for instance of a lost peer. Deleting when a loss is
            // detected would be too early: a killed peer's sockets are closed shortly before its process has ended.
            StaleFiles.sweep(options.directory());
        }
    }

    /** Registered memory, and whether a peer can read it through the operating system. */
    static final class ShmRegion extends NativeRegion {

        private static final String NAME = "shared-memory network's region";

        private final boolean readable;

        private ShmRegion(OpenResources network, MemorySegment memory, boolean readable) {
            super(network, memory, NAME);
            this.readable = readable;
        }

        /**
         * Registers memory of any kind. Other processes cannot read some kinds through the operating system, for
         * example device registers.
         */
        public static ShmRegion of(OpenResources network, MemorySegment memory, SingleCopy singleCopy) {
            return new ShmRegion(network, memory, singleCopy.use() != SingleCopy.Use.OFF && memory.isNative()
                    && SingleCopy.isReadable(memory.address(), memory.byteSize()));
        }

        /**
         * Returns a region of all memory of the process. Frames use only the user's memory in this region. Peers can
         * read that memory through the operating system.
         */
        public static ShmRegion all(OpenResources network) {
            return new ShmRegion(network, ALL_MEMORY, true);
        }

        /** Returns whether a payload may stay in this memory until the peer has read it. */
        boolean isReadable() {
            return readable;
        }
    }

    /**
     * Address of a listener. Ranks exchange it in this form, little-endian:
     *
     * <pre>
     *   0          8         10     12       20          28      36         52     64
     *   +----------+---------+------+--------+-----------+-------+----------+------+
     *   | network  | version | 0    | id     | host      | 0     | secret   | 0    |
     *   | 8 chars  | u16     |      | i64    | i64       |       | 16 bytes |      |
     *   +----------+---------+------+--------+-----------+-------+----------+------+
     * </pre>
     *
     * @param id     ID of the listener; the name of the listener's socket begins with this ID
     * @param host   number of the host, see {@link SharedMemory#thisHost}
     * @param secret {@value #SECRET_BYTES} bytes that a peer must know
     */
    public record ShmAddress(long id, long host, byte[] secret) {

        /** Length of a secret in bytes. */
        public static final int SECRET_BYTES = HelloFormat.SECRET_BYTES;

        private static final byte[] NETWORK = {'s', 'h', 'm', 0, 0, 0, 0, 0};
        private static final int VERSION_OFFSET = 8;
        private static final int ID_OFFSET = 12;
        private static final int HOST_OFFSET = 20;
        private static final int SECRET_OFFSET = 36;

        public ShmAddress {
            if (secret.length != SECRET_BYTES) {
                throw new IllegalArgumentException("a secret has " + SECRET_BYTES + " bytes, not " + secret.length);
            }
            secret = secret.clone();
        }

        public static ShmAddress here(long id, byte[] secret) {
            return new ShmAddress(id, SharedMemory.thisHost(), secret);
        }

        @Override
        public byte[] secret() {
            return secret.clone();
        }

        /** Returns the address encoded in {@link Listener#ADDRESS_BYTES} bytes. */
        public byte[] encode() {
            ByteBuffer bytes = ByteBuffer.allocate(Listener.ADDRESS_BYTES).order(ByteOrder.LITTLE_ENDIAN);
            bytes.put(0, NETWORK);
            bytes.putShort(VERSION_OFFSET, (short) RingLayout.VERSION);
            bytes.putLong(ID_OFFSET, id);
            bytes.putLong(HOST_OFFSET, host);
            bytes.put(SECRET_OFFSET, secret);
            return bytes.array();
        }

        /**
         * Decodes the result of {@link #encode}.
         *
         * @throws ConnectionException if the bytes are not an address of this network
         */
        public static ShmAddress decode(byte[] address) {
            ByteBuffer bytes = Listener.numbers(address);
            if (!Arrays.equals(address, 0, NETWORK.length, NETWORK, 0, NETWORK.length)) {
                throw new ConnectionException(
                        "not an address of the network 'shm'. Both ends of a connection must use the same network");
            }
            int version = Short.toUnsignedInt(bytes.getShort(VERSION_OFFSET));
            if (version != RingLayout.VERSION) {
                throw new ConnectionException(
                        "the listener's address is of version " + version + ", this side uses version "
                                + RingLayout.VERSION + ": use the same Millrace in all processes");
            }
            return new ShmAddress(bytes.getLong(ID_OFFSET), bytes.getLong(HOST_OFFSET),
                    Arrays.copyOfRange(address, SECRET_OFFSET, SECRET_OFFSET + SECRET_BYTES));
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof ShmAddress that && Arrays.equals(encode(), that.encode());
        }

        @Override
        public int hashCode() {
            return Long.hashCode(id);
        }

        /** Returns a text without the secret. */
        @Override
        public String toString() {
            return "shm:" + Long.toHexString(id) + "@" + Long.toHexString(host);
        }
    }
}
