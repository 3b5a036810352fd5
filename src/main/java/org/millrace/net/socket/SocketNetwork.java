package org.millrace.net.socket;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.util.BitSet;
import java.util.List;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;
import org.jspecify.annotations.Nullable;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;

/**
 * Moves frames over TCP, between any two hosts. No additional thread moves frames, and no lock is taken for a frame.
 */
public final class SocketNetwork implements Network {

    private static final Logger LOG = LogManager.getLogger(SocketNetwork.class);

    private final SocketOptions options;
    private final OpenResources open = new OpenResources("socket network");
    private final BitSet regionIds = new BitSet();
    private @Nullable List<LocalAddress> locals;
    private @Nullable Reconnector reconnector;

    public SocketNetwork(SocketOptions options) {
        this.options = options;
    }

    @Override
    public String name() {
        return "socket";
    }

    @Override
    public Listener listen() {
        open.checkOpen();
        SocketListener listener = SocketListener.open(open, options, announced(), reconnector());
        open.opened(listener, listener::close);
        return listener;
    }

    @Override
    public Pending<FrameSender> connect(byte[] address, ConnectionKey key) {
        open.checkOpen();
        SocketConnect connection = new SocketConnect(open, options, locals(), address, key, reconnector());
        open.opened(connection, connection::close);
        return connection;
    }

    @Override
    public NativeRegion register(MemorySegment memory) {
        open.checkOpen();
        return SocketRegion.register(open, memory, regionIds);
    }

    @Override
    public NativeRegion allMemory() {
        return register(NativeRegion.ALL_MEMORY);
    }

    /** Returns the addresses that listeners announce. */
    private List<InetAddress> announced() {
        Interfaces.Choice choice = Interfaces.choose(options);
        LOG.info("TCP over {}{}", choice, options.tls() == null ? "" : ", " + options.tls());
        return choice.addresses();
    }

    /** Returns the source addresses for the streams of several rails; empty lets the system choose. */
    private synchronized List<LocalAddress> locals() {
        List<LocalAddress> known = locals;
        if (known == null) {
            boolean chosen = !options.addresses().isEmpty() || !options.interfaces().isBlank();
            known = chosen ? Interfaces.choose(options).addresses().stream().map(LocalAddress::of).toList() : List.of();
            locals = known;
        }
        return known;
    }

    /** Returns the reconnector for this network's options; null if lost streams are not restored. */
    private synchronized @Nullable Reconnector reconnector() {
        if (reconnector == null && options.reconnectDeadline().isPositive()) {
            try {
                reconnector = Reconnector.shared(options);
            } catch (IOException e) {
                throw new ConnectionException("cannot open a port on which lost streams are restored: " + e.getMessage()
                        + "; MILLRACE_RECONNECT_DEADLINE=0s does without", e);
            }
        }
        return reconnector;
    }

    @Override
    public void awaitPeers() {
        LingeringStreams.await(open);
    }

    @Override
    public void close() {
        open.close();
        awaitPeers();
        synchronized (this) {
            if (reconnector != null) {
                reconnector.close();
                reconnector = null;
            }
        }
    }
}
