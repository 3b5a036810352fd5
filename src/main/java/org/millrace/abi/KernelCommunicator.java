package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.MemoryLayout.PathElement.sequenceElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.ncclKernelComm;

/**
 * {@code ncclKernelComm}: a communicator as kernels see it.
 *
 * <pre>
 *    0      4        8      12       16              28              32           40            48
 *    +------+--------+------+--------+---------------+---------------+------------+-------------+-----------+
 *    | rank | nRanks | node | nNodes | buffSizes[3]  | p2pChunkSize  | isAllNvlink| denseToUser | abortFlag |
 *    +------+--------+------+--------+---------------+---------------+------------+-------------+-----------+
 *    56         64                72            80              88
 *    +----------+-----------------+-------------+---------------+
 *    | channels | rankToLocalRank | workStarted | workCompleted |
 *    +----------+-----------------+-------------+---------------+
 * </pre>
 *
 * <p>
 * {@code isAllNvlink} is 0: there is none. Written once, before the first kernel is launched, and only read after that:
 * all accesses are plain. What changes lies behind its pointers: the {@link AbortFlag}, and the {@link WorkCounters}.
 * Facts: NCCL 2.28 {@code device.h} (there {@code ncclDevComm} up to 2.27).
 */
public final class KernelCommunicator {
    public static final long BYTES = ncclKernelComm.sizeof();
    /** Its alignment: that of the struct with its channels. */
    public static final long ALIGNMENT = 16;

    private static final long RANK = offset("rank");
    private static final long RANKS = offset("nRanks");
    private static final long NODE = offset("node");
    private static final long NODES = offset("nNodes");
    private static final long TRANSFER_CHUNK = offset("p2pChunkSize");
    private static final long DENSE_TO_USER = offset("collNetDenseToUserRank");
    private static final long ABORT_FLAG = offset("abortFlag");
    private static final long CHANNELS = offset("channels");
    private static final long LOCAL_RANKS = offset("rankToLocalRank");
    private static final long WORK_STARTED = offset("workStarted");
    private static final long WORK_COMPLETED = offset("workCompleted");

    private final MemorySegment segment;

    private KernelCommunicator(MemorySegment segment) {
        this.segment = segment;
    }

    /** {@return a view of a communicator of exactly {@link #BYTES} bytes, aligned to {@link #ALIGNMENT}} */
    public static KernelCommunicator of(MemorySegment segment) {
        return new KernelCommunicator(Words.checked("ncclKernelComm", segment, BYTES, ALIGNMENT));
    }

    /** Says who this is among whom. */
    public void place(int rank, int ranks, int node, int nodes) {
        Words.INT.set(segment, RANK, rank);
        Words.INT.set(segment, RANKS, ranks);
        Words.INT.set(segment, NODE, node);
        Words.INT.set(segment, NODES, nodes);
    }

    /** Says how large things are. */
    public void sizes(ConnectionLayout layout, int transferChunk) {
        for (Protocol protocol : Protocol.values()) {
            Words.INT.set(segment, bufferSize(protocol), Math.toIntExact(layout.bufferBytes(protocol)));
        }
        Words.INT.set(segment, TRANSFER_CHUNK, transferChunk);
    }

    /**
     * Says how ranks lie to each other.
     *
     * @param channels   address of the {@link KernelChannel}s, {@link KernelArguments#MAX_CHANNELS} of them
     * @param localRanks address of an int for each rank: its number among those of its machine
     * @param dense      address of an int for each rank: the ranks in the order of their machines
     */
    public void topology(long channels, long localRanks, long dense) {
        Words.LONG.set(segment, DENSE_TO_USER, dense);
        Words.LONG.set(segment, CHANNELS, channels);
        Words.LONG.set(segment, LOCAL_RANKS, localRanks);
    }

    /**
     * Says where what changes lies.
     *
     * @param workStarted address of {@link WorkCounters}, one for each channel
     */
    public void shared(long abortFlag, long workStarted, long workCompleted) {
        Words.LONG.set(segment, ABORT_FLAG, abortFlag);
        Words.LONG.set(segment, WORK_STARTED, workStarted);
        Words.LONG.set(segment, WORK_COMPLETED, workCompleted);
    }

    /** {@return where it lies: what a kernel is launched with} */
    public long address() {
        return segment.address();
    }

    public int rank() {
        return (int) Words.INT.get(segment, RANK);
    }

    public int ranks() {
        return (int) Words.INT.get(segment, RANKS);
    }

    /** {@return this rank's machine} */
    public int node() {
        return (int) Words.INT.get(segment, NODE);
    }

    /** {@return how many machines there are} */
    public int nodes() {
        return (int) Words.INT.get(segment, NODES);
    }

    /** {@return bytes of a connection's buffer} */
    public int bufferBytes(Protocol protocol) {
        return (int) Words.INT.get(segment, bufferSize(protocol));
    }

    /** {@return bytes of a chunk of sends and receives} */
    public int transferChunk() {
        return (int) Words.INT.get(segment, TRANSFER_CHUNK);
    }

    /** {@return address of the {@link KernelChannel}s} */
    public long channels() {
        return (long) Words.LONG.get(segment, CHANNELS);
    }

    /** {@return address of an int for each rank: the ranks in the order of their machines} */
    public long denseToUser() {
        return (long) Words.LONG.get(segment, DENSE_TO_USER);
    }

    /** {@return address of an int for each rank: its number among those of its machine} */
    public long localRanks() {
        return (long) Words.LONG.get(segment, LOCAL_RANKS);
    }

    /** {@return how a connection's buffers lie} */
    public ConnectionLayout layout() {
        return new ConnectionLayout(bufferBytes(Protocol.LL), bufferBytes(Protocol.LL128),
                bufferBytes(Protocol.SIMPLE));
    }

    private static long bufferSize(Protocol protocol) {
        return ncclKernelComm.layout().byteOffset(groupElement("buffSizes"), sequenceElement(protocol.ordinal()));
    }

    private static long offset(String field) {
        return ncclKernelComm.layout().byteOffset(groupElement(field));
    }
}
