package org.millrace.plugin;

import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongFunction;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.millrace.DataType;
import org.millrace.ReduceOp;
import org.millrace.collnet.CollectiveNetwork;
import org.millrace.collnet.MeshNetwork;
import org.millrace.config.Configuration;
import org.millrace.config.Settings;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.net.ConnectionKey;
import org.millrace.net.MemoryRegion;
import org.millrace.net.connection.FullMesh;
import org.millrace.plugin.host.DeclinedException;
import org.millrace.plugin.host.HandleTable;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.plugin.host.NcclLog;
import org.millrace.plugin.host.ProxyThreads;
import org.millrace.plugin.path.ConnectionHandle;
import org.millrace.plugin.path.NetEndpoint;
import org.millrace.plugin.path.PeerHandle;

/**
 * Operations of NCCL's collective network tables (facts: {@code transport/coll_net.cc} of 2.28 to 2.30). A group
 * consists of one rank of each host: the rank of the host's first GPU. The ranks' kernels post data. NCCL's own proxy
 * passes the data to this table, for up to eight channels at the same time. The proxy then polls until the result is
 * complete. All ranks make the same calls in the same order.
 *
 * <p>
 * This table reports the same device as the network table. NCCL looks for the device by name. If this table reported a
 * second device, NCCL would treat that device as another card.
 */
final class CollNetPlugin {

    /** Number that distinguishes this table's listen handles from the handles of data paths and of GIN. */
    private static final byte PATH = 4;
    /** Maximum number of threads that reduce. Eight threads saturate the memory bandwidth of one CPU socket. */
    private static final int MAX_THREADS = 8;
    /** Time within which all ranks must connect, unless MILLRACE_CONNECT_DEADLINE sets another time. */
    private static final Duration CONNECT_DEADLINE = Duration.ofSeconds(60);
    private static final ReduceOp.BuiltIn[] OPS = ReduceOp.BuiltIn.values();

    private final LongFunction<NetEndpoint> endpoints;
    private final UnaryOperator<@Nullable String> environment;
    private final HandleTable handles = new HandleTable();
    private final SecureRandom random = new SecureRandom();

    /**
     * Object that represents a call of {@code collNetListen}. The handle that NCCL receives from this call refers to
     * the object.
     */
    private record Listening(NetEndpoint here) {
    }

    /** A group of ranks that are all connected. */
    private record Group(MeshNetwork network, int rank) {
    }

    /** Memory that NCCL has registered with a group of ranks. */
    private record Registered(Group group, MemoryRegion region) {

        /**
         * Returns the offset of an address in this memory. Throws {@link IllegalArgumentException} if the bytes at the
         * address are not all in this memory, or if this memory belongs to another group.
         */
        long offset(Group of, long address, long bytes) {
            long offset = address - region.segment().address();
            if (group != of || offset < 0 || bytes > region.segment().byteSize() - offset) {
                throw new IllegalArgumentException(bytes + " bytes at 0x" + Long.toHexString(address)
                        + " do not lie within what was registered with this group: " + region);
            }
            return offset;
        }
    }

    /**
     * Creates the plugin. The plugin opens no connections before the first group of ranks exists.
     *
     * @param endpoints returns the endpoint that the network table has opened for the calling library
     */
    public CollNetPlugin(LongFunction<NetEndpoint> endpoints, UnaryOperator<@Nullable String> environment) {
        this.endpoints = endpoints;
        this.environment = environment;
    }

    public void collNetListen(long library, int device, long handle, long listener) {
        if (device != 0) {
            throw new IllegalArgumentException("there is one device, 0; NCCL asked for " + device);
        }
        ConnectionKey key = new ConnectionKey(random.nextLong(), random.nextLong());
        NetEndpoint here = endpoints.apply(library);
        new PeerHandle(PATH, key, here.listener().address()).write(handle);
        PeerHandle.putNumber(handle,
                Math.min(MAX_THREADS, ProxyThreads.decide(Configuration.ofPlugin(environment)).count()));
        NativeMemory.putLong(listener, handles.add(new Listening(here)));
    }

    /** Connects all ranks and returns when all are connected. NCCL calls this method on every rank. */
    public void collNetConnect(long peers, int ranks, int rank, long listener, long group) {
        NetEndpoint here = handles.get(listener, Listening.class).here;
        byte[][] addresses = new byte[ranks][];
        long key = 0;
        int threads = MAX_THREADS;
        for (int peer = 0; peer < ranks; peer++) {
            long address = NativeMemory.getLong(peers + (long) peer * Long.BYTES);
            PeerHandle handle = PeerHandle.read(address);
            int theirs = PeerHandle.number(address);
            if (handle.path() != PATH || theirs < 1) {
                throw new IllegalArgumentException("the handle of rank " + peer + " is not CollNet's");
            }
            addresses[peer] = handle.address();
            // All ranks use the key in rank 0's handle.
            key = peer == 0 ? handle.key().high() : key;
            threads = Math.min(threads, theirs);
        }
        NativeMemory.putLong(group, handles.add(new Group(mesh(here, addresses, key, threads, rank), rank)));
    }

    /** Connects one full mesh of the ranks for each thread that reduces. */
    private MeshNetwork mesh(NetEndpoint here, byte[][] addresses, long key, int count, int rank) {
        List<FullMesh> meshes = new ArrayList<>();
        try {
            for (int each = 0; each < count; each++) {
                FullMesh mesh = FullMesh.connect(here.network(), here.listener(), addresses, rank, key + each, 0,
                        deadline(), () -> null);
                meshes.add(mesh);
            }
        } catch (Throwable failure) {
            meshes.forEach(FullMesh::close);
            throw failure;
        }
        ProxyThreads threads = ProxyThreads.decide(Configuration.ofPlugin(environment));
        NcclLog.info("CollNet: " + addresses.length + " ranks reduce for each other over " + here.network().name()
                + ", this one with " + count + (count == 1 ? " thread" : " threads"));
        return new MeshNetwork(rank, here.network(), meshes, threads::newIdleStrategy);
    }

    private Duration deadline() {
        return Configuration.ofPlugin(environment).ifSet(Settings.CONNECT_DEADLINE).orElse(CONNECT_DEADLINE);
    }

    /**
     * Reports whether an operator and a type are supported. NCCL implements averages and the program's own operators
     * with the supported operators, and does the remaining arithmetic in its kernels.
     */
    public void collNetReduceSupport(int type, int op, long supported) {
        boolean known = type >= 0 && type < DataType.values().length && op >= 0 && op < OPS.length;
        NativeMemory.putInt(supported, known && MeshNetwork.reduces(OPS[op]) ? 1 : 0);
    }

    public void collNetRegMr(long group, long address, long bytes, int type, long memory) {
        Group of = handles.get(group, Group.class);
        if (type != plugin_h.NCCL_PTR_HOST()) {
            throw new DeclinedException("CollNet's elements are added by processors, and NCCL has them in a GPU's"
                    + " memory: NCCL does without CollNet. MILLRACE_DEVICE_SLOTS=0, and no NCCL_NET_GDR_LEVEL, puts"
                    + " them into the host's");
        }
        NativeMemory.putLong(memory,
                handles.add(new Registered(of, of.network.register(NativeMemory.at(address, bytes)))));
    }

    /**
     * Deregisters memory. If operations are in flight, for instance after an abort, closes the group's network first,
     * because NCCL frees the memory next.
     */
    public void collNetDeregMr(long group, long memory) {
        Group of = handles.get(group, Group.class);
        Registered registered = handles.remove(memory, Registered.class);
        if (of.network.isBusy()) {
            of.network.close();
        }
        registered.region.close();
    }

    public void collNetAllReduce(long group, long send, long receive, long count, int type, int op, long sendMemory,
            long receiveMemory, long request) {
        Group of = handles.get(group, Group.class);
        DataType elements = DataType.ofCode(type);
        Registered from = handles.get(sendMemory, Registered.class);
        Registered to = handles.get(receiveMemory, Registered.class);
        long bytes = count * elements.bytes();
        begun(group, of.network.iallreduce(from.region, from.offset(of, send, bytes), to.region,
                to.offset(of, receive, bytes), count, elements, op(op)), request);
    }

    public void collNetAllGather(long group, long send, long receive, long bytesPerRank, long windowOffset,
            long windowBytes, long sendMemory, long receiveMemory, long request) {
        Group of = handles.get(group, Group.class);
        Registered from = handles.get(sendMemory, Registered.class);
        Registered to = handles.get(receiveMemory, Registered.class);
        begun(group,
                of.network.iallgather(from.region,
                        from.offset(of, send, own(of, bytesPerRank, windowOffset, windowBytes)), to.region,
                        to.offset(of, receive, windowBytes), bytesPerRank, windowOffset, windowBytes),
                request);
    }

    public void collNetReduceScatter(long group, long send, long receive, long bytesPerRank, long windowOffset,
            long windowBytes, int type, int op, long sendMemory, long receiveMemory, long request) {
        Group of = handles.get(group, Group.class);
        Registered from = handles.get(sendMemory, Registered.class);
        Registered to = handles.get(receiveMemory, Registered.class);
        begun(group,
                of.network.ireducescatter(from.region, from.offset(of, send, windowBytes), to.region,
                        to.offset(of, receive, own(of, bytesPerRank, windowOffset, windowBytes)), bytesPerRank,
                        windowOffset, windowBytes, DataType.ofCode(type), op(op)),
                request);
    }

    /**
     * Returns how many bytes of this rank's part lie in a window. A window, in NCCL's terms, is the range of the whole
     * buffer that one call reduces.
     */
    private static long own(Group group, long bytesPerRank, long windowOffset, long windowBytes) {
        long begin = Math.max(windowOffset, group.rank * bytesPerRank);
        long end = Math.min(windowOffset + windowBytes, (group.rank + 1) * bytesPerRank);
        return Math.max(0, end - begin);
    }

    private static ReduceOp.BuiltIn op(int op) {
        if (op < 0 || op >= OPS.length || OPS[op] == ReduceOp.BuiltIn.AVG) {
            throw new IllegalArgumentException("operator " + op + " is not one that reduceSupport accepts");
        }
        return OPS[op];
    }

    private static void begun(long group, int number, long request) {
        NativeMemory.putLong(request,
                number == CollectiveNetwork.NO_REQUEST ? 0 : ConnectionHandle.ofRequest(group, number));
    }

    public void collNetTest(long request, long done, long size) {
        long bytes = handles.get(request, Group.class).network.test(ConnectionHandle.request(request));
        NativeMemory.putInt(done, bytes == CollectiveNetwork.PENDING ? 0 : 1);
        if (bytes != CollectiveNetwork.PENDING && size != 0) {
            NativeMemory.putInt(size, (int) bytes);
        }
    }

    public void collNetCloseColl(long group) {
        handles.remove(group, Group.class).network.close();
    }

    public void collNetCloseListen(long listener) {
        handles.remove(listener, Listening.class);
    }
}
