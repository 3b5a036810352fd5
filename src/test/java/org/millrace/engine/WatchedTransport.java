package org.millrace.engine;

import java.lang.foreign.MemorySegment;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.millrace.net.Listener;
import org.millrace.net.MemoryRegion;
import org.millrace.transport.Availability;
import org.millrace.transport.EndRequest;
import org.millrace.transport.PeerInfo;
import org.millrace.transport.Transport;
import org.millrace.transport.TransportEnd;

/**
 * The transport NET over a {@link WatchedNetwork}. A test enables this transport by {@link #on}. Only the threads of
 * such a test see the service file that names this class.
 */
public final class WatchedTransport implements Transport {

    private static final Queue<AutoCloseable> OPENED = new ConcurrentLinkedQueue<>();

    private static volatile Path directory;
    private static URLClassLoader services;
    private static volatile boolean flushes;

    private WatchedNetwork network;
    private NetTransport transport;

    /** Creates the transport for {@link java.util.ServiceLoader}. */
    public WatchedTransport() {}

    /**
     * Enables the transport for later communicators of the calling thread, and of threads that the calling thread
     * starts.
     *
     * @param place      directory of the shared memory
     * @param needsFlush whether received data is visible only after a flush
     */
    static void on(Path place, boolean needsFlush) {
        flushes = needsFlush;
        WatchedNetwork.reset();
        directory = place;
        services = new URLClassLoader(new URL[] {WatchedTransport.class.getResource("/watched/")},
                WatchedTransport.class.getClassLoader());
        Thread.currentThread().setContextClassLoader(services);
    }

    /** Disables the transport. Call it after all communicators were closed. */
    static void off() throws Exception {
        directory = null;
        Thread.currentThread().setContextClassLoader(WatchedTransport.class.getClassLoader());
        if (services != null) {
            services.close();
            services = null;
        }
        for (AutoCloseable each = OPENED.poll(); each != null; each = OPENED.poll()) {
            each.close();
        }
    }

    @Override
    public String name() {
        return "WATCHED";
    }

    @Override
    public Availability offer() {
        if (directory == null) {
            return Availability.no("no test watches");
        }
        network = new WatchedNetwork(directory, flushes);
        Listener here = network.listen();
        transport = new NetTransport(network, here, null);
        OPENED.add(here);
        OPENED.add(network);
        return Availability.yes("");
    }

    @Override
    public Availability canConnect(PeerInfo here, PeerInfo there) {
        return Availability.yes("");
    }

    @Override
    public TransportEnd send(EndRequest request) {
        return transport.send(request);
    }

    @Override
    public TransportEnd receive(EndRequest request) {
        return transport.receive(request);
    }

    @Override
    public MemoryRegion register(MemorySegment memory) {
        return network == null ? null : network.registerOfUser(memory);
    }
}
