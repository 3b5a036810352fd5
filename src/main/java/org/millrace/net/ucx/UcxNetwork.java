package org.millrace.net.ucx;

import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.Optional;
import java.util.function.BiFunction;
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
import org.millrace.net.ucx.frames.UcxReceiver;
import org.millrace.net.ucx.frames.UcxSender;
import org.millrace.net.ucx.library.UcxContext;
import org.millrace.net.ucx.library.UcxRegion;
import org.millrace.net.ucx.worker.UcxWorkers;

/**
 * Frames over UCX, which picks the transports: the user's {@code UCX_*} variables are its own. Connections are found
 * and ended over another network.
 */
public final class UcxNetwork implements Network {

    /** In the last bytes of an address, which the other network leaves 0. */
    private static final int MAGIC_OFFSET = 60;
    private static final int MAGIC = 'U' | 'C' << 8 | 'X' << 16 | '1' << 24;

    private final Network finder;
    private final UcxContext context;
    private final UcxWorkers workers;
    private final OpenResources open = new OpenResources("UCX network");

    /**
     * A network of this process's.
     *
     * @param library libucp; empty to have it looked for by the loader
     * @param finder  over which peers find each other: closed with this network
     * @throws org.millrace.net.ucx.library.UcxUnavailableException if UCX cannot be used here
     */
    public UcxNetwork(Optional<Path> library, Network finder) {
        this(UcxContext.get(library), finder);
    }

    /** A network with a context of its own. */
    UcxNetwork(UcxContext context, Network finder) {
        this.finder = finder;
        this.context = context;
        workers = new UcxWorkers(context);
    }

    @Override
    public String name() {
        return "ucx";
    }

    @Override
    public Listener listen() {
        open.checkOpen();
        Listener listener = finder.listen();
        byte[] address = listener.address();
        ByteBuffer buffer = ByteBuffer.wrap(address).order(ByteOrder.LITTLE_ENDIAN);
        if (buffer.getInt(MAGIC_OFFSET) != 0) {
            throw new IllegalStateException(finder.name() + "'s addresses use their last bytes, which are taken here");
        }
        buffer.putInt(MAGIC_OFFSET, MAGIC);
        return new Listener() {
            @Override
            public byte[] address() {
                return address.clone();
            }

            @Override
            public Pending<FrameReceiver> expect(ConnectionKey key) {
                return new Found<>(
                        listener.expect(key), (found, name) -> new UcxReceiver(open,
                                "UCX connection " + key + " from " + name, found, finder, workers),
                        FrameReceiver::peer);
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
        if (address.length != Listener.ADDRESS_BYTES) {
            throw new ConnectionException(
                    "a listener's address has " + Listener.ADDRESS_BYTES + " bytes, not " + address.length);
        }
        byte[] finders = address.clone();
        ByteBuffer buffer = ByteBuffer.wrap(finders).order(ByteOrder.LITTLE_ENDIAN);
        if (buffer.getInt(MAGIC_OFFSET) != MAGIC) {
            throw new ConnectionException(
                    "not an address of the network 'ucx'. Both ends of a connection must use the same network");
        }
        buffer.putInt(MAGIC_OFFSET, 0);
        return new Found<>(finder.connect(finders, key),
                (found, name) -> new UcxSender(open, "UCX connection " + key + " to " + name, found, finder, workers),
                FrameSender::peer);
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
     * A connection in the making: it is made when the other network has made one. Where UCX reaches the peer is found
     * out by the threads that poll it.
     */
    private record Found<T>(Pending<T> pending, BiFunction<T, String, T> made,
            java.util.function.Function<T, String> peer) implements Pending<T> {

        @Override
        public @Nullable T poll() {
            T found = pending.poll();
            return found == null ? null : made.apply(found, peer.apply(found));
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
}
