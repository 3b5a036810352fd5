package org.millrace.net.ucx;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;
import java.util.function.BiFunction;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;

/**
 * Frames over UCX, which selects the transports. The user's {@code UCX_*} variables configure UCX. Another network,
 * usually TCP, establishes the connections and reports when a peer has closed or is lost.
 */
public final class UcxNetwork implements Network {

    private static final Logger LOG = LogManager.getLogger(UcxNetwork.class);
    /** Linux's directory with an entry for each RDMA card that has a driver. */
    private static final Path CARDS = Path.of("/sys/class/infiniband");
    /**
     * Offset of the magic number that marks an address of this network. In addresses of the network that establishes
     * the connections, bytes 60 to 63 are 0.
     */
    private static final int MAGIC_OFFSET = 60;
    private static final int MAGIC = 'U' | 'C' << 8 | 'X' << 16 | '1' << 24;

    private final Network finder;
    private final UcxContext context;
    private final UcxWorkers workers;
    private final OpenResources open = new OpenResources("UCX network");

    /**
     * Creates a network with the process's context.
     *
     * @param library path of libucp; empty if the loader searches for it
     * @param finder  network that establishes the connections; closed with this network
     * @throws UcxUnavailableException if UCX cannot be used on this machine
     */
    public UcxNetwork(Optional<Path> library, Network finder) {
        this(UcxContext.get(library), finder);
    }

    /** Creates a network with its own context. */
    UcxNetwork(UcxContext context, Network finder) {
        this.finder = finder;
        this.context = context;
        workers = new UcxWorkers(context);
    }

    /** Returns a network if this host has an RDMA card that UCX can use; otherwise empty. */
    public static Optional<UcxNetwork> withCard(Optional<Path> library, Network finder) {
        if (!hasCard(CARDS)) {
            // Returns early, so that the library is not loaded.
            return Optional.empty();
        }
        try {
            UcxContext context = UcxContext.get(library);
            return context.reachesRemoteMemory() ? Optional.of(new UcxNetwork(context, finder)) : Optional.empty();
        } catch (UcxUnavailableException e) {
            LOG.info("there is a card with RDMA in {}, and UCX cannot drive it, TCP instead: {}", CARDS,
                    e.getMessage());
            return Optional.empty();
        }
    }

    /**
     * Returns a text for users that names the transports that UCX may use.
     *
     * @throws UcxUnavailableException if UCX cannot be used on this machine
     */
    public static String describe(Optional<Path> library) {
        UcxContext context = UcxContext.get(library);
        return context.library() + ": " + String.join(", ", context.transports())
                + (context.reachesRemoteMemory() ? "" : "; no card with RDMA");
    }

    private static boolean hasCard(Path cards) {
        try (DirectoryStream<Path> there = Files.newDirectoryStream(cards)) {
            return there.iterator().hasNext();
        } catch (IOException none) {
            return false;
        }
    }

    @Override
    public String name() {
        return "ucx";
    }

    /**
     * Expects a peer that calls {@link #connectBeside}. The two processes first connect over the caller's socket
     * network, which exchanges the addresses of UCX.
     *
     * @param listener the socket network's listener. The listener may at the same time expect the socket network's own
     *                 connections.
     */
    public Pending<FrameReceiver> expectBeside(Listener listener, ConnectionKey key) {
        open.checkOpen();
        return expect(listener, key, beside(key));
    }

    /**
     * Begins to connect to a peer that calls {@link #expectBeside}.
     *
     * @param address address of the listener that the peer passed to {@link #expectBeside}
     */
    public Pending<FrameSender> connectBeside(byte[] address, ConnectionKey key) {
        open.checkOpen();
        return connect(address, key, beside(key));
    }

    /**
     * Returns another key, for a connection over UCX. The original key cannot be used: the socket network may have its
     * own connection with this key on the same listener.
     */
    private static ConnectionKey beside(ConnectionKey key) {
        return new ConnectionKey(~key.high(), key.low());
    }

    private Pending<FrameReceiver> expect(Listener listener, ConnectionKey key, ConnectionKey foundBy) {
        return new Found<>(listener.expect(foundBy), (found, name) -> new UcxReceiver(open,
                "UCX connection " + key + " from " + name, found, finder, workers), FrameReceiver::peer);
    }

    private Pending<FrameSender> connect(byte[] address, ConnectionKey key, ConnectionKey foundBy) {
        return new Found<>(finder.connect(address, foundBy),
                (found, name) -> new UcxSender(open, "UCX connection " + key + " to " + name, found, finder, workers),
                FrameSender::peer);
    }

    @Override
    public Listener listen() {
        open.checkOpen();
        Listener listener = finder.listen();
        byte[] address = listener.address();
        ByteBuffer buffer = ByteBuffer.wrap(address).order(ByteOrder.LITTLE_ENDIAN);
        if (buffer.getInt(MAGIC_OFFSET) != 0) {
            throw new IllegalStateException(
                    finder.name() + "'s addresses use their last bytes, which are used for a magic number");
        }
        buffer.putInt(MAGIC_OFFSET, MAGIC);
        return new Listener() {
            @Override
            public byte[] address() {
                return address.clone();
            }

            @Override
            public Pending<FrameReceiver> expect(ConnectionKey key) {
                return UcxNetwork.this.expect(listener, key, key);
            }

            @Override
            public void close() {
                listener.close();
            }

            @Override
            public String toString() {
                return "UCX, found by " + listener;
            }
        };
    }

    @Override
    public Pending<FrameSender> connect(byte[] address, ConnectionKey key) {
        open.checkOpen();
        byte[] finders = address.clone();
        ByteBuffer buffer = Listener.numbers(finders);
        if (buffer.getInt(MAGIC_OFFSET) != MAGIC) {
            throw new ConnectionException(
                    "not an address of the network 'ucx'. Both ends of a connection must use the same network");
        }
        buffer.putInt(MAGIC_OFFSET, 0);
        return connect(finders, key, key);
    }

    @Override
    public NativeRegion register(MemorySegment memory) {
        open.checkOpen();
        return UcxRegion.register(open, context, memory);
    }

    @Override
    public NativeRegion allMemory() {
        open.checkOpen();
        return UcxRegion.all(open, context);
    }

    @Override
    public void close() {
        try {
            open.close();
            workers.close();
        } finally {
            finder.close();
        }
    }

    /**
     * A pending connection. {@link #poll} returns the connection as soon as the processes have found each other over
     * the socket network. The threads that poll the new UCX connection then complete the handshake over UCX.
     */
    private record Found<T>(Pending<T> pending, BiFunction<T, String, T> made,
            java.util.function.Function<T, String> peer) implements Pending<T> {

        @Override
        public @Nullable T poll() {
            T found = pending.poll();
            return found == null ? null : made.apply(found, peer.apply(found));
        }

        @Override
        public String describe() {
            return "UCX, found by " + pending.describe();
        }

        @Override
        public void close() {
            pending.close();
        }

        @Override
        public String toString() {
            return "UCX, found by " + pending;
        }
    }

    /** Failure because UCX cannot be used on this machine. Another network may be usable. */
    public static class UcxUnavailableException extends ConnectionException {

        private static final long serialVersionUID = 1L;

        private final String problem;
        private final String remedy;
        private final boolean missing;

        UcxUnavailableException(String problem, String remedy) {
            this(problem, remedy, false);
        }

        UcxUnavailableException(String problem, String remedy, boolean missing) {
            super(problem + ": " + remedy);
            this.problem = problem;
            this.remedy = remedy;
            this.missing = missing;
        }

        /** {@return the problem and its location} */
        public String problem() {
            return problem;
        }

        public String remedy() {
            return remedy;
        }

        /** {@return whether the reason is that UCX is not installed} */
        public boolean isMissing() {
            return missing;
        }
    }
}
