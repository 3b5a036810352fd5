package org.millrace.bench;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.proxy.OperationQueue;
import org.millrace.proxy.ProxyAgent;
import org.millrace.proxy.ReceiveProxy;
import org.millrace.proxy.SendProxy;
import org.millrace.proxy.SlotPool;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyOp;

/**
 * Shared slots of connections (mode OFFSET) compared with a connection's own slots (NORMAL), by number of connections
 * and chunk size. Measures the memory, and the time of a step, alternately for both modes. One thread runs devices and
 * proxies.
 *
 * <pre>
 *   java --enable-native-access=ALL-UNNAMED -cp bench/target/millrace-bench.jar org.millrace.bench.PoolBench
 * </pre>
 */
public final class PoolBench {

    private static final int SLOT = 128 << 10;
    private static final int ROUNDS = 15;
    private static final long ENDLESS = 1L << 50;

    private PoolBench() {}

    /** @param args none */
    public static void main(String[] args) {
        try (Arena arena = Arena.ofShared()) {
            Group own = new Group(arena, 4, false);
            Group pool = new Group(arena, 4, true);
            for (int round = 0; round < 10 * ROUNDS; round++) {
                own.nanosPerStep(512, 20_000);
                pool.nanosPerStep(512, 20_000);
            }
        }
        System.out.println("| connections | bytes | NORMAL ns | OFFSET ns | ratio | NORMAL MiB | OFFSET MiB |");
        System.out.println("| --- | --- | --- | --- | --- | --- | --- |");
        for (int connections : new int[] {1, 4, 16, 64, 256}) {
            try (Arena arena = Arena.ofShared()) {
                Group own = new Group(arena, connections, false);
                Group pool = new Group(arena, connections, true);
                for (long bytes : new long[] {512, 16 << 10, SLOT}) {
                    print(connections, bytes, own, pool);
                }
            }
        }
    }

    private static void print(int connections, long bytes, Group own, Group pool) {
        long steps = bytes == SLOT ? 2_000 : 20_000;
        double[] normal = new double[ROUNDS];
        double[] offset = new double[ROUNDS];
        double[] ratio = new double[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) { // lets the JIT compiler finish
            own.nanosPerStep(bytes, steps);
            pool.nanosPerStep(bytes, steps);
        }
        for (int round = 0; round < ROUNDS; round++) {
            normal[round] = own.nanosPerStep(bytes, steps);
            offset[round] = pool.nanosPerStep(bytes, steps);
            ratio[round] = offset[round] / normal[round];
        }
        System.out.printf(Locale.ROOT, "| %d | %d | %.0f | %.0f | %.2f | %.1f | %.1f |%n", connections, bytes,
                median(normal), median(offset), median(ratio), own.mebibytes, pool.mebibytes);
    }

    private static double median(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }

    /** A rank's connections to the given number of peers, and the peers' ends. */
    private static final class Group {

        private final List<End> ends = new ArrayList<>();
        private final ProxyAgent agent = new ProxyAgent("pool");
        private final double mebibytes;

        Group(Arena arena, int connections, boolean shared) {
            SlotPool sends = shared ? pool(arena, connections) : null;
            SlotPool receives = shared ? pool(arena, connections) : null;
            for (int i = 0; i < connections; i++) {
                ends.add(new End(arena, i, sends, receives));
            }
            ends.forEach(end -> agent.add(List.of(end.send, end.receive)));
            mebibytes = 2.0 * SLOT / (1 << 20)
                    * (shared ? SlotPool.slots(connections) : connections * ConnectionLayout.SLOTS);
        }

        private static SlotPool pool(Arena arena, int connections) {
            MemorySegment memory = arena.allocate((long) SlotPool.slots(connections) * SLOT, 4096);
            return new SlotPool(new InMemoryFrames.Region(memory), SLOT, connections);
        }

        /**
         * Returns the time per step. Every connection posts when it has room, until the given number of steps has
         * arrived, over all connections.
         */
        double nanosPerStep(long bytes, long steps) {
            long arrived = 0;
            long begin = System.nanoTime();
            while (arrived < steps) {
                for (End end : ends) {
                    end.post(bytes);
                }
                agent.doWork();
                for (End end : ends) {
                    arrived += end.consume();
                }
            }
            return (double) (System.nanoTime() - begin) / arrived;
        }
    }

    /** One connection: both its devices and both its proxies. */
    private static final class End {

        private final ConnectionInfo from;
        private final ConnectionInfo to;
        private final SendProxy send;
        private final ReceiveProxy receive;
        private long posted;
        private long consumed;

        End(Arena arena, int number, SlotPool sends, SlotPool receives) {
            ConnectionLayout layout = new ConnectionLayout(ConnectionLayout.SLOTS * LLLine.BYTES,
                    ConnectionLayout.SLOTS * LL128Line.BYTES, sends == null ? ConnectionLayout.SLOTS * SLOT : 4096);
            ConnectionInfo sending = ConnectionInfo.allocate(arena, layout, 0);
            ConnectionInfo receiving = ConnectionInfo.allocate(arena, layout, 0);
            from = sends == null ? sending : sending.withShared(sends.slots(), true);
            to = receives == null ? receiving : receiving.withShared(receives.slots(), false);
            InMemoryFrames frames = new InMemoryFrames();
            OperationQueue queue = new OperationQueue();
            OperationQueue other = new OperationQueue();
            send = SendProxy.sharing(sends == null ? null : sends.attach(), ConnectionName.ofRing(0, 1, number, true),
                    from, new InMemoryFrames.Region(from.buffers()), queue, frames.sender(), PoolBench::stopped);
            InMemoryFrames.Region staging =
                    new InMemoryFrames.Region(arena.allocate(layout.bufferOffset(Protocol.SIMPLE), LL128Line.BYTES));
            receive = ReceiveProxy.sharing(null, receives == null ? null : receives.attach(),
                    ConnectionName.ofRing(1, 0, number, false), to, new InMemoryFrames.Region(to.buffers()), staging,
                    other, frames.receiver(), PoolBench::stopped);
            ProxyOp op = new ProxyOp(0, 0, 0, ENDLESS, 1, 1);
            queue.add(op);
            other.add(op);
        }

        void post(long bytes) {
            while (posted < from.sendMem().headAcquire() + ConnectionLayout.SLOTS) {
                from.recvMem().sizePlain(ConnectionLayout.slot(posted), bytes);
                from.recvMem().tailRelease(++posted);
            }
        }

        long consume() {
            long before = consumed;
            consumed = to.recvMem().tailAcquire();
            to.sendMem().headRelease(consumed);
            return consumed - before;
        }
    }

    private static void stopped(ProxyConnection connection, Throwable failure) {
        throw new IllegalStateException(connection.name() + " stopped", failure);
    }
}
