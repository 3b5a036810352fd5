package org.millrace.net.socket;

import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.millrace.net.AllMemory;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.socket.handshake.Interfaces;
import org.millrace.net.socket.handshake.RailAddresses;
import org.millrace.net.socket.handshake.SocketConnect;
import org.millrace.net.socket.handshake.SocketListener;
import org.millrace.net.socket.stream.SocketOptions;
import org.millrace.net.socket.stream.SocketRegion;

/** Frames over TCP: works between any two hosts, with no thread and no lock of its own on the path of a frame. */
public final class SocketNetwork implements Network {

    private final SocketOptions options;
    /** What is open, and how to close it. */
    private final Map<Object, Runnable> open = new ConcurrentHashMap<>();
    private final BitSet regionIds = new BitSet();
    private List<RailAddresses.Local> locals;
    private volatile boolean closed;

    /**
     * A network.
     *
     * @param options how to connect and to move frames
     */
    public SocketNetwork(SocketOptions options) {
        this.options = options;
    }

    @Override
    public String name() {
        return "socket";
    }

    @Override
    public Listener listen() {
        checkOpen();
        SocketListener listener = new SocketListener(this);
        opened(listener, listener::close);
        return listener;
    }

    @Override
    public Pending<FrameSender> connect(byte[] address, ConnectionKey key) {
        checkOpen();
        SocketConnect connection = new SocketConnect(this, address, key);
        opened(connection, connection::close);
        return connection;
    }

    @Override
    public MemoryRegion register(MemorySegment memory) {
        checkOpen();
        synchronized (regionIds) {
            SocketRegion region = new SocketRegion(this, memory, regionIds.nextClearBit(0));
            regionIds.set(region.id());
            return region;
        }
    }

    @Override
    public MemoryRegion allMemory() {
        return register(AllMemory.SEGMENT);
    }

    /** Frees a region's number for another region. */
    public void release(SocketRegion region) {
        synchronized (regionIds) {
            regionIds.clear(region.id());
        }
    }

    public SocketOptions options() {
        return options;
    }

    /** The addresses that listeners announce. */
    public List<InetAddress> announced() {
        return options.addresses().isEmpty() ? Interfaces.chooseAll(options.interfaces(), options.family())
                : options.addresses();
    }

    /** The addresses that streams of several rails come from; empty if the system chooses. */
    public synchronized List<RailAddresses.Local> locals() {
        if (locals == null) {
            boolean chosen = !options.addresses().isEmpty() || !options.interfaces().isBlank();
            locals = chosen ? announced().stream().map(Interfaces::local).toList() : List.of();
        }
        return locals;
    }

    /** When, by {@link System#nanoTime}, one who connects now must be part of a connection. */
    public long handshakeDeadline() {
        return System.nanoTime() + options.handshakeDeadline().toNanos();
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

    private void checkOpen() {
        if (closed) {
            throw new IllegalStateException("the socket network was closed");
        }
    }

    @Override
    public void close() {
        closed = true;
        open.values().forEach(Runnable::run);
    }
}
