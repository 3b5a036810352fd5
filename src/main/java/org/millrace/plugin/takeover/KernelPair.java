package org.millrace.plugin.takeover;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Random;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.LL128Line;
import org.millrace.abi.LLLine;
import org.millrace.abi.Protocol;
import org.millrace.abi.RecvMem;

/**
 * Emulates the kernels at both ends of a connection within this process. The sizes and the pace of the steps are
 * random, so that a warm-up takes all branches of the proxies. The JIT compiler leaves out a branch that was never
 * taken; the first step that takes this branch causes a deoptimization. Used by one thread.
 */
public final class KernelPair {

    /** Layout with small slots. All three protocols' buffers and the control memory fit into about 60 KiB. */
    public static final ConnectionLayout LAYOUT = new ConnectionLayout(8 * 1024, 8 * 2048, 8 * 4096);

    private final MemorySegment from;
    private final MemorySegment to;
    private final RecvMem posting;
    private final RecvMem arriving;
    private final Random random = new Random(1);
    private final long steps;
    private final List<Protocol> protocols;
    private long posted;
    private long consumed;
    private boolean announced;
    private Protocol protocol;
    private long size;

    /**
     * @param from  memory of the sending end
     * @param to    memory of the receiving end
     * @param steps number of steps to send
     * @param ll128 whether some steps use protocol LL128
     */
    public KernelPair(MemorySegment from, MemorySegment to, long steps, boolean ll128) {
        protocols = ll128 ? List.of(Protocol.values()) : List.of(Protocol.LL, Protocol.SIMPLE);
        this.from = from;
        this.to = to;
        this.steps = steps;
        posting = LAYOUT.recvMem(from);
        arriving = LAYOUT.recvMem(to);
    }

    /** Allocates the memory of one end, with NCCL's initial values. */
    public static MemorySegment memory(Arena arena) {
        MemorySegment memory = arena.allocate(LAYOUT.totalBytes(), RecvMem.BYTES);
        for (int slot = 0; slot < ConnectionLayout.SLOTS; slot++) {
            LAYOUT.recvMem(memory).sizePlain(slot, RecvMem.EMPTY);
        }
        return memory;
    }

    /**
     * Consumes one arrived step, at random. Then publishes the size of a new step, at random. If the previous call
     * published a size, writes that step's data instead. Returns false when all steps have been consumed.
     */
    public boolean turn() {
        if (arriving.tailAcquire() - consumed > 0 && random.nextInt(3) > 0) {
            consumed++;
            LAYOUT.sendMem(to).headRelease(consumed);
        }
        if (announced) {
            announced = false;
            write(posted++);
        } else if (posted < steps && posted - LAYOUT.sendMem(from).headAcquire() < ConnectionLayout.SLOTS
                && random.nextInt(3) > 0) {
            protocol = protocols.get(random.nextInt(protocols.size()));
            size = switch (protocol) {
                case LL -> LLLine.BYTES * random.nextInt((int) (LAYOUT.slotBytes(protocol) / LLLine.BYTES) + 1);
                case LL128 -> LAYOUT.slotBytes(protocol);
                case SIMPLE -> random.nextInt((int) LAYOUT.slotBytes(protocol) + 1);
            };
            posting.sizeRelease(ConnectionLayout.slot(posted), size);
            announced = true;
        }
        return consumed < steps;
    }

    /**
     * Writes the data of a step, one call of {@link #turn} after the step's size was published. Between the two calls,
     * the proxy may see the size without the data. This also happens with a GPU.
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
                LL128Line.NCCL.flagsRelease(from, slot, (int) (size / LL128Line.BYTES), LL128Line.flag(step));
                posting.tailRelease(step + 1);
            }
            case SIMPLE -> posting.tailRelease(step + 1);
        }
    }
}
