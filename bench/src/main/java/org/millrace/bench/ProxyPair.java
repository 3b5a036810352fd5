package org.millrace.bench;

import java.lang.foreign.Arena;
import java.util.List;
import org.millrace.abi.AbortFlag;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.proxy.OperationQueue;
import org.millrace.proxy.ProxyAgent;
import org.millrace.proxy.ReceiveProxy;
import org.millrace.proxy.SendProxy;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyOp;
import org.millrace.trace.ConnectionIdentity;
import org.millrace.trace.ConnectionIdentity.Direction;
import org.millrace.trace.ProcessTrace;

/** A send proxy and a receive proxy with in-memory frames between them. The benchmark plays the device at both ends. */
final class ProxyPair {

    /** Steps per chunk, as in NCCL's ring collectives. */
    static final int CHUNK_STEPS = 4;
    static final int SLICE_STEPS = 2;

    /** More steps than any trial takes. */
    private static final long STEPS = 1L << 60;

    private final ConnectionInfo from;
    private final ConnectionInfo to;
    private final OperationQueue sends = new OperationQueue();
    private final OperationQueue receives = new OperationQueue();
    private final SendProxy send;
    private final ReceiveProxy receive;
    private long step;

    ProxyPair(int channel, long slotBytes) {
        ConnectionLayout layout = new ConnectionLayout(ConnectionLayout.SLOTS * LLLine.BYTES,
                ConnectionLayout.SLOTS * LL128Line.BYTES, ConnectionLayout.SLOTS * slotBytes);
        from = ConnectionInfo.allocate(Arena.global(), layout, 0);
        to = ConnectionInfo.allocate(Arena.global(), layout, 0);
        InMemoryFrames frames = new InMemoryFrames();
        send = SendProxy.sharing(null, ConnectionName.ofRing(0, 1, channel, true), from,
                new InMemoryFrames.Region(from.buffers()), sends, frames.sender(), ProxyPair::stopped);
        InMemoryFrames.Region staging = new InMemoryFrames.Region(
                Arena.global().allocate(layout.bufferOffset(Protocol.SIMPLE), LL128Line.BYTES));
        receive = ReceiveProxy.sharing(null, null, ConnectionName.ofRing(1, 0, channel, false), to,
                new InMemoryFrames.Region(to.buffers()), staging, receives, frames.receiver(), ProxyPair::stopped);
        AbortFlag abort = AbortFlag.of(Arena.global().allocate(AbortFlag.BYTES, AbortFlag.BYTES));
        send.abortedBy(abort);
        receive.abortedBy(abort);
        ProcessTrace process = ProcessTrace.current();
        if (process != null) {
            send.tracedBy(process.connection(identity(channel, Direction.SEND)));
            receive.tracedBy(process.connection(identity(channel, Direction.RECEIVE)));
        }
    }

    private static ConnectionIdentity identity(int channel, Direction direction) {
        return new ConnectionIdentity(0, 0, 1, channel, direction, 0, 0, 0, -1, 0, "memory", "itself", "a benchmark");
    }

    /** Throws, because measurements with a failed proxy would be fast and wrong. */
    private static void stopped(ProxyConnection connection, Throwable failure) {
        throw new IllegalStateException(connection.name() + " stopped", failure);
    }

    List<ProxyConnection> proxies() {
        return List.of(send, receive);
    }

    /** Announces one operation that never ends. From now on both proxies poll their counters in every pass. */
    void announce() {
        ProxyOp op = new ProxyOp(0, 0, 0, STEPS, CHUNK_STEPS, SLICE_STEPS);
        sends.add(op);
        receives.add(op);
    }

    /**
     * Moves a slice end to end: posts it, makes passes until its slots are free again, and consumes it. Returns the
     * number of steps that have arrived.
     */
    long move(ProxyAgent agent, long bytes) {
        from.recvMem().sizePlain(ConnectionLayout.slot(step), bytes);
        step += SLICE_STEPS;
        from.recvMem().tailRelease(step);
        while (from.sendMem().headAcquire() != step) {
            agent.doWork();
        }
        long tail = to.recvMem().tailAcquire();
        to.sendMem().headRelease(tail);
        return tail;
    }

    /** Returns the number of posted steps. */
    long posted() {
        return step;
    }
}
