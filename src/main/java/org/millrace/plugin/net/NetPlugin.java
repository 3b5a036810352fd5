package org.millrace.plugin.net;

import java.security.SecureRandom;
import java.util.Objects;
import java.util.function.Function;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.plugin.log.NcclLog;
import org.millrace.plugin.settings.NativeEnvironment;
import org.millrace.plugin.settings.TakeoverSettings;
import org.millrace.plugin.shim.HandleTable;
import org.millrace.plugin.shim.NativeMemory;
import org.millrace.plugin.shim.Upcalls;

/**
 * The operations of NCCL's network tables. Arguments are C's: pointers are numbers, and results are written where they
 * point. A failure is thrown; {@link Upcalls} makes a result code and a line in NCCL's log of it.
 */
public final class NetPlugin {

    /** Communicators of table versions before 11 have no context of their own. */
    private static final long NO_CONTEXT = 0;

    private final Function<TakeoverSettings, DataPath> paths;
    private final HandleTable handles = new HandleTable();
    private final PluginContext commonContext = new PluginContext(0);
    private final SecureRandom random = new SecureRandom();

    /** What is open while there are communicators; guarded by this, and read without it behind an init. */
    private volatile Session session;
    private int communicators;

    private record Session(NetEndpoint endpoint, DataPath path) {
    }

    /**
     * Nothing is opened before the first init.
     *
     * @param paths makes the path that the settings allow
     */
    public NetPlugin(Function<TakeoverSettings, DataPath> paths) {
        this.paths = paths;
    }

    public void init(int version, long context, long communicator, long logger) {
        NcclLog.use(logger);
        openSession(version);
        if (context != 0) {
            NativeMemory.putLong(context, handles.add(new PluginContext(communicator)));
        }
    }

    private synchronized void openSession(int version) {
        if (session == null) {
            TakeoverSettings settings = TakeoverSettings.decide(NativeEnvironment::get);
            if (settings.refusal() != null) {
                NcclLog.warn(settings.refusal());
            }
            settings.apply(NativeEnvironment::set);
            NetEndpoint endpoint = NetEndpoint.open(NativeEnvironment::get);
            DataPath path = path(settings, endpoint);
            path.opened(endpoint);
            session = new Session(endpoint, path);
            NcclLog.info("Java " + Runtime.version().feature() + ", network table v" + version + ", " + endpoint + "; "
                    + path);
        }
        communicators++;
    }

    private DataPath path(TakeoverSettings settings, NetEndpoint endpoint) {
        try {
            return paths.apply(settings);
        } catch (RuntimeException e) {
            endpoint.close();
            throw e;
        }
    }

    /** Whether Java moves the data of this process' connections; false before the first init. */
    public boolean takesOver() {
        Session now = session;
        return now != null && now.path.takesOver();
    }

    private Session session() {
        return Objects.requireNonNull(session, "NCCL called an operation before init, or after the last finalize");
    }

    public void devices(long count) {
        NativeMemory.putInt(count, 1);
    }

    public void getProperties(int version, int device, long properties) {
        checkDevice(device);
        NetProperties.write(version, session().endpoint.device(), device, session().path.unpacks(), properties);
    }

    private static void checkDevice(int device) {
        if (device != 0) {
            throw new IllegalArgumentException("there is one device, 0; NCCL asked for " + device);
        }
    }

    public void listen(long context, int device, long handle, long listener) {
        checkDevice(device);
        Session now = session();
        ConnectionKey key = new ConnectionKey(random.nextLong(), random.nextLong());
        DrainTimeout patience = owner(context).patience();
        patience.renew();
        PendingAccept pending = new PendingAccept(now.endpoint.listener().expect(key), patience);
        new PeerHandle(now.path.id(), key, now.endpoint.listener().address()).write(handle);
        NativeMemory.putLong(listener, handles.add(pending));
    }

    public void connect(long context, int device, long handle, long connection, long deviceHandle) {
        checkDevice(device);
        Session now = session();
        PeerHandle peer = PeerHandle.read(handle);
        if (peer.path() != now.path.id()) {
            throw new ConnectionException(
                    "the receiving rank is served another way than this one (here: " + now.path + "); give "
                            + TakeoverSettings.TAKEOVER + " and the NCCL_* settings the same values on every rank");
        }
        PluginContext owner = owner(context);
        FrameSender sender = owner.connect(peer, now.endpoint);
        finish(sender == null ? null : now.path.sending(sender, now.endpoint.network(), owner.patience()), connection,
                deviceHandle);
    }

    private PluginContext owner(long context) {
        return context == NO_CONTEXT ? commonContext : handles.get(context, PluginContext.class);
    }

    public void accept(long listener, long connection, long deviceHandle) {
        Session now = session();
        PendingAccept pending = handles.get(listener, PendingAccept.class);
        FrameReceiver receiver = pending.connection().poll();
        finish(receiver == null ? null : now.path.receiving(receiver, now.endpoint.network(), pending.patience()),
                connection, deviceHandle);
    }

    /** Hands a connection to NCCL, or null for "call again". */
    private void finish(NetConnection made, long connection, long deviceHandle) {
        if (deviceHandle != 0 && made != null) { // for a kernel that unpacks NCCL has put one of its own there, and
                                                 // makes another whenever it finds none
            NativeMemory.putLong(deviceHandle, made.deviceHandle());
        }
        NativeMemory.putLong(connection, made == null ? 0 : handles.add(made));
    }

    public void regMr(long connection, long address, long bytes, int type, long memory) {
        if (type != plugin_h.NCCL_PTR_HOST()) {
            throw new IllegalArgumentException(
                    "memory of type " + type + " was registered, and the device's properties allow host memory only");
        }
        int region = handles.get(connection, NetConnection.class).register(address, bytes);
        NativeMemory.putLong(memory, ConnectionHandle.ofRegion(connection, region));
    }

    public void deregMr(long connection, long memory) {
        handles.get(connection, NetConnection.class).deregister(ConnectionHandle.region(connection, memory));
    }

    public void isend(long connection, long address, long bytes, long memory, long request) {
        post(handles.get(connection, NetConnection.class), connection, address, bytes, memory, request);
    }

    public void irecv(long connection, long address, long bytes, long memory, long request) {
        post(handles.get(connection, NetConnection.class), connection, address, bytes, memory, request);
    }

    private static void post(NetConnection on, long connection, long address, long bytes, long memory, long request) {
        int region = bytes == 0 ? 0 : ConnectionHandle.region(connection, memory);
        int number = on.post(address, bytes, region);
        NativeMemory.putLong(request,
                number == NetConnection.NO_REQUEST ? 0 : ConnectionHandle.ofRequest(connection, number));
    }

    public void test(long request, long done, long size) {
        int bytes = handles.get(request, NetConnection.class).test(ConnectionHandle.request(request));
        NativeMemory.putInt(done, bytes == NetConnection.PENDING ? 0 : 1);
        if (bytes != NetConnection.PENDING && size != 0) {
            NativeMemory.putInt(size, bytes);
        }
    }

    public void closeSend(long connection) {
        handles.remove(connection, NetConnection.class).close();
    }

    public void closeRecv(long connection) {
        closeSend(connection);
    }

    public void closeListen(long listener) {
        handles.remove(listener, PendingAccept.class).connection().close();
    }

    /** NCCL 2.28 finalizes with a null context if init failed: there is nothing to end then. */
    public void finalize(long context) {
        if (context != NO_CONTEXT) {
            handles.remove(context, PluginContext.class).close();
            closeSessionOfLast();
        }
    }

    private synchronized void closeSessionOfLast() {
        communicators--;
        if (communicators == 0) {
            Session last = session;
            session = null;
            last.path.close();
            last.endpoint.close();
        }
    }
}
