package org.millrace.plugin.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.function.BooleanSupplier;
import java.util.function.UnaryOperator;
import org.millrace.abi.NetDeviceHandle;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.config.Configuration;
import org.millrace.config.ConfigurationException;
import org.millrace.config.Settings;
import org.millrace.ffi.plugin.ncclNetProperties_v9_t;
import org.millrace.ffi.plugin.plugin_h;
import org.millrace.gin.Window;
import org.millrace.net.ConnectionKey;
import org.millrace.net.connection.FullMesh;
import org.millrace.plugin.host.HandleTable;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.plugin.host.NcclLog;
import org.millrace.plugin.loss.CommunicatorLosses;
import org.millrace.plugin.loss.LossPolicy;
import org.millrace.plugin.loss.LossWatch;
import org.millrace.plugin.path.NetDevice.Abilities;
import org.millrace.plugin.path.NetEndpoint;
import org.millrace.plugin.path.PeerHandle;

/**
 * Operations of NCCL's GIN and RMA tables. The plugin reports the network device type GDAKI, because NCCL then lets the
 * plugin create the contexts. The contexts themselves have the type that NCCL's proxy serves: kernels post descriptors
 * to queues in memory. Java allocates these queues and serves their descriptors (facts: {@code
 * gin/gin_host.cc} of 2.28 to 2.30).
 */
public final class GinPlugin {

    /**
     * Number that distinguishes GIN's listen handles from the handles of data paths, see {@code PeerHandle}.
     */
    private static final byte PATH = 3;
    /**
     * Default number of descriptors in a queue. NCCL's own queues have 32, because a network accepts 32 requests.
     * Millrace has no such limit apart from memory.
     */
    private static final int QUEUE_SIZE = 512;
    private static final int MAX_QUEUED = 1 << 16;
    private static final long NATIVE_CONTEXT_BYTES = 2 * Long.BYTES;
    private static final long HANDLE_OFFSET = Long.BYTES;
    /** Value of NCCL's {@code ncclNetSignalOp} for a signal that adds 1. Other signals add the given value. */
    private static final int SIGNAL_INC = 1;
    /**
     * {@code NCCL_NET_MR_FLAG_FORCE_SO}: NCCL sets this flag for a window that the program registers with {@code
     * NCCL_WIN_STRICT_ORDERING}.
     */
    private static final long FORCE_STRICT_ORDERING = 1;
    /** First version of GIN's table in which NCCL registers windows of several physical segments. */
    private static final int SEGMENTS_SINCE = 13;
    /** Time within which all ranks must connect, unless MILLRACE_CONNECT_DEADLINE sets another time. */
    private static final Duration CONNECT_DEADLINE = Duration.ofSeconds(60);
    /**
     * NCCL 2.30's numbers for versions of GIN in kernels. A kernel has the version of the NCCL headers that the kernel
     * was compiled with.
     */
    private static final int BACKEND_OF_2_30_3 = 1;
    private static final int BACKEND_OF_2_30_5 = 2;

    private final HandleTable handles = new HandleTable();
    private final SecureRandom random = new SecureRandom();
    private final UnaryOperator<String> environment;
    private final GinResources resources;
    private final LossWatch losses;
    private final BooleanSupplier netTakesDeviceMemory;
    /**
     * Lost connections of the communicators for which NCCL passes no context. NCCL 2.28 passes a context only for the
     * first communicator.
     */
    private final CommunicatorLosses withoutContext;
    /** Version of GIN's table, which determines the format of descriptors; 0 until NCCL has asked for properties. */
    private volatile int tableVersion;

    /**
     * Object that represents a call of {@code ginListen}. The handle that NCCL receives from this call refers to the
     * object.
     */
    private record Listening(NetEndpoint endpoint, ConnectionKey key, CommunicatorLosses losses) {
    }

    /**
     * Creates the plugin. The plugin opens no endpoint and no device before the first init.
     *
     * @param losses               watch of communicators that lose a peer
     * @param netTakesDeviceMemory whether the network table's device accepts GPU memory
     */
    public GinPlugin(UnaryOperator<String> environment, LossWatch losses, BooleanSupplier netTakesDeviceMemory) {
        this.environment = environment;
        this.losses = losses;
        this.netTakesDeviceMemory = netTakesDeviceMemory;
        this.withoutContext = losses.communicator(0);
        this.resources = new GinResources(environment);
    }

    public void ginInit(long context, long communicator, long logger, int warnLevel) {
        NcclLog.use(logger, warnLevel);
        NativeMemory.putLong(context, handles.add(losses.communicator(communicator)));
    }

    public void ginDevices(long count) {
        String problem = resources.problem();
        if (problem != null) {
            NcclLog.info("no GIN: " + problem);
        }
        NativeMemory.putInt(count, problem == null ? 1 : 0);
    }

    /**
     * Writes the properties of the device. The reported type is GDAKI, see {@link GinPlugin}.
     *
     * <p>
     * NCCL registers a window of several physical segments only if GIN accepts file descriptors ({@code gin_host.cc}
     * 378 of 2.30.7). NCCL passes no file descriptors to a plugin with its own contexts, and calls {@code regMrSym}
     * instead. One call covers the whole window if all of the window is GPU memory. If a part of the window is host
     * memory, NCCL makes one call for each segment. Up to 2.30.4, RMA passes file descriptors through GIN's table
     * ({@code rma_proxy.cc} 79), and this plugin ignores them. RMA's own table does not report that it accepts file
     * descriptors.
     *
     * <p>
     * Since 2.30 the devices of GIN, RMA and the network table are one node of NCCL's topology. The first of these
     * devices, GIN, determines whether NCCL uses GPU memory with the node ({@code topo.cc} 1655 and 1814 of 2.30.7).
     * GIN therefore reports the network table's value.
     */
    public void ginGetProperties(int version, int device, long properties) {
        tableVersion = version;
        NetEndpoint.device(Configuration.ofPlugin(environment))
                .writeProperties(Math.min(version, 12), device,
                        new Abilities(false, netTakesDeviceMemory.getAsBoolean(), 1), properties);
        MemorySegment written = NativeMemory.at(properties, ncclNetProperties_v9_t.sizeof());
        ncclNetProperties_v9_t.netDeviceType(written, NetDeviceHandle.GIN_GDAKI);
        if (version >= SEGMENTS_SINCE) {
            ncclNetProperties_v9_t.ptrSupport(written,
                    ncclNetProperties_v9_t.ptrSupport(written) | plugin_h.NCCL_PTR_DMABUF());
        }
    }

    public void ginListen(long context, int device, long handle, long listener) {
        CommunicatorLosses own = context == 0 ? withoutContext : handles.get(context, CommunicatorLosses.class);
        NetEndpoint endpoint = resources.openEndpoint();
        resources.warmUp(switch (tableVersion) {
            case 11 -> GinDescriptorFormat.V28;
            case 12 -> GinDescriptorFormat.V29;
            default -> GinDescriptorFormat.V30;
        });
        Listening listening = new Listening(endpoint, new ConnectionKey(random.nextLong(), random.nextLong()), own);
        new PeerHandle(PATH, listening.key, endpoint.listener().address()).write(handle);
        NativeMemory.putLong(listener, handles.add(listening));
    }

    /**
     * Connects all ranks and returns when all are connected. NCCL calls this method on every rank. The listener
     * identifies the communicator. The context does not identify it, because RMA passes a context of the network table
     * (rma_proxy.cc of 2.29 to 2.30.7).
     */
    public void ginConnect(long context, long peers, int ranks, int rank, int queueDepth, long listener, long group) {
        Listening listening = handles.get(listener, Listening.class);
        byte[][] addresses = new byte[ranks][];
        ConnectionKey key = null;
        for (int peer = 0; peer < ranks; peer++) {
            PeerHandle handle = PeerHandle.read(NativeMemory.getLong(peers + (long) peer * Long.BYTES));
            if (handle.path() != PATH) {
                throw new IllegalArgumentException("the handle of rank " + peer + " is not GIN's");
            }
            addresses[peer] = handle.address();
            // All ranks use the key in rank 0's handle.
            key = peer == 0 ? handle.key() : key;
        }
        FullMesh data = connect(listening, addresses, rank, key.high());
        FullMesh control = null;
        GinDevice device;
        try {
            control = connect(listening, addresses, rank, key.low());
            device = resources.acquire();
            data = resources.helped(data);
        } catch (Throwable failure) {
            // The other ranks detect the closed connections, and then stop waiting.
            data.close();
            if (control != null) {
                control.close();
            }
            throw failure;
        }
        losses.use(LossPolicy.of(Configuration.ofPlugin(environment)));
        CommunicatorLosses lost = listening.losses;
        lost.restart();
        lost.useCurrentDevice();
        NativeMemory.putLong(group, handles.add(
                new GinGroup(rank, listening.endpoint.network(), device, data, control, resources.options(), lost)));
        // Counts the new group as a user of the endpoint.
        resources.openEndpoint();
    }

    private FullMesh connect(Listening listening, byte[][] addresses, int rank, long key) {
        Configuration settings = Configuration.ofPlugin(environment);
        Duration deadline = settings.ifSet(Settings.CONNECT_DEADLINE).orElse(CONNECT_DEADLINE);
        return FullMesh.connect(listening.endpoint.network(), listening.endpoint.listener(), addresses, rank, key,
                listening.losses.communicator(), deadline, () -> null);
    }

    public void ginCreateContext(int version, long group, int signals, int counters, int contexts, int queueDepth,
            int backend, long context, long deviceHandle) {
        GinDescriptorFormat format = switch (version) {
            case 11 -> GinDescriptorFormat.V28;
            case 12 -> GinDescriptorFormat.V29;
            default -> formatOf30(backend);
        };
        int queueSize = queueDepth <= 0 ? QUEUE_SIZE : Integer.highestOneBit(Math.min(queueDepth, MAX_QUEUED) * 2 - 1);
        GinGroup.Served served =
                handles.get(group, GinGroup.class).createContexts(format, contexts, signals, counters, queueSize);
        NativeMemory.putLong(context, nativeContext(served.group(), served));
        NativeMemory.putLong(deviceHandle, served.deviceHandle().address());
        GinWarmUp.finishCurrent();
    }

    private static GinDescriptorFormat formatOf30(int backend) {
        return switch (backend) {
            case BACKEND_OF_2_30_3 -> GinDescriptorFormat.V30_3;
            case BACKEND_OF_2_30_5 -> GinDescriptorFormat.V30;
            default -> throw new ConfigurationException(backend < BACKEND_OF_2_30_3
                    ? "the program's kernels were built with the headers of NCCL older than 2.30.3, for which no"
                            + " later NCCL serves GIN by proxy:"
                            + " build the program with the headers of the NCCL that it loads, or have it load the"
                            + " NCCL that it was built with"
                    : "NCCL asks for GIN contexts of backend " + backend + ", and this Millrace knows "
                            + BACKEND_OF_2_30_3 + " and " + BACKEND_OF_2_30_5
                            + " (NCCL 2.30): use a newer Millrace, or build the program with the headers of NCCL 2.30");
        };
    }

    /** Allocates the shim's {@code struct millraceGinContext} for contexts of a group of ranks. Returns its address. */
    private long nativeContext(GinGroup group, AutoCloseable served) {
        MemorySegment seen = Arena.global().allocate(NATIVE_CONTEXT_BYTES, Long.BYTES);
        seen.set(ValueLayout.JAVA_LONG, 0, group.communicator().errorFlag().address());
        seen.set(ValueLayout.JAVA_LONG, HANDLE_OFFSET, handles.add(served));
        return seen.address();
    }

    public void ginRegMrSym(long group, long address, long bytes, int type, long flags, long memory, long window) {
        GinGroup owner = handles.get(group, GinGroup.class);
        Window registered = owner.register(address, bytes, type, (flags & FORCE_STRICT_ORDERING) != 0);
        NativeMemory.putLong(memory, handles.add(registered));
        NativeMemory.putLong(window, registered.handle());
    }

    public void ginDeregMrSym(long group, long memory) {
        handles.get(group, GinGroup.class).deregister(handles.remove(memory, Window.class));
    }

    public void ginDestroyContext(long context) {
        long handle = NativeMemory.getLong(context + HANDLE_OFFSET);
        if (handles.get(handle, AutoCloseable.class) instanceof GinGroup.Rma rma) {
            rma.close();
        } else {
            handles.get(handle, GinGroup.Served.class).close();
        }
        handles.remove(handle, AutoCloseable.class);
    }

    public void ginCloseColl(long group) {
        handles.remove(group, GinGroup.class).close();
        resources.release();
        resources.closeEndpoint();
    }

    public void ginCloseListen(long listener) {
        handles.remove(listener, Listening.class);
        resources.closeEndpoint();
    }

    /** Finalizes a context. For all communicators after the first one, NCCL 2.28 passes 0 instead of a context. */
    public void ginFinalize(long context) {
        if (context != 0) {
            handles.remove(context, CommunicatorLosses.class);
        }
    }

    public void rmaCreateContext(long group, int contexts, long context) {
        GinGroup owner = handles.get(group, GinGroup.class);
        NativeMemory.putLong(context, nativeContext(owner, owner.createRma(contexts)));
    }

    public void rmaPut(long context, int number, long sourceOffset, long source, long bytes, long targetOffset,
            long target, int rank, long request) {
        RmaQueue queue = queue(context, number);
        begun(queue, rank, queue.put(rank, window(source), sourceOffset, bytes, window(target), targetOffset), request);
    }

    public void rmaPutSignal(long context, int number, long sourceOffset, long source, long bytes, long targetOffset,
            long target, int rank, long signalOffset, long signal, long value, int op, long request) {
        RmaQueue queue = queue(context, number);
        begun(queue, rank,
                queue.putAndSignal(rank, bytes == 0 ? null : window(source), sourceOffset, bytes,
                        bytes == 0 ? null : window(target), targetOffset, window(signal), signalOffset,
                        op == SIGNAL_INC ? 1 : value),
                request);
    }

    public void rmaGet(long context, int number, long remoteOffset, long remote, long bytes, long localOffset,
            long local, int rank, long request) {
        RmaQueue queue = queue(context, number);
        begun(queue, rank, queue.get(rank, window(remote), remoteOffset, bytes, window(local), localOffset), request);
    }

    public void rmaFlush(long context, int number, int rank, long request) {
        RmaQueue queue = queue(context, number);
        begun(queue, rank, queue.flush(rank), request);
    }

    public void rmaTest(long group, long request, long done) {
        NativeMemory.putInt(done, handles.get(group, GinGroup.class).isDone(request) ? 1 : 0);
    }

    private RmaQueue queue(long context, int number) {
        return handles.get(NativeMemory.getLong(context + HANDLE_OFFSET), GinGroup.Rma.class).queues().get(number);
    }

    private Window window(long memory) {
        return handles.get(memory, Window.class);
    }

    private static void begun(RmaQueue queue, int rank, long index, long request) {
        NativeMemory.putLong(request,
                index == RmaQueue.FULL ? 0 : RmaQueue.Request.pack(queue.context().number(), rank, (int) index));
    }
}
