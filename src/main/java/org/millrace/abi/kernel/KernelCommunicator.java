package org.millrace.abi.kernel;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;
import static java.lang.foreign.MemoryLayout.PathElement.sequenceElement;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.AbortFlag;
import org.millrace.abi.ConnectionLayout;
import org.millrace.abi.KernelChannel;
import org.millrace.abi.Protocol;
import org.millrace.ffi.device.ncclKernelComm;
import org.millrace.foreign.Words;

/**
 * {@code ncclKernelComm}: the data of a communicator for kernels (the device communicator).
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
 * {@code isAllNvlink} is 0, because the emulated device has no NVLink. Since NCCL 2.30 this field is at offset 36,
 * behind {@code p2pCrossClique}. The host writes the struct once, before it launches the first kernel. After that the
 * struct is only read, so all accesses are plain. The struct points to memory that does change: the {@link AbortFlag}
 * and the {@link WorkCounters}. Facts: NCCL 2.30 {@code device.h}. Up to NCCL 2.27 the struct was called
 * {@code ncclDevComm}.
 */
public final class KernelCommunicator {
    public static final long BYTES = ncclKernelComm.sizeof();
    /** Alignment in bytes of the struct and of the channels that follow it in memory. */
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

    /**
     * {@return a view of a communicator's memory, which has {@link #BYTES} bytes and is aligned to {@link #ALIGNMENT}}
     */
    public static KernelCommunicator of(MemorySegment segment) {
        return new KernelCommunicator(Words.checked("ncclKernelComm", segment, BYTES, ALIGNMENT));
    }

    /** Sets the rank, the number of ranks, the node and the number of nodes. */
    public void place(int rank, int ranks, int node, int nodes) {
        Words.INT.set(segment, RANK, rank);
        Words.INT.set(segment, RANKS, ranks);
        Words.INT.set(segment, NODE, node);
        Words.INT.set(segment, NODES, nodes);
    }

    /** Sets the sizes of each connection's buffers, and the size of the chunks of sends and receives, in bytes. */
    public void sizes(ConnectionLayout layout, int transferChunk) {
        for (Protocol protocol : Protocol.values()) {
            Words.INT.set(segment, bufferSize(protocol), Math.toIntExact(layout.bufferBytes(protocol)));
        }
        Words.INT.set(segment, TRANSFER_CHUNK, transferChunk);
    }

    /**
     * Sets the addresses of the channels and of two arrays of ranks.
     *
     * @param channels   address of an array of {@link KernelArguments#MAX_CHANNELS} {@link KernelChannel}s
     * @param localRanks address of an array with one int for each rank: the rank's index among the ranks of the same
     *                   machine
     * @param dense      address of an array of all ranks, sorted by machine
     */
    public void topology(long channels, long localRanks, long dense) {
        Words.LONG.set(segment, DENSE_TO_USER, dense);
        Words.LONG.set(segment, CHANNELS, channels);
        Words.LONG.set(segment, LOCAL_RANKS, localRanks);
    }

    /**
     * Sets the addresses of the memory that changes after the first launch.
     *
     * @param abortFlag     address of the {@link AbortFlag}
     * @param workStarted   address of an array of {@link WorkCounters} for the start of work, one for each channel
     * @param workCompleted address of an array of {@link WorkCounters} for the completion of work, one for each channel
     */
    public void shared(long abortFlag, long workStarted, long workCompleted) {
        Words.LONG.set(segment, ABORT_FLAG, abortFlag);
        Words.LONG.set(segment, WORK_STARTED, workStarted);
        Words.LONG.set(segment, WORK_COMPLETED, workCompleted);
    }

    /** {@return the address of the struct, which is an argument of each kernel} */
    public long address() {
        return segment.address();
    }

    public int rank() {
        return (int) Words.INT.get(segment, RANK);
    }

    public int ranks() {
        return (int) Words.INT.get(segment, RANKS);
    }

    /** {@return the index of this rank's machine} */
    public int node() {
        return (int) Words.INT.get(segment, NODE);
    }

    /** {@return the number of machines} */
    public int nodes() {
        return (int) Words.INT.get(segment, NODES);
    }

    /** {@return the size of the buffer of a protocol in a connection, in bytes} */
    public int bufferBytes(Protocol protocol) {
        return (int) Words.INT.get(segment, bufferSize(protocol));
    }

    /** {@return the size of a chunk of sends and receives, in bytes} */
    public int transferChunk() {
        return (int) Words.INT.get(segment, TRANSFER_CHUNK);
    }

    /** {@return the address of the array of {@link KernelChannel}s} */
    public long channels() {
        return (long) Words.LONG.get(segment, CHANNELS);
    }

    /** {@return the address of an array of all ranks, sorted by machine} */
    public long denseToUser() {
        return (long) Words.LONG.get(segment, DENSE_TO_USER);
    }

    /**
     * {@return the address of an array with one int for each rank: the rank's index among the ranks of the same
     * machine}
     */
    public long localRanks() {
        return (long) Words.LONG.get(segment, LOCAL_RANKS);
    }

    /** {@return the layout of a connection's buffers} */
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
