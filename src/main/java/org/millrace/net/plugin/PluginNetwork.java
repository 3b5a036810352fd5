package org.millrace.net.plugin;

import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameSender;
import org.millrace.net.Listener;
import org.millrace.net.Network;
import org.millrace.net.Pending;
import org.millrace.net.connection.NativeRegion;
import org.millrace.net.connection.OpenResources;
import org.millrace.net.plugin.PluginLibrary.Session;
import org.millrace.net.socket.Interfaces;
import org.millrace.net.socket.SocketOptions;

/**
 * Moves frames over an NCCL network plugin. The listening end sends the plugin's handles over TCP, whereas NCCL sends
 * them over its bootstrap network.
 */
public final class PluginNetwork implements Network {

    private final SocketOptions socket;
    private final DeviceSet devices;
    private boolean closed;

    private PluginNetwork(SocketOptions socket, DeviceSet devices) {
        this.socket = socket;
        this.devices = devices;
    }

    /**
     * Loads and initializes a plugin.
     *
     * @param socket options of the TCP connections to peers
     * @throws ConnectionException if the library is not a usable plugin, or has no usable device
     */
    public static PluginNetwork open(Path library, SocketOptions socket, PluginOptions options) {
        CallWatch watch = CallWatch.of("network plugin " + library, options.callLimit());
        Session session = start(library, watch);
        try {
            return new PluginNetwork(socket,
                    new DeviceSet(new OpenResources("network of plugin " + session.plugin()), session,
                            chosen(session, options.devices()), options.inlineBytes(), options.pieceBytes(),
                            options.maxRecvs(), options.callLimit(), new BitSet(), watch, new AtomicInteger()));
        } catch (ConnectionException e) {
            session.close(watch);
            watch.close();
            throw e;
        }
    }

    private static Session start(Path library, CallWatch watch) {
        try {
            return PluginLibrary.load(library).start(watch);
        } catch (RuntimeException e) {
            watch.close();
            throw e;
        }
    }

    /** Loads a library. Returns whether it is Millrace's own plugin. Throws an exception if it cannot be loaded. */
    public static boolean isMillrace(Path library) {
        return PluginLibrary.load(library).name().equals("Millrace");
    }

    private static List<PluginDevice> chosen(Session session, List<Integer> numbers) {
        if (numbers.isEmpty()) {
            return session.devices();
        }
        List<PluginDevice> chosen = new ArrayList<>();
        for (int number : numbers) {
            chosen.add(session.devices()
                    .stream()
                    .filter(device -> device.index() == number)
                    .findFirst()
                    .orElseThrow(() -> new ConnectionException(
                            session.library() + " has no device " + number + " that can be used; it has "
                                    + session.devices()
                                            .stream()
                                            .map(device -> device.index() + " (" + device + ")")
                                            .collect(Collectors.joining(", ")))));
        }
        return chosen;
    }

    @Override
    public String name() {
        return "plugin " + devices.session().plugin();
    }

    public int version() {
        return devices.session().version();
    }

    public List<PluginDevice> devices() {
        return devices.devices();
    }

    @Override
    public Listener listen() {
        devices.open().checkOpen();
        PluginListener listener =
                PluginListener.open(devices, socket, Interfaces.choose(socket).addresses().getFirst());
        devices.open().opened(listener, listener::close);
        return listener;
    }

    @Override
    public Pending<FrameSender> connect(byte[] address, ConnectionKey key) {
        devices.open().checkOpen();
        PluginConnect connection = new PluginConnect(devices, socket, address, key);
        devices.open().opened(connection, connection::close);
        return connection;
    }

    @Override
    public NativeRegion register(MemorySegment memory) {
        devices.open().checkOpen();
        return PluginRegion.of(devices.open(), memory, devices.regions());
    }

    @Override
    public synchronized void close() {
        devices.open().close();
        if (!closed) {
            closed = true;
            devices.session().close(devices.watch());
            devices.watch().close();
        }
    }

    @Override
    public String toString() {
        return devices.session().library() + " over "
                + devices.devices().stream().map(PluginDevice::describe).collect(Collectors.joining("; "));
    }
}
