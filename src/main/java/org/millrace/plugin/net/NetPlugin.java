package org.millrace.plugin.net;

import java.security.SecureRandom;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.millrace.config.Settings;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Pending;
import org.millrace.plugin.log.NcclLog;
import org.millrace.plugin.loss.LossWatch;
import org.millrace.plugin.net.DataPath.ConnectionNumber;
import org.millrace.plugin.shim.HandleTable;
import org.millrace.plugin.shim.NativeEnvironment;
import org.millrace.plugin.shim.NativeMemory;
import org.millrace.plugin.shim.Upcalls;

/**
 * The operations of NCCL's network tables. Arguments are C's: pointers are numbers, and results are written where they
 * point. A failure is thrown; {@link Upcalls} makes a result code and a line in NCCL's log of it.
 */
public final class NetPlugin {

    /** Communicators of table versions before 11 have no context of their own. */
    private static final long NO_CONTEXT = 0;

    private final Function<PluginConfiguration, DataPath> paths;
    private final HandleTable handles = new HandleTable();
    private final LossWatch losses;
    private final Context commonContext;
    private final SecureRandom random = new SecureRandom();

    /** What is open while there are communicators; guarded by this, and read without it behind an init. */
    private volatile @Nullable Session session;
    private int communicators;

    private record Session(NetEndpoint endpoint, DataPath path, boolean choosesChannels) {
    }

    /**
     * What one communicator has open that NCCL holds no handle for: connections that it still connects. NCCL calls
     * connect again and again with the handle of one peer, until it gets a connection; if it gives up, it tells nobody.
     */
    private static final class Context implements AutoCloseable {
        private final Map<ConnectionKey, Connecting> connecting = new ConcurrentHashMap<>();
        private final AtomicInteger connects = new AtomicInteger();
        private final AtomicInteger listens = new AtomicInteger();
        private final DataPath.Owner owner;
        private final long communicator;

        /** NCCL's hash of the communicator is for messages, and for the tuner, which is told the same. */
        Context(long communicator, LossWatch losses) {
            this.communicator = communicator;
            owner = new DataPath.Owner(communicator, new DataPath.DrainTimeout(), losses.communicator(communicator));
        }

        /** Goes on with a connection, or begins it; returns null while it is not made. */
        DataPath.@Nullable Connection connect(PeerHandle peer, int maxRecvs, Session in) {
            Connecting begun = connecting.computeIfAbsent(peer.key(),
                    key -> new Connecting(in.endpoint.network().connect(peer.address(), key),
                            new ConnectionNumber(key, connects.getAndIncrement())));
            FrameSender sender = null;
            boolean goesOn = false;
            try {
                sender = begun.pending.poll();
                goesOn = sender == null;
            } finally {
                if (!goesOn) {
                    connecting.remove(peer.key());
                }
            }
            return sender == null ? null
                    : in.path.sending(sender, in.endpoint.network(), owner, begun.number, maxRecvs == 1 ? null
                            : stream -> in.endpoint.network().connect(peer.address(), stream(peer.key(), stream)));
        }

        @Override
        public void close() {
            connecting.values().forEach(each -> each.pending.close());
            connecting.clear();
        }

        @Override
        public String toString() {
            return "communicator " + Long.toHexString(communicator);
        }
    }

    private record Connecting(Pending<FrameSender> pending, ConnectionNumber number) {
    }

    /** What NCCL calls a listener: it is good for one connection, of one communicator, and for its further streams. */
    private record Listening(Pending<FrameReceiver> connection, List<Pending<FrameReceiver>> streams,
            DataPath.Owner owner, ConnectionNumber number, AtomicBoolean accepted) {
    }

    /** The key of a further stream of a connection, 1 or more. */
    private static ConnectionKey stream(ConnectionKey of, int stream) {
        return new ConnectionKey(of.high(), of.low() + stream);
    }

    /**
     * Nothing is opened before the first init.
     *
     * @param paths  makes the path that the settings allow
     * @param losses what becomes of communicators that lose a peer
     */
    public NetPlugin(Function<PluginConfiguration, DataPath> paths, LossWatch losses) {
        this.paths = paths;
        this.losses = losses;
        commonContext = new Context(0, losses);
    }

    public void init(int version, long context, long communicator, long logger) {
        NcclLog.use(logger);
        openSession(version);
        if (context != 0) {
            NativeMemory.putLong(context, handles.add(new Context(communicator, losses)));
        }
    }

    private synchronized void openSession(int version) {
        if (session == null) {
            PluginConfiguration settings = PluginConfiguration.read(NativeEnvironment::get);
            if (settings.refusal() != null) {
                NcclLog.warn(settings.refusal());
            }
            settings.apply(NativeEnvironment::set);
            losses.use(settings.loss());
            PluginTrace.open(version);
            NetEndpoint endpoint = NetEndpoint.open(NativeEnvironment::get);
            DataPath path = path(settings, endpoint);
            path.opened(endpoint);
            session = new Session(endpoint, path, settings.choosesChannels());
            NcclLog.info(PluginTrace.java() + ", network table v" + version + ", " + endpoint + "; " + path);
        }
        communicators++;
    }

    private DataPath path(PluginConfiguration settings, NetEndpoint endpoint) {
        try {
            return paths.apply(settings);
        } catch (RuntimeException e) {
            endpoint.close();
            throw e;
        }
    }

    /** Where this process is in the network: there while a communicator is. */
    public NetEndpoint endpoint() {
        return session().endpoint;
    }

    /** Whether Java moves the data of this process' connections; false before the first init. */
    public boolean takesOver() {
        Session now = session;
        return now != null && now.path.takesOver();
    }

    /** Whether slots may be in the memory of GPUs; false before the first init. */
    public boolean takesDeviceMemory() {
        Session now = session;
        return now != null && now.path.takesDeviceMemory();
    }

    /** Whether the user leaves the number of channels to the plugin; false before the first init. */
    public boolean choosesChannels() {
        Session now = session;
        return now != null && now.choosesChannels;
    }

    /** An operation is about to be launched: see {@link DataPath#operationComing}. */
    public void operationComing() {
        Session now = session;
        if (now != null) {
            now.path.operationComing();
        }
    }

    private Session session() {
        return Objects.requireNonNull(session, "NCCL called an operation before init, or after the last finalize");
    }

    public void devices(long count) {
        NativeMemory.putInt(count, 1);
    }

    public void getProperties(int version, int device, long properties) {
        checkDevice(device);
        DataPath path = session().path;
        session().endpoint.device()
                .writeProperties(version, device,
                        new NetDevice.Abilities(path.unpacks(), path.takesDeviceMemory(), path.maxRecvs()), properties);
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
        Context of = context(context);
        of.owner.restart();
        List<Pending<FrameReceiver>> streams = IntStream.range(1, now.path.streams())
                .mapToObj(stream -> now.endpoint.listener().expect(stream(key, stream)))
                .toList();
        Listening listening = new Listening(now.endpoint.listener().expect(key), streams, of.owner,
                new ConnectionNumber(key, of.listens.getAndIncrement()), new AtomicBoolean());
        new PeerHandle(now.path.id(), key, now.endpoint.listener().address()).write(handle);
        PeerHandle.putNumber(handle, now.path.maxRecvs());
        NativeMemory.putLong(listener, handles.add(listening));
    }

    public void connect(long context, int device, long handle, long connection, long deviceHandle) {
        checkDevice(device);
        Session now = session();
        PeerHandle peer = PeerHandle.read(handle);
        int maxRecvs = PeerHandle.number(handle);
        if (peer.path() != now.path.id()) {
            throw new ConnectionException("the receiving rank is served another way than this one (here: " + now.path
                    + "); give " + Settings.TAKEOVER.name() + " and the NCCL_* settings the same values on every rank");
        }
        finish(context(context).connect(peer, maxRecvs, now), connection, deviceHandle);
    }

    private Context context(long context) {
        return context == NO_CONTEXT ? commonContext : handles.get(context, Context.class);
    }

    public void accept(long listener, long connection, long deviceHandle) {
        Session now = session();
        Listening listening = handles.get(listener, Listening.class);
        FrameReceiver receiver;
        synchronized (listening.accepted) { // threads of NCCL may ask at once
            if (listening.accepted.get()) {
                throw new IllegalArgumentException("a connection was accepted from this listener before ("
                        + listening.number + "); each is good for one");
            }
            receiver = listening.connection.poll();
            listening.accepted.set(receiver != null);
        }
        finish(receiver == null ? null
                : now.path.receiving(receiver, now.endpoint.network(), listening.owner, listening.number,
                        listening.streams),
                connection, deviceHandle);
    }

    /** Hands a connection to NCCL, or null for "call again". */
    private void finish(DataPath.@Nullable Connection made, long connection, long deviceHandle) {
        // for a kernel that unpacks NCCL has put one of its own there, and makes another whenever it finds none
        if (deviceHandle != 0 && made != null) {
            NativeMemory.putLong(deviceHandle, made.deviceHandle());
        }
        NativeMemory.putLong(connection, made == null ? 0 : handles.add(made));
    }

    /**
     * NCCL registers the buffers of a connection: one that is taken over is served from its third buffer on
     * ({@code TakeoverConnection.register}), one that NCCL's own proxy serves keeps them for its messages.
     */
    public void regMr(long connection, long address, long bytes, int type, long memory) {
        boolean onDevice = type == plugin_h.NCCL_PTR_CUDA() && session().path.takesDeviceMemory();
        if (type != plugin_h.NCCL_PTR_HOST() && !onDevice) {
            throw new IllegalArgumentException(
                    "memory of type " + type + " was registered, and the device's properties do not allow it");
        }
        int region = handles.get(connection, DataPath.Connection.class).register(address, bytes, onDevice);
        NativeMemory.putLong(memory, ConnectionHandle.ofRegion(connection, region));
    }

    public void deregMr(long connection, long memory) {
        handles.get(connection, DataPath.Connection.class).deregister(ConnectionHandle.region(connection, memory));
    }

    public void isend(long connection, long address, long bytes, int tag, long memory, long request) {
        DataPath.Connection on = handles.get(connection, DataPath.Connection.class);
        begun(connection, on.post(address, bytes, ConnectionHandle.regionOf(connection, bytes, memory), tag), request);
    }

    /** The arguments are arrays of C's, of so many elements each. */
    public void irecv(long connection, int count, long addresses, long lengths, long tags, long memories,
            long request) {
        DataPath.Connection on = handles.get(connection, DataPath.Connection.class);
        int most = session().path.maxRecvs();
        if (count < 1 || count > most) {
            throw new IllegalArgumentException("a receive of " + count + " buffers was posted, and the device's"
                    + " properties allow " + most + " (" + Settings.NET_MAX_RECVS.name() + ")");
        }
        if (most == 1) {
            long bytes = NativeMemory.getLong(lengths);
            begun(connection,
                    on.post(NativeMemory.getLong(addresses), bytes,
                            ConnectionHandle.regionOf(connection, bytes, NativeMemory.getLong(memories)),
                            NativeMemory.getInt(tags)),
                    request);
            return;
        }
        on.buffers().read(connection, count, addresses, lengths, tags, memories);
        begun(connection, on.postAll(), request);
    }

    private static void begun(long connection, int number, long request) {
        NativeMemory.putLong(request,
                number == DataPath.Connection.NO_REQUEST ? 0 : ConnectionHandle.ofRequest(connection, number));
    }

    public void test(long request, long done, long sizes) {
        boolean isDone = handles.get(request, DataPath.Connection.class).test(ConnectionHandle.request(request), sizes);
        NativeMemory.putInt(done, isDone ? 1 : 0);
    }

    public void closeSend(long connection) {
        handles.remove(connection, DataPath.Connection.class).close();
    }

    public void closeRecv(long connection) {
        closeSend(connection);
    }

    public void closeListen(long listener) {
        // further streams are made when they are needed: those of a connection that was made are that one's to close
        Listening ended = handles.remove(listener, Listening.class);
        synchronized (ended.accepted) {
            ended.connection.close();
            if (!ended.accepted.get()) {
                ended.streams.forEach(Pending::close);
            }
        }
    }

    /** NCCL 2.28 finalizes with a null context if init failed: there is nothing to end then. */
    public void finalize(long context) {
        if (context != NO_CONTEXT) {
            handles.remove(context, Context.class).close();
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
