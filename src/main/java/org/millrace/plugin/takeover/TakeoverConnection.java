package org.millrace.plugin.takeover;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.NetDeviceHandle;
import org.millrace.abi.Protocol;
import org.millrace.config.Settings;
import org.millrace.foreign.PageMemory;
import org.millrace.net.MemoryRegion;
import org.millrace.net.Network;
import org.millrace.net.PeerClosedException;
import org.millrace.net.check.FrameCheck;
import org.millrace.plugin.host.DeclinedException;
import org.millrace.plugin.host.NativeMemory;
import org.millrace.plugin.host.NcclLog;
import org.millrace.plugin.loss.CommunicatorLosses;
import org.millrace.plugin.loss.ConnectionFailures;
import org.millrace.plugin.loss.LostEnd;
import org.millrace.plugin.path.DataPath;
import org.millrace.proxy.AbstractProxy;
import org.millrace.proxy.AbstractProxy.DeviceAbortedException;
import org.millrace.proxy.ProxyAgent;
import org.millrace.proxy.SlotBuffers;
import org.millrace.proxy.StepCheck;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.trace.ConnectionIdentity;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.ConnectionTrace;
import org.millrace.trace.ProcessTrace;
import org.millrace.trace.TracedCommunicator;

/**
 * A connection that is taken over: Java threads move its data. The connection's proxy starts when NCCL has registered
 * the connection's three buffers. The first deregistration of a buffer stops the proxy, because NCCL frees the memory
 * as soon as the deregistration returns.
 */
abstract class TakeoverConnection implements DataPath.Connection {

    /**
     * Maximum time that a stop waits for data in flight, even if the data still moves. The data of eight slots needs
     * less time than this on any usable network.
     */
    private static final Duration DRAIN_LIMIT = Duration.ofSeconds(30);
    private static final Duration ACKNOWLEDGE = Duration.ofSeconds(10);
    private static final Duration STAY_AWAKE = Duration.ofMillis(1);
    /** Maximum time to wait for the close of a connection when the process ends. */
    private static final Duration LEAVE = Duration.ofMillis(100);

    private final End end;
    private final Network network;
    private final TakeoverService service;
    private final DataPath.Owner owner;
    private final DataPath.ConnectionNumber number;
    private final Arena arena = Arena.ofShared();
    private final MemorySegment handle;
    private final ConnectionLocator locator;
    /** Resources to close when the proxy has stopped. */
    private final List<AutoCloseable> held = new ArrayList<>();
    private volatile @Nullable ProxyAgent agent;
    private @Nullable ProxyConnection proxy;
    private volatile @Nullable Throwable failure;
    private final CommunicatorLosses.Leaver leaver = this::leave;

    /**
     * The sender or receiver of the connection, with the operations that senders and receivers have in common.
     *
     * @param of    sender or receiver of the connection
     * @param blame function that sets the name of a lost process; the close of the sender or receiver then sends this
     *              name to the peer
     * @param close function that closes the sender or receiver; called only if no proxy ever owned the sender or
     *              receiver
     */
    record End(Object of, String peer, Consumer<String> blame, Runnable close) {
    }

    TakeoverConnection(End end, Network network, TakeoverService service, DataPath.Owner owner,
            DataPath.ConnectionNumber number) {
        this.end = end;
        this.number = number;
        this.owner = owner;
        this.network = network;
        this.service = service;
        locator = new ConnectionLocator(service.nccl());
        handle = arena.allocate(NetDeviceHandle.BYTES, NetDeviceHandle.ALIGNMENT);
        NetDeviceHandle.of(handle).set(NetDeviceHandle.HOST, 0, 0, 0, false);
    }

    /**
     * Returns the number of bytes that the proxy needs in addition to the connection's own memory; 0 if it needs none.
     */
    abstract long stagingBytes(ConnectionLayout layout);

    abstract boolean receives();

    /**
     * Creates the proxy, which owns the sender or receiver from now on.
     *
     * @param lines  memory of {@link #stagingBytes} bytes for the lines of LL and LL128
     * @param device staging memory of slots in GPU memory; null if slots are in host memory
     */
    abstract AbstractProxy start(SlotBuffers buffers, MemoryRegion lines, @Nullable Staging device);

    /**
     * Returns the check of the connection's payloads. Its messages state ranks, channel and operation, as far as NCCL
     * shows them to a plugin.
     */
    final FrameCheck check() {
        return StepCheck.of(service.check(), new Object() {
            @Override
            public String toString() {
                ConnectionLocator.Ends ends = locator.ends(receives());
                return (ends == null ? ""
                        : ConnectionName.ofRing(ends.rank(), ends.peer(), ends.channel(), !receives()) + ", ")
                        + "operation "
                        + TracedCommunicator.present(owner.communicator(), ends == null ? -1 : ends.rank()) + ", "
                        + end.of;
            }
        }, false);
    }

    /** Returns the time without progress after which a stop drops data in flight. */
    abstract Duration drainTimeout();

    /** Reports that a stop dropped data in flight. {@code lastSeen} describes the proxy's last state. */
    abstract void gaveUp(String lastSeen);

    /** Releases the subclass's own resources, after the proxy has stopped. */
    void closed() {
        // By default, a subclass has no resources of its own.
    }

    @Override
    public long deviceHandle() {
        return handle.address();
    }

    /**
     * {@inheritDoc} A fourth registration is for user memory. NCCL tells only its own proxy which part of user memory
     * an operation sends or receives. User memory is therefore declined, and NCCL uses slots.
     */
    @Override
    public final int register(long address, long bytes, boolean onDevice, long handle) {
        if (locator.complete()) {
            throw new DeclinedException(this + ": " + bytes
                    + " bytes of the user's are not registered, as Java serves the connection: they go through slots");
        }
        int number = locator.add(address, bytes, onDevice, handle);
        if (locator.complete()) {
            MemoryRegion lines = hold(network.register(allocateStaging(stagingBytes(locator.layout()))));
            start(lines);
        }
        return number;
    }

    private void start(MemoryRegion lines) {
        service.connectionComing();
        ProxyAgent serving = service.assign(receives());
        boolean complete = false;
        try {
            DeviceSlots.Slots slots = !locator.simpleOnDevice() ? null
                    : hold(service.deviceSlots()
                            .slots(serving, receives(), network, locator.address(Protocol.SIMPLE),
                                    locator.layout().simpleBytes()));
            Staging device = slots == null ? null : slots.staging();
            AbstractProxy started = start(buffers(device), lines, device);
            started.tracedBy(trace());
            proxy = started;
            owner.losses().useCurrentDevice();
            agent = serving;
            serving.add(List.of(proxy));
            owner.losses().opened(leaver);
            complete = true;
        } finally {
            if (!complete) {
                service.release(serving, receives());
                closeHeld();
            }
        }
    }

    /**
     * Creates the connection's trace. The ranks of both ends are -1, because NCCL does not pass them to the plugin. A
     * reader of traces recognizes the connection by the key that both ends share.
     */
    private @Nullable ConnectionTrace trace() {
        ProcessTrace process = ProcessTrace.current();
        return process == null ? null
                : process.connection(new ConnectionIdentity(owner.communicator(), -1, -1, -1,
                        receives() ? Direction.RECEIVE : Direction.SEND, -1, number.key().high(), number.key().low(),
                        number.order(), 0, network.name(), end.peer, toString()));
    }

    private SlotBuffers buffers(@Nullable Staging device) {
        ConnectionLocator.Control control = locator.control(receives());
        MemoryRegion apart = locator.llIsApart() ? hold(network.register(locator.ll())) : null;
        MemoryRegion together = device == null ? hold(network.register(locator.buffers())) : null;
        MemoryRegion ll = apart == null ? together : apart;
        return new SlotBuffers(locator.layout(), control.sendMem(), control.recvMem(), ll,
                together == null ? ll : together, device == null ? together : device.device());
    }

    private <T extends AutoCloseable> T hold(T made) {
        held.add(made);
        return made;
    }

    /**
     * Allocates staging memory. The segment has the global scope, like all memory that a proxy uses, see
     * {@link NativeMemory}. The arena owns the memory and is closed after the proxy has stopped.
     */
    private MemorySegment allocateStaging(long bytes) {
        return NativeMemory.at(PageMemory.allocate(bytes, arena).address(), bytes);
    }

    /**
     * Reports that the proxy has stopped. NCCL does not ask for the reason. The reason is therefore written to the log,
     * and a Java program receives it. Called by the agent's thread.
     */
    final void stopped(ProxyConnection stopped, @Nullable Throwable reason) {
        if (reason == null) {
            return;
        }
        failure = reason;
        String what = NcclLog.describe(reason);
        String name = stopped.name().toString();
        String line = (what.startsWith(name) ? what : name + ": " + what) + " (" + stopped.lastSeen() + ")";
        if (isMeant(stopped, reason)) {
            NcclLog.info(line);
        } else {
            NcclLog.warn(line);
            ConnectionFailures.report(new MillraceException(line, reason));
            owner.losses().add(LostEnd.of(reason, end.peer, line, () -> owes(stopped)));
        }
    }

    /**
     * Returns whether the proxy stopped as intended. No warning is needed in this case. One rank may destroy its
     * communicator before the other, and a program may abort on purpose. However, a peer's close is reported if this
     * end still had data to send.
     */
    private static boolean isMeant(ProxyConnection stopped, Throwable reason) {
        return reason instanceof DeviceAbortedException || reason instanceof PeerClosedException && !stopped.owesData();
    }

    /**
     * Closes the connection because the process ends after the loss of a peer. Tells this connection's peer which
     * process was lost. Called by the thread of {@link org.millrace.plugin.loss.LossWatch}.
     */
    private void leave(LostEnd lost) {
        ProxyAgent serving = agent;
        end.blame.accept(lost.namedTo(end.peer));
        if (serving != null) {
            serving.remove(List.of(proxy), Duration.ZERO).await(LEAVE);
        }
    }

    /** Returns whether the device has posted data that no thread sends, because the proxy has stopped. */
    abstract boolean owes(ProxyConnection stopped);

    @Override
    public final void deregister(int number) {
        stop();
    }

    private void stop() {
        if (agent == null) {
            return;
        }
        LostEnd culprit = owner.losses().ending(leaver);
        if (culprit != null) {
            end.blame.accept(culprit.namedTo(end.peer));
        }
        ProxyAgent.Acknowledgement removal =
                agent.remove(List.of(proxy), failure == null ? drainTimeout() : Duration.ZERO);
        if (!await(removal, DRAIN_LIMIT)) {
            removal = agent.remove(List.of(proxy), Duration.ZERO);
            if (!await(removal, ACKNOWLEDGE)) {
                throw new MillraceException(
                        proxy.name() + ": the proxy's thread does not release the connection's memory:"
                                + " a pass of it does not return");
            }
        }
        if (!removal.drained()) {
            gaveUp(proxy.lastSeen());
        }
        service.release(agent, receives());
        agent = null;
        closeHeld();
        ProcessTrace trace = ProcessTrace.current();
        if (failure != null && trace != null) {
            trace.settle(owner.communicator());
        }
    }

    /**
     * Waits until the proxy's thread has released the connection. Keeps the proxy's thread awake, because the thread
     * would otherwise park while it waits for the peer's answers.
     */
    private boolean await(ProxyAgent.Acknowledgement removal, Duration time) {
        long deadline = System.nanoTime() + time.toNanos();
        do {
            service.wake();
            if (removal.await(STAY_AWAKE)) {
                return true;
            }
        } while (System.nanoTime() - deadline < 0);
        return false;
    }

    private void closeHeld() {
        for (AutoCloseable each : held) {
            try {
                each.close();
            } catch (Exception e) {
                NcclLog.warn(this + ": " + NcclLog.describe(e));
            }
        }
        held.clear();
    }

    @Override
    public final int post(long address, long bytes, int number, int tag) {
        throw taken();
    }

    @Override
    public final boolean test(int request, long sizes) {
        throw taken();
    }

    private IllegalStateException taken() {
        return new IllegalStateException(
                "the proxy of " + service.nccl() + " asks for progress of a connection that was taken over; "
                        + Settings.TAKEOVER.name() + "=0 leaves all connections to it");
    }

    @Override
    public final boolean takesDeviceMemory() {
        return service.hasDeviceSlots();
    }

    @Override
    public final void close() {
        boolean started = proxy != null;
        stop();
        if (!started) {
            end.close.run();
        }
        closed();
        arena.close();
    }

    @Override
    public final String toString() {
        return end.of.toString();
    }
}
