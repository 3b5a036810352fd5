package org.millrace.device;

import static org.junit.jupiter.api.Assertions.fail;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.millrace.abi.ConnectionInfo;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.KernelChannel;
import org.millrace.net.MemoryRegion;
import org.millrace.proxy.MemoryFrames;
import org.millrace.proxy.OperationQueue;
import org.millrace.proxy.ReceiveProxy;
import org.millrace.proxy.SendProxy;
import org.millrace.proxy.SlotPool;
import org.millrace.proxy.spi.ConnectionName;
import org.millrace.proxy.spi.ProxyConnection;
import org.millrace.proxy.spi.ProxyOp;

/**
 * All ranks in one thread. Blocks and proxies of every rank run in random order, and frames complete at random times.
 */
final class Pump {

    static final int SLOT = 256;
    static final ConnectionLayout LAYOUT = new ConnectionLayout(8 * 256, 8 * 2048, 8 * SLOT);
    private static final int TIMEOUT = 20_000;

    private record Pair(int from, int to) {
    }

    private record Side(int rank, boolean sends) {
    }

    private record Line(DeviceEndpoint<SendPort> sending, OperationQueue sends, DeviceEndpoint<ReceivePort> receiving,
            OperationQueue receives) {
    }

    private final Arena arena;
    private final long firstStep;
    private final Random random;
    private final Map<Pair, Line> lines = new HashMap<>();
    private final List<ProxyConnection> proxies = new ArrayList<>();
    private final List<Block> blocks = new ArrayList<>();
    private final Map<Side, SlotPool> pools = new HashMap<>();
    /** Number of connections that share a pool of slots; 0 if each has its own slots. */
    private final int sharing;
    private long operations;

    Pump(Arena arena, long firstStep, Random random) {
        this(arena, firstStep, random, 0);
    }

    Pump(Arena arena, long firstStep, Random random, int sharing) {
        this.sharing = sharing;
        this.arena = arena;
        this.firstStep = firstStep;
        this.random = random;
    }

    /** Returns a rank's view of a channel with a ring in the order of the rank numbers. */
    static DeviceChannel ring(Arena arena, int rank, int ranks) {
        return new DeviceChannel(rank, 0,
                KernelChannel.of(arena.allocate(KernelChannel.BYTES, KernelChannel.ALIGNMENT)),
                arena.allocate((long) ranks * Integer.BYTES, Integer.BYTES));
    }

    private Line line(int from, int to) {
        return lines.computeIfAbsent(new Pair(from, to), _ -> connect(from, to));
    }

    private Line connect(int from, int to) {
        MemoryFrames frames = new MemoryFrames(random);
        ConnectionName sends = ConnectionName.ofRing(from, to, 0, true);
        ConnectionName receives = ConnectionName.ofRing(to, from, 0, false);
        SlotPool sendPool = pool(from, true);
        SlotPool receivePool = pool(to, false);
        ConnectionInfo sending = connection(sendPool, true);
        ConnectionInfo receiving = connection(receivePool, false);
        Line line = new Line(new DeviceEndpoint<>(sends.toString()), new OperationQueue(),
                new DeviceEndpoint<>(receives.toString()), new OperationQueue());
        line.sending.connect(new SendPort(sends, sending));
        line.receiving.connect(new ReceivePort(receives, receiving));
        proxies.add(SendProxy.sharing(share(sendPool), sends, sending, MemoryFrames.region(sending.buffers()),
                line.sends, frames.sender(), (c, f) -> {}));
        proxies.add(ReceiveProxy.sharing(null, share(receivePool), receives, receiving,
                MemoryFrames.region(receiving.buffers()), MemoryFrames.staging(arena, LAYOUT), line.receives,
                frames.receiver(), (c, f) -> {}));
        return line;
    }

    private SlotPool pool(int rank, boolean sends) {
        return sharing == 0 ? null
                : pools.computeIfAbsent(new Side(rank, sends),
                        _ -> new SlotPool(
                                MemoryFrames.region(arena.allocate((long) SLOT * SlotPool.slots(sharing), 64)), SLOT,
                                sharing));
    }

    private static SlotPool.Share share(SlotPool pool) {
        return pool == null ? null : pool.attach();
    }

    private ConnectionInfo connection(SlotPool pool, boolean sends) {
        ConnectionInfo own = ConnectionInfo.allocate(arena, LAYOUT, firstStep);
        return pool == null ? own : own.withShared(pool.slots(), sends);
    }

    /** Returns the number of free slots in all pools. */
    int freeSlots() {
        return pools.values().stream().mapToInt(SlotPool::freeSlots).sum();
    }

    int allSlots() {
        return pools.size() * SlotPool.slots(sharing);
    }

    /** Begins the next operation. All blocks that are added from now on belong to this operation. */
    void nextOperation() {
        operations++;
    }

    /** Adds a block of a rank that receives from the given ranks and sends to the given ranks. */
    void add(int rank, ChunkSchedule algorithm, BlockMemory memory, ChunkShape shape, List<Integer> from,
            List<Integer> to) {
        add(rank, algorithm, memory, shape, from, to, null);
    }

    /**
     * Adds a block with registered memory of the user. The registered memory includes all memory that the block uses.
     */
    void add(int rank, ChunkSchedule algorithm, BlockMemory memory, ChunkShape shape, List<Integer> from,
            List<Integer> to, MemorySegment user) {
        MemoryRegion region = user == null ? null : MemoryFrames.region(user);
        from.forEach(peer -> line(peer, rank).receives.add(op(algorithm.chunksReceived(), shape, region)));
        to.forEach(peer -> line(rank, peer).sends.add(op(algorithm.chunksSent(), shape, region)));
        blocks.add(new PrimitiveBlock(algorithm, memory, shape,
                from.stream().map(peer -> line(peer, rank).receiving).toList(),
                to.stream().map(peer -> line(rank, peer).sending).toList()));
    }

    private ProxyOp op(long chunks, ChunkShape shape, MemoryRegion user) {
        return new ProxyOp(operations, 0, 0, chunks * shape.chunkSteps(), shape.chunkSteps(), shape.sliceSteps(),
                shape.protocol(), user);
    }

    /** Runs until all blocks are done and all frames have completed. */
    void run() {
        blocks.forEach(Block::begin);
        int idle = 0;
        while (!blocks.stream().allMatch(Block::done) || !proxies.stream().allMatch(ProxyConnection::drained)) {
            Block block = blocks.get(random.nextInt(blocks.size()));
            int work = block.done() ? 0 : block.progress();
            for (int i = 0; i < 2; i++) {
                work += proxies.get(random.nextInt(proxies.size())).progress();
            }
            idle = work == 0 ? idle + 1 : 0;
            if (idle > TIMEOUT) {
                fail("stuck: " + blocks.stream().filter(each -> !each.done()).map(Block::waitingFor).toList());
            }
        }
        blocks.clear();
    }
}
