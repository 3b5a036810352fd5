package org.millrace.plugin.takeover;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;
import org.millrace.net.ConnectionKey;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;
import org.millrace.net.Pending;
import org.millrace.plugin.log.NcclLog;
import org.millrace.plugin.net.NetEndpoint;
import org.millrace.proxy.ConnectionName;
import org.millrace.proxy.ProxyAgent;
import org.millrace.proxy.ProxyConnection;
import org.millrace.proxy.ReceiveProxy;
import org.millrace.proxy.SendProxy;

/**
 * Sends steps of every protocol from this process to itself while NCCL is still setting up, so that the proxies' code
 * is compiled when the first kernel posts. Without it the first thousands of steps would be interpreted, at several
 * times their cost. Sizes, protocols and pace are random: a branch that the warm-up never takes is compiled into a way
 * back to the interpreter.
 */
final class WarmUp implements Runnable {

    private static final Duration ENOUGH = Duration.ofMillis(1500);
    private static final int STEPS = 40_000;
    private static final long POLL_NANOS = 50_000;
    private static final ConnectionLayout LAYOUT = new ConnectionLayout(8 * 1024, 8 * 2048, 8 * 4096);

    private static final Protocol[] PROTOCOLS = Protocol.values();
    private static final AtomicBoolean STARTED = new AtomicBoolean();

    private final NetEndpoint endpoint;
    private final TakeoverPath path;
    private final Thread thread = Thread.ofPlatform().daemon().name("millrace-warm-up").unstarted(this);
    private volatile boolean stopped;

    private WarmUp(NetEndpoint endpoint, TakeoverPath path) {
        this.endpoint = endpoint;
        this.path = path;
    }

    /** Begins, on a thread of its own that ends by itself; returns null if this process has done so before. */
    static @Nullable WarmUp startOnce(NetEndpoint endpoint, TakeoverPath path) {
        if (!STARTED.compareAndSet(false, true)) {
            return null;
        }
        WarmUp warmUp = new WarmUp(endpoint, path);
        warmUp.thread.start();
        return warmUp;
    }

    /** Ends it early, and waits for that: the endpoint is closed next. */
    void stop() {
        stopped = true;
        try {
            thread.join(ENOUGH);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void run() {
        long deadline = System.nanoTime() + ENOUGH.toNanos();
        List<Pair> pairs = new ArrayList<>();
        try {
            for (ProxyAgent agent : path.agents()) {
                pairs.add(connect(agent, deadline));
            }
            for (boolean busy = true; busy && goesOn(deadline);) {
                busy = false;
                for (Pair pair : pairs) {
                    busy |= pair.turn();
                }
            }
        } catch (MillraceException e) {
            NcclLog.trace("no warm-up: " + NcclLog.describe(e)); // NCCL's own connections will tell what is wrong
        } finally {
            pairs.forEach(Pair::close);
        }
    }

    private Pair connect(ProxyAgent agent, long deadline) {
        ConnectionKey key = new ConnectionKey(System.nanoTime(), agent.hashCode());
        try (Pending<FrameReceiver> accepting = endpoint.listener().expect(key);
                Pending<FrameSender> connecting = endpoint.network().connect(endpoint.listener().address(), key)) {
            FrameSender sender = null;
            FrameReceiver receiver = null;
            while (sender == null || receiver == null) {
                sender = sender == null ? connecting.poll() : sender;
                receiver = receiver == null ? accepting.poll() : receiver;
                if (!goesOn(deadline)) {
                    throw new MillraceException("no connection to this process itself");
                }
                LockSupport.parkNanos(POLL_NANOS);
            }
            return new Pair(endpoint, agent, sender, receiver);
        }
    }

    private boolean goesOn(long deadline) {
        return !stopped && deadline - System.nanoTime() > 0;
    }

    /** Both ends of a connection, with this class for a kernel at each. */
    private static final class Pair {
        private final MemorySegment from;
        private final MemorySegment to;
        private final ProxyAgent agent;
        private final List<ProxyConnection> proxies;
        private final RecvMem posting;
        private final RecvMem arriving;
        private final Random random = new Random(1);
        private long posted;
        private long consumed;
        private boolean announced;
        private Protocol protocol;
        private long size;

        Pair(NetEndpoint endpoint, ProxyAgent agent, FrameSender sender, FrameReceiver receiver) {
            this.agent = agent;
            from = memory();
            to = memory();
            posting = LAYOUT.recvMem(from);
            arriving = LAYOUT.recvMem(to);
            MemorySegment staging = allocate(LAYOUT.bufferOffset(Protocol.SIMPLE));
            ConnectionName name = ConnectionName.of("warm-up");
            SendProxy send = SendProxy.byMemory(name, LAYOUT, endpoint.network().register(from), 0, sender,
                    (connection, failure) -> {});
            ReceiveProxy receive = ReceiveProxy.byMemory(name, LAYOUT, endpoint.network().register(to),
                    endpoint.network().register(staging), 0, receiver, (connection, failure) -> {});
            proxies = List.of(send, receive);
            agent.add(proxies);
        }

        private static MemorySegment memory() {
            MemorySegment memory = allocate(LAYOUT.totalBytes());
            for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
                LAYOUT.recvMem(memory).sizePlain(slot, RecvMem.EMPTY);
            }
            return memory;
        }

        /**
         * Some 150 KiB an agent, once in a process, and never given back: nobody has to wait until a busy agent has let
         * go of it.
         */
        private static MemorySegment allocate(long bytes) {
            return Arena.global().allocate(bytes, RecvMem.BYTES);
        }

        /** Does a part of what both kernels can do now; false when all steps have arrived. */
        boolean turn() {
            if (arriving.tailAcquire() - consumed > 0 && random.nextInt(3) > 0) {
                consumed++;
                LAYOUT.sendMem(to).headRelease(consumed);
            }
            if (announced) {
                announced = false;
                write(posted++);
            } else if (posted < STEPS && posted - LAYOUT.sendMem(from).headAcquire() < ConnectionLayout.SLOTS
                    && random.nextInt(3) > 0) {
                protocol = PROTOCOLS[random.nextInt(PROTOCOLS.length)];
                size = switch (protocol) {
                    case LL -> LLLine.BYTES * random.nextInt((int) (LAYOUT.slotBytes(protocol) / LLLine.BYTES) + 1);
                    case LL128 -> LAYOUT.slotBytes(protocol);
                    case SIMPLE -> random.nextInt((int) LAYOUT.slotBytes(protocol) + 1);
                };
                posting.sizeRelease(ConnectionLayout.slot(posted), size);
                announced = true;
            }
            return consumed < STEPS;
        }

        /**
         * The data of a step whose size was said a turn ago: in between the proxy has seen one without the other, as it
         * does with a GPU.
         */
        private void write(long step) {
            long slot = LAYOUT.slotOffset(protocol, step);
            switch (protocol) {
                case LL -> {
                    long half = LLLine.half(0, LLLine.flag(step));
                    for (long at = slot; at < slot + size; at += LLLine.BYTES) {
                        LLLine.storeOpaque(from, at, half, half);
                    }
                }
                case LL128 -> {
                    LL128Line.flagsRelease(from, slot, (int) (size / LL128Line.BYTES), LL128Line.flag(step));
                    posting.tailRelease(step + 1);
                }
                case SIMPLE -> posting.tailRelease(step + 1);
            }
        }

        void close() {
            agent.remove(proxies, Duration.ZERO);
        }
    }
}
