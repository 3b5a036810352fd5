package org.millrace.plugin;

import java.security.SecureRandom;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.foreign.PageMemory;
import org.millrace.net.ConnectionException;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameEnd;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Pending;
import org.millrace.net.connection.TracedPending;
import org.millrace.plugin.host.CallingLibrary.Vendor;
import org.millrace.plugin.host.CallingLibrary;
import org.millrace.plugin.host.HandleTable;
import org.millrace.plugin.host.NativeEnvironment;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.plugin.host.NcclLog;
import org.millrace.plugin.host.PluginTrace;
import org.millrace.plugin.loss.LossWatch;
import org.millrace.plugin.path.ConnectionHandle;
import org.millrace.plugin.path.DataPath.ConnectionNumber;
import org.millrace.plugin.path.DataPath;
import org.millrace.plugin.path.NetDevice;
import org.millrace.plugin.path.NetEndpoint;
import org.millrace.plugin.path.PeerHandle;
import org.millrace.trace.JoinTrace;

/**
 * Operations of NCCL's network tables. Arguments are C values: pointers are numbers, and results are written to the
 * memory that pointer arguments refer to. A failed operation throws an exception, which {@link Upcalls} converts to a
 * result code and a line in NCCL's log.
 */
final class NetPlugin {

    /** Value in place of a context, in table versions before 11, which have no context for each communicator. */
    private static final long NO_CONTEXT = 0;
    private static final String BOOTSTRAP = "ncclCommInitRank waits for the other ranks: a rank has not called it, or"
            + " NCCL's bootstrap cannot reach a rank";

    private final Function<PluginConfiguration, DataPath> paths;
    private final HandleTable handles = new HandleTable();
    private final LossWatch losses;
    private final NcclEnvironment environment = new NcclEnvironment();
    private final SecureRandom random = new SecureRandom();

    /**
     * Sessions by the address of the calling NCCL. Changes are made under this object's lock. The functions that NCCL
     * calls after its init read the sessions without the lock.
     */
    private final Map<Long, Session> sessions = new ConcurrentHashMap<>();

    /** Traces of communicators that NCCL has begun to initialize, until {@link #bootstrapped}; by communicator hash. */
    private final Map<Long, JoinTrace> beginning = new ConcurrentHashMap<>();

    /** For each library, the newest refusal that was logged as a warning. Guarded by this object's lock. */
    private final Map<CallingLibrary, String> warned = new HashMap<>();

    /** State of one NCCL library of this process while the library has communicators. */
    public static final class Session {
        private final long library;
        private final NetEndpoint endpoint;
        private final DataPath path;
        private final PluginConfiguration settings;
        /** Makes {@link NcclLog} use this library's logger. */
        private final Runnable logger;
        private final Context commonContext;
        /** Number of communicators. Guarded by the plugin's lock. */
        private int communicators;
        /** Whether the NCCL library is older than 2.28, and so does not report that it no longer uses the network. */
        private volatile boolean endsUntold;

        private Session(long library, NetEndpoint endpoint, DataPath path, PluginConfiguration settings,
                Runnable logger, LossWatch losses) {
            this.library = library;
            this.endpoint = endpoint;
            this.path = path;
            this.settings = settings;
            this.logger = logger;
            commonContext = new Context(this, 0, losses);
        }

        public NetEndpoint endpoint() {
            return endpoint;
        }

        public DataPath path() {
            return path;
        }

        public boolean choosesChannels() {
            return settings.choosesChannels();
        }
    }

    /**
     * A communicator with its connection attempts and listeners. The key in the peer's handle identifies an attempt.
     * NCCL repeats the call of connect with this handle until connect returns a connection. NCCL does not report when
     * it gives up an attempt.
     */
    private static final class Context implements AutoCloseable {
        private final Map<ConnectionKey, Connecting> connecting = new ConcurrentHashMap<>();
        private final Set<Listening> listening = ConcurrentHashMap.newKeySet();
        private final AtomicInteger connects = new AtomicInteger();
        private final AtomicInteger listens = new AtomicInteger();
        private final DataPath.Owner owner;
        private final Session in;
        private final long communicator;

        /**
         * @param communicator NCCL's hash of the communicator; messages contain the hash. NCCL also passes this hash to
         *                     the tuner
         */
        Context(Session in, long communicator, LossWatch losses) {
            this.in = in;
            this.communicator = communicator;
            owner = new DataPath.Owner(communicator, new DataPath.DrainTimeout(), losses.communicator(communicator));
        }

        /** Begins or continues the attempt to connect to a peer. Returns null while the attempt is in progress. */
        DataPath.@Nullable Connection connect(PeerHandle peer, int maxRecvs) {
            Connecting begun = connecting.computeIfAbsent(peer.key(),
                    key -> new Connecting(
                            new TracedPending<>(in.endpoint.network().connect(peer.address(), key), communicator, -1),
                            new ConnectionNumber(key, connects.getAndIncrement())));
            FrameSender sender = null;
            boolean goesOn = false;
            try {
                sender = begun.pending.poll();
                goesOn = sender == null;
            } finally {
                if (!goesOn) {
                    connecting.remove(peer.key());
                    // This close ends the trace of the attempt. The connection itself stays open.
                    begun.pending.close();
                }
            }
            return sender == null ? null
                    : serve(sender,
                            made -> in.path.sending(made, in.endpoint.network(), owner, begun.number,
                                    maxRecvs == 1 ? null
                                            : stream -> in.endpoint.network()
                                                    .connect(peer.address(), stream(peer.key(), stream))));
        }

        @Override
        public void close() {
            connecting.values().forEach(each -> each.pending.close());
            connecting.clear();
            listening.forEach(Listening::close);
            listening.clear();
        }

        @Override
        public String toString() {
            return "communicator " + Long.toHexString(communicator);
        }
    }

    private record Connecting(Pending<FrameSender> pending, ConnectionNumber number) {
    }

    /**
     * The object behind NCCL's handle of a listener. A listener serves one connection of one communicator, with all
     * streams of that connection.
     */
    private record Listening(Pending<FrameReceiver> connection, List<Pending<FrameReceiver>> streams, Context of,
            ConnectionNumber number, AtomicBoolean accepted) {

        void close() {
            // An accepted connection owns its streams: it connects them on demand and closes them.
            synchronized (accepted) {
                connection.close();
                if (!accepted.get()) {
                    streams.forEach(Pending::close);
                }
            }
        }
    }

    /** Returns the key of a further stream of a connection. The stream's number is 1 or more. */
    private static ConnectionKey stream(ConnectionKey of, int stream) {
        return new ConnectionKey(of.high(), of.low() + stream);
    }

    /**
     * Creates the plugin. The plugin opens no network before the first init.
     *
     * @param paths  creates the data path that the settings allow
     * @param losses watch of communicators that lose a peer
     */
    public NetPlugin(Function<PluginConfiguration, DataPath> paths, LossWatch losses) {
        this.paths = paths;
        this.losses = losses;
    }

    /**
     * Initializes a communicator.
     *
     * @param warnLevel number of the log level WARN in the calling NCCL
     * @param library   address at which the calling NCCL is mapped; the address distinguishes the NCCL libraries of
     *                  this process
     * @param nccl      version and vendor of the calling NCCL
     */
    public void init(int version, long context, long communicator, long logger, int warnLevel, long library,
            CallingLibrary nccl) {
        NcclLog.use(logger, warnLevel);
        Session session = openSession(version, () -> NcclLog.use(logger, warnLevel), library, nccl);
        if (context != 0) {
            NativeMemory.putLong(context, handles.add(new Context(session, communicator, losses)));
            // The trace needs NCCL's report of the end of the bootstrap. NCCL does not report it if the release has no
            // profiler, or if the user selected a profiler.
            if (nccl.vendor() == Vendor.NCCL && nccl.version() >= 22_800
                    && NativeEnvironment.get("NCCL_PROFILER_PLUGIN") == null) {
                beginning.computeIfAbsent(communicator,
                        hash -> JoinTrace.connecting(hash, -1, System.nanoTime(), BOOTSTRAP));
            }
        } else {
            session.endsUntold = true;
        }
    }

    /**
     * Called when NCCL's bootstrap has connected all ranks of a communicator, or when the communicator ends. After the
     * bootstrap, NCCL calls the profiler's init, and later the tuner's init.
     */
    void bootstrapped(long communicator) {
        JoinTrace ended = beginning.remove(communicator);
        if (ended != null) {
            ended.close();
        }
    }

    private synchronized Session openSession(int version, Runnable logger, long library, CallingLibrary nccl) {
        Session session = sessions.get(library);
        if (session == null) {
            PluginConfiguration settings = PluginConfiguration.of(nccl, Configuration.ofPlugin(environment::users));
            String refusal = settings.refusal();
            if (refusal != null && !refusal.equals(warned.put(nccl, refusal))) {
                NcclLog.warn(refusal);
            }
            environment.use(settings.toSet());
            losses.use(settings.loss());
            Configuration configuration = Configuration.ofPlugin(NativeEnvironment::get);
            PluginTrace.open(configuration, "network table v" + version);
            NetEndpoint endpoint = NetEndpoint.open(configuration);
            DataPath path = path(settings, endpoint);
            session = new Session(library, endpoint, path, settings, logger, losses);
            sessions.put(library, session);
            NcclLog.info(PluginTrace.java() + ", network table v" + version + " of " + nccl.describe() + ", " + endpoint
                    + "; " + path);
            if (path.takesOver()) {
                losses.announce(library);
            }
        } else {
            environment.use(session.settings.toSet());
        }
        session.communicators++;
        return session;
    }

    private DataPath path(PluginConfiguration settings, NetEndpoint endpoint) {
        DataPath path = null;
        boolean opened = false;
        try {
            path = paths.apply(settings);
            path.opened(endpoint);
            opened = true;
            return path;
        } finally {
            if (!opened) {
                close(path, endpoint);
            }
        }
    }

    private static void close(@Nullable DataPath path, NetEndpoint endpoint) {
        try {
            if (path != null) {
                path.stop();
            }
        } finally {
            endpoint.close();
        }
        if (path != null) {
            path.close();
        }
    }

    /**
     * Returns the session of an NCCL library of this process; null before the library's first init and after its last
     * finalize. The library's address is 0 if the caller is not in a library, for example in code that a JVM has
     * compiled. For the address 0, the result is the open session if exactly one session is open; otherwise null.
     */
    public @Nullable Session sessionIfAny(long library) {
        Session found = sessions.get(library);
        if (found == null && library == 0) {
            List<Session> all = List.copyOf(sessions.values());
            return all.size() == 1 ? all.getFirst() : null;
        }
        return found;
    }

    /**
     * Returns the session of a calling library. A library between NCCL and this plugin has no session of its own, so
     * its calls belong to the open session. For such a call, this method fails if no session or several sessions are
     * open.
     */
    public Session session(long library) {
        Session own = sessionIfAny(library);
        return own != null ? own
                : Objects.requireNonNull(sessionIfAny(0),
                        "an operation was called before init, after the last finalize, or by a library between one of"
                                + " several NCCLs and the plugin");
    }

    /** Returns whether the network device accepts GPU memory for every NCCL library of this process. */
    public boolean takesDeviceMemory() {
        return !sessions.isEmpty() && sessions.values().stream().allMatch(each -> each.path.takesDeviceMemory());
    }

    /**
     * Notifies the data paths of all NCCL libraries that an operation is about to be launched, see
     * {@link DataPath#operationComing}.
     */
    public void operationComing() {
        sessions.values().forEach(each -> each.path.operationComing());
    }

    public void devices(long count) {
        NativeMemory.putInt(count, 1);
    }

    public void getProperties(int version, int device, long properties, long library) {
        checkDevice(device);
        Session now = session(library);
        now.endpoint.device()
                .writeProperties(version, device,
                        new NetDevice.Abilities(now.path.unpacks(), now.path.takesDeviceMemory(), now.path.maxRecvs()),
                        properties);
    }

    private static void checkDevice(int device) {
        if (device != 0) {
            throw new IllegalArgumentException("there is one device, 0; NCCL asked for " + device);
        }
    }

    public void listen(long context, int device, long handle, long listener, long library) {
        checkDevice(device);
        ConnectionKey key = new ConnectionKey(random.nextLong(), random.nextLong());
        Context of = context(context, library);
        Session now = of.in;
        of.owner.restart();
        List<Pending<FrameReceiver>> streams = IntStream.range(1, now.path.streams())
                .mapToObj(stream -> now.endpoint.listener().expect(stream(key, stream)))
                .toList();
        Listening listening =
                new Listening(new TracedPending<>(now.endpoint.listener().expect(key), of.communicator, -1), streams,
                        of, new ConnectionNumber(key, of.listens.getAndIncrement()), new AtomicBoolean());
        of.listening.add(listening);
        new PeerHandle(now.path.id(), key, now.endpoint.listener().address()).write(handle);
        PeerHandle.putNumber(handle, now.path.maxRecvs());
        NativeMemory.putLong(listener, handles.add(listening));
    }

    /**
     * Begins or continues a connection.
     *
     * @param deviceHandle address for the connection's device handle; 0 for none
     * @param onStack      1 if this address is on the calling thread's stack; 0 otherwise
     */
    public void connect(long context, int device, long handle, long connection, long deviceHandle, int onStack,
            long library) {
        checkDevice(device);
        Context of = context(context, library);
        checkDeviceHandle(of.in, deviceHandle, onStack != 0);
        PeerHandle peer = PeerHandle.read(handle);
        if (peer.path() != of.in.path.id()) {
            throw new ConnectionException("the receiving rank is served another way than this one (here: " + of.in.path
                    + "); give " + Settings.TAKEOVER.name() + " and the NCCL_* settings the same values on every rank");
        }
        finish(of.connect(peer, PeerHandle.number(handle)), connection, deviceHandle);
    }

    private Context context(long context, long library) {
        Context of = context == NO_CONTEXT ? session(library).commonContext : handles.get(context, Context.class);
        bootstrapped(of.communicator);
        return of;
    }

    public void accept(long listener, long connection, long deviceHandle, int onStack) {
        Listening listening = handles.get(listener, Listening.class);
        Session in = listening.of.in;
        checkDeviceHandle(in, deviceHandle, onStack != 0);
        FrameReceiver receiver;
        // Several threads of NCCL may call this method at the same time. A lock therefore guards the check and the
        // change of `accepted`.
        synchronized (listening.accepted) {
            if (listening.accepted.get()) {
                throw new IllegalArgumentException("a connection was accepted from this listener before ("
                        + listening.number + "); each serves one connection");
            }
            receiver = listening.connection.poll();
            listening.accepted.set(receiver != null);
        }
        finish(receiver == null ? null
                : serve(receiver, made -> in.path.receiving(made, in.endpoint.network(), listening.of.owner,
                        listening.number, listening.streams)),
                connection, deviceHandle);
    }

    /** Creates a connection of the data path over a stream. Closes the stream if the data path throws an exception. */
    private static <S extends FrameEnd> DataPath.Connection serve(S stream, Function<S, DataPath.Connection> path) {
        try {
            return path.apply(stream);
        } catch (RuntimeException failure) {
            stream.close();
            throw failure;
        }
    }

    /**
     * Checks that an address can be the address of a device handle. The takeover requires such an address. On hosts
     * with AMD's AINIC cards, RCCL instead passes the address of a four-byte structure on its stack. NCCL and RCCL keep
     * the pointer to a handle in the heap, and RCCL initializes this pointer to null (transport/net.cc). This method
     * therefore refuses an address on the stack. Under RCCL, it also refuses the address of a pointer that is not null.
     *
     * @param deviceHandle address; 0 for none
     * @throws MillraceException if the address cannot be the address of a device handle
     */
    private static void checkDeviceHandle(Session in, long deviceHandle, boolean onStack) {
        if (in.path.takesOver() && deviceHandle != 0
                && (onStack || in.settings.nccl().isRccl() && NativeMemory.getLong(deviceHandle) != 0)) {
            throw new MillraceException(in.settings.nccl() + " passes no address for a device handle, as RCCL does on"
                    + " hosts with AINIC cards, and cannot be told that a connection is taken over. "
                    + Settings.TAKEOVER.name() + "=0 leaves connections to its own proxy");
        }
    }

    /** Writes the handle of a connection at the address {@code connection}, or 0 if NCCL must call again. */
    private void finish(DataPath.@Nullable Connection made, long connection, long deviceHandle) {
        // A null handle is not written: the address may belong to another structure, see checkDeviceHandle(). If a
        // kernel unpacks, a pointer to NCCL's own handle is stored there until the connection exists.
        if (deviceHandle != 0 && made != null && made.deviceHandle() != 0) {
            NativeMemory.putLong(deviceHandle, made.deviceHandle());
        }
        NativeMemory.putLong(connection, made == null ? 0 : handles.add(made));
    }

    /**
     * Registers a buffer of a connection. A takeover serves a connection once its third buffer is registered ({@code
     * TakeoverConnection.register}). A connection that NCCL's own proxy serves uses the buffers for its messages.
     */
    public void regMr(long connection, long address, long bytes, int type, long memory) {
        DataPath.Connection to = handles.get(connection, DataPath.Connection.class);
        boolean onDevice = type == plugin_h.NCCL_PTR_CUDA() && to.takesDeviceMemory();
        if (type != plugin_h.NCCL_PTR_HOST() && !onDevice) {
            throw new IllegalArgumentException(
                    "memory of type " + type + " was registered, and the device's properties do not allow it");
        }
        NativeMemory.putLong(memory,
                ConnectionHandle.ofRegion(connection, to.register(address, bytes, onDevice, memory)));
    }

    public void deregMr(long connection, long memory) {
        handles.get(connection, DataPath.Connection.class).deregister(ConnectionHandle.region(connection, memory));
    }

    public void isend(long connection, long address, long bytes, int tag, long memory, long request) {
        DataPath.Connection on = handles.get(connection, DataPath.Connection.class);
        begun(connection, on.post(address, bytes, ConnectionHandle.regionOf(connection, bytes, memory), tag), request);
    }

    /** Begins a receive. The pointer arguments are C arrays with {@code count} elements each. */
    public void irecv(long connection, int count, long addresses, long lengths, long tags, long memories,
            long request) {
        DataPath.Connection on = handles.get(connection, DataPath.Connection.class);
        int most = on.maxRecvs();
        if (count < 1 || count > most) {
            throw new IllegalArgumentException("a receive of " + count + " buffers was posted, and the device's"
                    + " properties allow " + most + " (" + Settings.NET_MAX_RECVS.name() + ")");
        }
        begun(connection, on.receive(connection, count, addresses, lengths, tags, memories), request);
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
        if (!handles.hasAny(DataPath.Connection.class)) {
            // NCCL before 2.28 does not report its last use of the network, and the process may end next. When the
            // process ends, the operating system resets TCP connections on which acknowledgements still arrive. This
            // call therefore waits for the acknowledgements.
            sessions.values().stream().filter(each -> each.endsUntold).forEach(each -> each.endpoint.awaitPeers());
        }
    }

    public void closeRecv(long connection) {
        closeSend(connection);
    }

    public void closeListen(long listener) {
        Listening ended = handles.remove(listener, Listening.class);
        ended.of.listening.remove(ended);
        ended.close();
    }

    /** Finalizes a communicator. NCCL 2.28 passes a null context if init failed; this method then does nothing. */
    public void finalize(long context) {
        if (context != NO_CONTEXT) {
            Context ended = handles.remove(context, Context.class);
            ended.close();
            bootstrapped(ended.communicator);
            communicatorEnded(ended.in);
            // The C library's malloc keeps the memory that NCCL and the JVM have freed. Without this call, a program
            // that makes and destroys communicators would use more and more memory.
            PageMemory.trimHeap();
        }
    }

    private synchronized void communicatorEnded(Session session) {
        session.communicators--;
        if (session.communicators == 0) {
            sessions.remove(session.library);
            close(session.path, session.endpoint);
            // From now on the log uses the logger of a library that still has communicators.
            sessions.values().stream().findAny().ifPresent(other -> other.logger.run());
        }
    }

    /**
     * Variables that were set for NCCL in the process's environment, which all NCCL libraries of the process share. The
     * variables that a library needs are set when it initializes a communicator. Variables that were set for another
     * library, and that this library does not need, are unset.
     */
    static final class NcclEnvironment {

        private final Map<String, String> set = new HashMap<>();

        /**
         * Returns the value that the user has set for a variable; null if the variable is unset, or was set by this
         * object.
         */
        synchronized @Nullable String users(String name) {
            String value = NativeEnvironment.get(name);
            return value != null && value.equals(set.get(name)) ? null : value;
        }

        /** Sets the wanted variables and unsets other variables that this object has set, before NCCL reads them. */
        synchronized void use(Map<String, String> wanted) {
            set.entrySet().removeIf(each -> {
                boolean superfluous = !wanted.containsKey(each.getKey());
                if (superfluous && each.getValue().equals(NativeEnvironment.get(each.getKey()))) {
                    NativeEnvironment.unset(each.getKey());
                    NcclLog.info("unset " + each.getKey() + ", which was set for another NCCL of this process");
                }
                return superfluous;
            });
            wanted.forEach((name, value) -> {
                String now = NativeEnvironment.get(name);
                if (!value.equals(set.put(name, value)) || now == null || now.isEmpty()) {
                    NativeEnvironment.set(name, value);
                    NcclLog.info("set " + name + "=" + value);
                }
            });
        }
    }
}
