package org.millrace.net.shm;

import java.lang.foreign.MemorySegment;
import java.security.SecureRandom;
import org.millrace.file.StaleFiles;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.connection.HelloFormat;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;

/**
 * Frames over memory that processes of one user on one host share: no lock and no thread of its own on the path of a
 * frame, and no system call unless a large payload is read in the sender's memory ({@link ShmOptions#singleCopy}).
 */
public final class ShmNetwork implements Network {

    private final ShmOptions options;
    private final long firstPosition;
    private final OpenResources open = new OpenResources("shared-memory network");

    public ShmNetwork(ShmOptions options) {
        this(options, 0);
    }

    /** For tests of positions that wrap: rings begin at a multiple of their alignment. */
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
     * Opens a place for peers to connect to at an address that the caller made, so that peers can know it by other
     * means than {@link Listener#address}.
     *
     * @param address on this host, with an id and a secret that no other listener has
     * @throws org.millrace.net.shm.ShmUnavailableException if no place can be opened
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
            // Only now: a process that was killed is not quite dead when its sockets are.
            StaleFiles.sweep(options.directory());
        }
    }

    /** Registered memory, and whether the kernel reads it for a peer. */
    static final class ShmRegion extends NativeRegion {

        private static final String NAME = "shared-memory network's region";

        private final boolean readable;

        private ShmRegion(OpenResources network, MemorySegment memory, boolean readable) {
            super(network, memory, NAME);
            this.readable = readable;
        }

        /**
         * Registers memory of any kind: some kinds, as a device's registers, are none that the kernel reads for others.
         */
        public static ShmRegion of(OpenResources network, MemorySegment memory, SingleCopy singleCopy) {
            return new ShmRegion(network, memory, singleCopy.use() != SingleCopy.Use.OFF && memory.isNative()
                    && SingleCopy.isReadable(memory.address(), memory.byteSize()));
        }

        /** All memory of the process, which is the user's where it is used, and so of a kind that can be read. */
        public static ShmRegion all(OpenResources network) {
            return new ShmRegion(network, ALL_MEMORY, true);
        }

        /** Whether payloads may be left here until the peer has read them. */
        boolean isReadable() {
            return readable;
        }
    }
}
