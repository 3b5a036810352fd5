package org.millrace.abi.gin;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.ncclGinProxyGpuCtx_v1_t;
import org.millrace.ffi.device.ncclGinProxyGpuCtx_v2_t;
import org.millrace.foreign.Words;

/**
 * {@code ncclGinProxyGpuCtx_t}: a kernel's view of a GIN context. A plugin writes the struct before it passes the
 * struct to libnccl. After that, no thread writes it.
 *
 * <pre>
 *    0       4           8       16     24     32        40       48             56             64              72
 *    +-------+-----------+-------+------+------+---------+--------+--------------+--------------+---------------+
 *    | nranks| queueSize | queues| pis  | cis  | counters| signals| signalOffsets| lastIssuedGet| lastVisibleGet|
 *    +-------+-----------+-------+------+------+---------+--------+--------------+--------------+---------------+
 *      i32     u32         pointers                               `--------- version 2, NCCL 2.30.5 ----------'
 * </pre>
 *
 * <p>
 * All pointers are device-visible addresses. Kernels change {@code pis}, {@code signalOffsets}, {@code lastIssuedGet}
 * and {@code lastVisibleGet} by atomic operations. These four arrays must therefore lie in device memory, and must
 * contain zeros at first. The other arrays may lie in mapped host memory. NCCL 2.28, 2.29, 2.30.3 and 2.30.4 use
 * version 1 of the struct. Later 2.30 releases use version 1 if {@code createContext} is called with backend version 1.
 * A handle can contain several contexts, one after another without gaps.
 */
public final class GinGpuContext {
    /** Size of version 1 in bytes. */
    public static final long BYTES_V1 = ncclGinProxyGpuCtx_v1_t.sizeof();
    /** Size of version 2 in bytes (from 2.30.5 on). */
    public static final long BYTES_V2 = ncclGinProxyGpuCtx_v2_t.sizeof();
    public static final long ALIGNMENT = ncclGinProxyGpuCtx_v2_t.layout().byteAlignment();

    private static final long RANKS = offset("nranks");
    private static final long QUEUE_SIZE = offset("queueSize");
    private static final long QUEUES = offset("queues");
    private static final long PIS = offset("pis");
    private static final long CIS = offset("cis");
    private static final long COUNTERS = offset("counters");
    private static final long SIGNALS = offset("signals");
    private static final long SIGNAL_OFFSETS = offset("signalOffsets");
    private static final long LAST_ISSUED_GET = offset("lastIssuedGet");
    private static final long LAST_VISIBLE_GET = offset("lastVisibleGet");

    private final MemorySegment segment;

    private GinGpuContext(MemorySegment segment) {
        this.segment = segment;
    }

    /**
     * {@return a view of a context}
     *
     * @param segment memory of exactly {@link #BYTES_V1} or {@link #BYTES_V2} bytes
     * @throws IllegalArgumentException if the size or the alignment of the segment is wrong
     */
    public static GinGpuContext of(MemorySegment segment) {
        long bytes = segment.byteSize() == BYTES_V1 ? BYTES_V1 : BYTES_V2;
        return new GinGpuContext(Words.checked("ncclGinProxyGpuCtx_t", segment, bytes, ALIGNMENT));
    }

    /** {@return whether this context has version 2, with the fields of 2.30.5} */
    public boolean hasSignalOffsets() {
        return segment.byteSize() == BYTES_V2;
    }

    /**
     * Sets the fields that both versions have.
     *
     * @param queueSize number of descriptors of a queue, a power of two
     * @param pis       address of the producer indices: for each peer, the total number of the queue's places that
     *                  threads of kernels have reserved
     * @param cis       address of the consumer indices: for each peer, the total number of the queue's places that the
     *                  proxy has freed
     */
    public void set(int ranks, int queueSize, long queues, long pis, long cis, long counters, long signals) {
        Words.INT.set(segment, RANKS, ranks);
        Words.INT.set(segment, QUEUE_SIZE, queueSize);
        Words.LONG.set(segment, QUEUES, queues);
        Words.LONG.set(segment, PIS, pis);
        Words.LONG.set(segment, CIS, cis);
        Words.LONG.set(segment, COUNTERS, counters);
        Words.LONG.set(segment, SIGNALS, signals);
    }

    /**
     * Sets the fields that only version 2 has.
     *
     * @param signalOffsets  address of an array with the value of each signal at its last reset
     * @param lastIssuedGet  address of an array that contains, for each peer, the index of the newest get
     * @param lastVisibleGet address of an array that contains, for each peer, the index of the newest get that a flush
     *                       has covered
     */
    public void setGets(long signalOffsets, long lastIssuedGet, long lastVisibleGet) {
        Words.LONG.set(segment, SIGNAL_OFFSETS, signalOffsets);
        Words.LONG.set(segment, LAST_ISSUED_GET, lastIssuedGet);
        Words.LONG.set(segment, LAST_VISIBLE_GET, lastVisibleGet);
    }

    /** {@return the number of descriptors of a queue} */
    public int queueSize() {
        return (int) Words.INT.get(segment, QUEUE_SIZE);
    }

    /** {@return the address of the queues} */
    public long queues() {
        return (long) Words.LONG.get(segment, QUEUES);
    }

    /** {@return the address of the consumer indices} */
    public long cis() {
        return (long) Words.LONG.get(segment, CIS);
    }

    private static long offset(String field) {
        return ncclGinProxyGpuCtx_v2_t.layout().byteOffset(groupElement(field));
    }
}
