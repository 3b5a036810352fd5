package org.millrace.plugin;

import java.security.SecureRandom;
import java.util.Objects;
import java.util.function.Function;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;

/**
 * The operations of NCCL's network tables. Arguments are C's: pointers are numbers, and results are written where they
 * point. A failure is thrown; {@link PluginTables} makes a result code and a line in NCCL's log of it.
 */
final class NetPlugin {

    /** Communicators of table versions before 11 have no context of their own. */
    private static final long NO_CONTEXT = 0;

    private final Function<SettingsForNccl, ConnectionService> services;
    private final HandleTable handles = new HandleTable();
    private final PluginContext commonContext = new PluginContext(0);
    private final SecureRandom random = new SecureRandom();

    /** What is open while there are communicators; guarded by this, and read without it behind an init. */
    private volatile Session session;
    private int communicators;

    private record Session(Endpoint endpoint, ConnectionService service, WarmUp warmUp) {
    }

    /**
     * Nothing is opened before the first init.
     *
     * @param services makes the service that the settings allow
     */
    NetPlugin(Function<SettingsForNccl, ConnectionService> services) {
        this.services = services;
    }

    int init(int version, long context, long communicator, long logger) {
        NcclLog.use(logger);
        openSession(version);
        if (context != 0) {
            NativeMemory.putLong(context, handles.add(new PluginContext(communicator)));
        }
        return NcclResult.SUCCESS;
    }

    private synchronized void openSession(int version) {
        if (session == null) {
            SettingsForNccl settings = SettingsForNccl.decide(NativeEnvironment::get);
            if (settings.refusal() != null) {
                NcclLog.warn(settings.refusal());
            }
            settings.apply(NativeEnvironment::set);
            Endpoint endpoint = Endpoint.open(NativeEnvironment::get);
            ConnectionService service = service(settings, endpoint);
            session = new Session(endpoint, service,
                    service instanceof TakeoverService takeover ? WarmUp.startOnce(endpoint, takeover) : null);
            NcclLog.info("Java " + Runtime.version().feature() + ", network table v" + version + ", " + endpoint + "; "
                    + service);
        }
        communicators++;
    }

    private ConnectionService service(SettingsForNccl settings, Endpoint endpoint) {
        try {
            return services.apply(settings);
        } catch (RuntimeException e) {
            endpoint.close();
            throw e;
        }
    }

    /** Whether Java moves the data of this process' connections; false before the first init. */
    boolean takesOver() {
        Session now = session;
        return now != null && now.service instanceof TakeoverService;
    }

    private Session session() {
        return Objects.requireNonNull(session, "NCCL called an operation before init, or after the last finalize");
    }

    int devices(long count) {
        NativeMemory.putInt(count, 1);
        return NcclResult.SUCCESS;
    }

    int getProperties(int version, int device, long properties) {
        checkDevice(device);
        DeviceProperties.write(version, session().endpoint.device(), device, session().service.unpacks(), properties);
        return NcclResult.SUCCESS;
    }

    private static void checkDevice(int device) {
        if (device != 0) {
            throw new IllegalArgumentException("there is one device, 0; NCCL asked for " + device);
        }
    }

    int listen(long context, int device, long handle, long listener) {
        checkDevice(device);
        Session now = session();
        ConnectionKey key = new ConnectionKey(random.nextLong(), random.nextLong());
        DrainPatience patience = owner(context).patience();
        patience.renew();
        PendingAccept pending = new PendingAccept(now.endpoint.listener().expect(key), patience);
        new PeerHandle(now.service.id(), key, now.endpoint.listener().address()).write(handle);
        NativeMemory.putLong(listener, handles.add(pending));
        return NcclResult.SUCCESS;
    }

    int connect(long context, int device, long handle, long connection, long deviceHandle) {
        checkDevice(device);
        Session now = session();
        PeerHandle peer = PeerHandle.read(handle);
        if (peer.service() != now.service.id()) {
            throw new ConnectionException("the receiving rank is served another way than this one (here: " + now.service
                    + "); give " + SettingsForNccl.TAKEOVER + " and the NCCL_* settings the same values on every rank");
        }
        PluginContext owner = owner(context);
        FrameSender sender = owner.connect(peer, now.endpoint);
        finish(sender == null ? null : now.service.sending(sender, now.endpoint.network(), owner.patience()),
                connection, deviceHandle);
        return NcclResult.SUCCESS;
    }

    private PluginContext owner(long context) {
        return context == NO_CONTEXT ? commonContext : handles.get(context, PluginContext.class);
    }

    int accept(long listener, long connection, long deviceHandle) {
        Session now = session();
        PendingAccept pending = handles.get(listener, PendingAccept.class);
        FrameReceiver receiver = pending.connection().poll();
        finish(receiver == null ? null : now.service.receiving(receiver, now.endpoint.network(), pending.patience()),
                connection, deviceHandle);
        return NcclResult.SUCCESS;
    }

    /** Hands a connection to NCCL, or null for "call again". */
    private void finish(Connection made, long connection, long deviceHandle) {
        if (deviceHandle != 0 && made != null) { // for a kernel that unpacks NCCL has put one of its own there, and
                                                 // makes another whenever it finds none
            NativeMemory.putLong(deviceHandle, made.deviceHandle());
        }
        NativeMemory.putLong(connection, made == null ? 0 : handles.add(made));
    }

    int regMr(long connection, long address, long bytes, int type, long memory) {
        if (type != plugin_h.NCCL_PTR_HOST()) {
            throw new IllegalArgumentException(
                    "memory of type " + type + " was registered, and the device's properties allow host memory only");
        }
        int region = handles.get(connection, Connection.class).register(address, bytes);
        NativeMemory.putLong(memory, PartNumber.ofRegion(connection, region));
        return NcclResult.SUCCESS;
    }

    int deregMr(long connection, long memory) {
        handles.get(connection, Connection.class).deregister(PartNumber.region(connection, memory));
        return NcclResult.SUCCESS;
    }

    int isend(long connection, long address, long bytes, long memory, long request) {
        return post(handles.get(connection, Connection.class), connection, address, bytes, memory, request);
    }

    int irecv(long connection, long address, long bytes, long memory, long request) {
        return post(handles.get(connection, Connection.class), connection, address, bytes, memory, request);
    }

    private static int post(Connection on, long connection, long address, long bytes, long memory, long request) {
        int region = bytes == 0 ? 0 : PartNumber.region(connection, memory);
        int number = on.post(address, bytes, region);
        NativeMemory.putLong(request, number == Connection.NO_REQUEST ? 0 : PartNumber.ofRequest(connection, number));
        return NcclResult.SUCCESS;
    }

    int test(long request, long done, long size) {
        int bytes = handles.get(request, Connection.class).test(PartNumber.request(request));
        NativeMemory.putInt(done, bytes == Connection.PENDING ? 0 : 1);
        if (bytes != Connection.PENDING && size != 0) {
            NativeMemory.putInt(size, bytes);
        }
        return NcclResult.SUCCESS;
    }

    int closeSend(long connection) {
        handles.remove(connection, Connection.class).close();
        return NcclResult.SUCCESS;
    }

    int closeRecv(long connection) {
        return closeSend(connection);
    }

    int closeListen(long listener) {
        handles.remove(listener, PendingAccept.class).connection().close();
        return NcclResult.SUCCESS;
    }

    /** NCCL 2.28 finalizes with a null context if init failed: there is nothing to end then. */
    int finalize(long context) {
        if (context != NO_CONTEXT) {
            handles.remove(context, PluginContext.class).close();
            closeSessionOfLast();
        }
        return NcclResult.SUCCESS;
    }

    private synchronized void closeSessionOfLast() {
        communicators--;
        if (communicators == 0) {
            Session last = session;
            session = null;
            if (last.warmUp != null) {
                last.warmUp.stop();
            }
            last.service.close();
            last.endpoint.close();
        }
    }
}
