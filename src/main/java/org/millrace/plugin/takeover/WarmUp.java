package org.millrace.plugin.takeover;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Pending;
import org.millrace.plugin.host.NcclLog;
import org.millrace.plugin.path.DataPath;
import org.millrace.plugin.path.NetEndpoint;
import org.millrace.plugin.path.TunerChoices;
import org.millrace.proxy.ProxyAgent;
import org.millrace.proxy.ReceiveProxy;
import org.millrace.proxy.SendProxy;
import org.millrace.proxy.SlotBuffers;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.trace.ProcessTrace;

/**
 * Sends steps of every protocol from this process to itself while NCCL still initializes. When the first kernel posts,
 * the proxies' code is therefore already compiled. Without the warm-up, the JVM would interpret the code for the first
 * thousands of steps. These steps would take several times as long. The first steps use slots in host memory. LL's
 * slots are always in host memory. The next steps use slots that a GPU copies. Sizes, protocols and pace are random,
 * because a branch that the warm-up never takes would cause a deoptimization later.
 */
final class WarmUp implements Runnable {

    private static final Duration ENOUGH = Duration.ofMillis(1500);
    /** Maximum time that the first connection waits for the warm-up. */
    private static final Duration TIMEOUT = Duration.ofMillis(300);
    private static final int STEPS = 40_000;
    /**
     * Number of steps if this process has few cores. The JVM then uses only the compiler C1, which compiles after fewer
     * steps than C2. More steps would delay a rank's start.
     */
    private static final int STEPS_ON_FEW_CORES = 10_000;
    /** Number of steps through slots that a GPU copies. Each such step takes microseconds. */
    private static final int STEPS_ON_DEVICE = 500;
    private static final int TUNER_CALLS = 1_000;
    private static final long POLL_NANOS = 50_000;
    private static final ConnectionLayout LAYOUT = KernelPair.LAYOUT;

    private static final AtomicBoolean STARTED = new AtomicBoolean();

    private final NetEndpoint endpoint;
    private final DataPath path;
    private final List<ProxyAgent> agents;
    private final @Nullable DeviceSlots deviceSlots;
    private final boolean fewCores;
    /** Number of the GPU that copies in the warm-up; null for none. */
    private final @Nullable Integer device;
    private final Thread thread = Thread.ofPlatform().daemon().name("millrace-warm-up").unstarted(this);
    private volatile boolean stopped;
    private volatile boolean abandoned;

    /**
     * Creates a warm-up. {@link #begin} starts it.
     *
     * @param path        data path for which the tuner chooses protocols
     * @param agents      the data path's agents
     * @param deviceSlots slots in GPU memory; null if slots are in host memory
     */
    WarmUp(NetEndpoint endpoint, DataPath path, List<ProxyAgent> agents, @Nullable DeviceSlots deviceSlots,
            boolean fewCores) {
        this.endpoint = endpoint;
        this.path = path;
        this.agents = agents;
        this.deviceSlots = deviceSlots;
        this.fewCores = fewCores;
        device = deviceSlots == null ? null : deviceSlots.currentDevice();
    }

    /**
     * Begins the warm-up on a new thread, which ends with the warm-up. Returns null if this process has already begun a
     * warm-up.
     */
    static @Nullable WarmUp startOnce(NetEndpoint endpoint, DataPath path, List<ProxyAgent> agents,
            @Nullable DeviceSlots deviceSlots, boolean fewCores) {
        if (!STARTED.compareAndSet(false, true)) {
            return null;
        }
        WarmUp warmUp = new WarmUp(endpoint, path, agents, deviceSlots, fewCores);
        warmUp.begin();
        return warmUp;
    }

    void begin() {
        thread.start();
    }

    /** Waits for the end of the warm-up. Returns whether it has ended. */
    boolean join(Duration atMost) {
        try {
            return thread.join(atMost);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    /** Returns whether the warm-up has ended, or was told to end. */
    boolean isOver() {
        return stopped || !thread.isAlive();
    }

    /** Tells the warm-up to end, because the proxies' threads have real work from now on. Does not wait. */
    void cease() {
        stopped = true;
    }

    /**
     * Tells the warm-up to end and waits for its end, because its threads or endpoint are closed next. Gives up a
     * connection that is not complete after the time {@link #ENOUGH}.
     */
    void stop() {
        cease();
        if (!join(ENOUGH)) {
            abandoned = true;
            join(ENOUGH);
        }
    }

    /**
     * Waits at most {@link #TIMEOUT} for the end of the warm-up and then tells it to end. Called when the first
     * connection is made. Without the wait, the compilation would use the cores that the first operations need.
     */
    void finish() {
        join(TIMEOUT);
        cease();
    }

    @Override
    public void run() {
        long begun = System.nanoTime();
        long deadline = begun + ENOUGH.toNanos();
        List<Pair> pairs = new ArrayList<>();
        try {
            chooseProtocols();
            send(pairs, deadline, false);
            if (device != null) {
                // The copies by a device come last. They need a context for copies, and the driver takes as long to
                // create this context as all the steps above take. The creation takes even longer while NCCL
                // initializes.
                send(pairs, deadline, true);
            }
        } catch (MillraceException e) {
            NcclLog.trace("no warm-up: " + NcclLog.describe(e)); // NCCL's own connections will report the problem.
        } finally {
            pairs.forEach(Pair::close);
            NcclLog.trace("warm-up: " + (System.nanoTime() - begun) / 1_000_000 + " ms");
        }
    }

    /** Makes the calls that NCCL makes to the tuner for every collective. */
    private void chooseProtocols() {
        TunerChoices choices = new TunerChoices(path, true);
        try (Arena arena = Arena.ofConfined()) {
            int algorithms = 7; // the number of algorithms in NCCL 2.28 to 2.32
            int protocols = Protocol.values().length;
            MemorySegment costs = arena.allocate((long) algorithms * protocols * Float.BYTES, Float.BYTES);
            long channels = arena.allocate(Integer.BYTES, Integer.BYTES).address();
            for (int i = 0; i < TUNER_CALLS && !stopped; i++) {
                costs.fill((byte) 0);
                choices.tune(2, 8L << i % 24, costs.address(), algorithms, protocols, channels);
            }
        }
    }

    /**
     * Sends steps through every agent until all steps have arrived or the warm-up must end. Adds the created pairs to
     * {@code all}.
     */
    private void send(List<Pair> all, long deadline, boolean onDevice) {
        List<Pair> pairs = new ArrayList<>();
        for (ProxyAgent agent : agents) {
            if (!goesOn(deadline)) {
                return;
            }
            Pair pair = connect(agent, onDevice);
            pairs.add(pair);
            all.add(pair);
        }
        for (boolean busy = true; busy && goesOn(deadline);) {
            busy = false;
            for (Pair pair : pairs) {
                busy |= pair.turn();
            }
            Thread.yield(); // This process may have only one core, and the proxies' threads need that core.
        }
    }

    /**
     * Completes a connection, even if the warm-up must end meanwhile. Only {@link #stop} can give the connection up. If
     * this process abandoned the connection during the handshake, the listener would report this connection.
     */
    private Pair connect(ProxyAgent agent, boolean onDevice) {
        ConnectionKey key = new ConnectionKey(System.nanoTime(), agent.hashCode());
        try (Pending<FrameReceiver> accepting = endpoint.listener().expect(key);
                Pending<FrameSender> connecting = endpoint.network().connect(endpoint.listener().address(), key)) {
            FrameSender sender = null;
            FrameReceiver receiver = null;
            while (sender == null || receiver == null) {
                sender = sender == null ? connecting.poll() : sender;
                receiver = receiver == null ? accepting.poll() : receiver;
                if (abandoned) {
                    throw new MillraceException("no connection to this process itself");
                }
                LockSupport.parkNanos(POLL_NANOS);
            }
            return new Pair(endpoint, agent, sender, receiver, onDevice);
        }
    }

    private Staging rehearsal(ProxyAgent agent, boolean receives) {
        return Objects.requireNonNull(deviceSlots)
                .rehearsal(agent, receives, Objects.requireNonNull(device), endpoint.network(),
                        LAYOUT.bufferBytes(Protocol.SIMPLE));
    }

    private boolean goesOn(long deadline) {
        return !stopped && deadline - System.nanoTime() > 0;
    }

    /** Both ends of one of the warm-up's connections, with an emulated kernel at each end. */
    private final class Pair {
        private final ProxyAgent agent;
        private final List<ProxyConnection> proxies;
        private final KernelPair kernels;

        /**
         * Creates a pair. Its memory, about 150 KiB for each agent, is never freed. The agent may be busy, and would
         * have to release the memory first. A process has only one warm-up.
         */
        Pair(NetEndpoint endpoint, ProxyAgent agent, FrameSender sender, FrameReceiver receiver, boolean onDevice) {
            this.agent = agent;
            MemorySegment from = KernelPair.memory(Arena.global());
            MemorySegment to = KernelPair.memory(Arena.global());
            MemorySegment staging = Arena.global().allocate(LAYOUT.bufferOffset(Protocol.SIMPLE), RecvMem.BYTES);
            ConnectionName name = ConnectionName.of("warm-up");
            Staging out = onDevice ? rehearsal(agent, false) : null;
            Staging in = onDevice ? rehearsal(agent, true) : null;
            SendProxy send = SendProxy.byMemory(name, buffers(endpoint.network().register(from), out), 0,
                    out == null ? sender : new StagedSender(sender, out), (connection, failure) -> {});
            ReceiveProxy receive = ReceiveProxy.byMemory(name, buffers(endpoint.network().register(to), in),
                    endpoint.network().register(staging), 0, in == null ? receiver : new StagedReceiver(receiver, in),
                    (connection, failure) -> {});
            ProcessTrace trace = ProcessTrace.current();
            if (trace != null) {
                send.tracedBy(trace.rehearsal(true));
                receive.tracedBy(trace.rehearsal(false));
            }
            proxies = List.of(send, receive);
            kernels = new KernelPair(from, to, onDevice ? STEPS_ON_DEVICE : fewCores ? STEPS_ON_FEW_CORES : STEPS,
                    device == null);
            agent.add(proxies);
        }

        private static SlotBuffers buffers(MemoryRegion memory, @Nullable Staging device) {
            SlotBuffers one = SlotBuffers.inOne(LAYOUT, memory);
            return device == null ? one
                    : new SlotBuffers(LAYOUT, one.sendMem(), one.recvMem(), memory, memory, device.device());
        }

        boolean turn() {
            return kernels.turn();
        }

        void close() {
            agent.remove(proxies, Duration.ZERO);
        }
    }
}
