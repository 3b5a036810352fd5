package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.ncclGinProxyGpuCtx_v1_t;
import org.millrace.ffi.device.ncclGinProxyGpuCtx_v2_t;

/**
 * {@code ncclGinProxyGpuCtx_t}: a kernel's view of a GIN context. A plugin fills it in before it hands it out. After
 * that, no thread writes it.
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
 * All pointers are device-visible addresses. Kernels change {@code pis}, {@code signalOffsets} and the two arrays of
 * gets atomically. These must therefore be zeroed device memory. The other arrays may be mapped host memory. NCCL 2.28,
 * 2.29, 2.30.3 and 2.30.4 use version 1. Later 2.30 releases use it if {@code createContext} is called with backend
 * version 1. Several contexts in one handle follow each other without gaps.
 */
public final class GinGpuContext {
    /** Size up to 2.30.4. */
    public static final long BYTES_V1 = ncclGinProxyGpuCtx_v1_t.sizeof();
    /** Size from 2.30.5 on. */
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
     * @param segment exactly {@link #BYTES_V1} or {@link #BYTES_V2} bytes
     * @throws IllegalArgumentException if its size or alignment differs
     */
    public static GinGpuContext of(MemorySegment segment) {
        long bytes = segment.byteSize() == BYTES_V1 ? BYTES_V1 : BYTES_V2;
        return new GinGpuContext(Words.checked("ncclGinProxyGpuCtx_t", segment, bytes, ALIGNMENT));
    }

    /** {@return whether the fields of 2.30.5 are present} */
    public boolean hasSignalOffsets() {
        return segment.byteSize() == BYTES_V2;
    }

    /**
     * Sets the fields that every version has.
     *
     * @param queueSize number of descriptors of a queue, a power of two
     * @param pis       address of the producer indices (places handed out to kernel threads), by peer
     * @param cis       address of the consumer indices (places that are free again), by peer
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
     * @param signalOffsets  address of each signal's value at its last reset
     * @param lastIssuedGet  address of the index of the newest get, by peer
     * @param lastVisibleGet address of the index of the newest get that a flush has covered, by peer
     */
    public void setGets(long signalOffsets, long lastIssuedGet, long lastVisibleGet) {
        Words.LONG.set(segment, SIGNAL_OFFSETS, signalOffsets);
        Words.LONG.set(segment, LAST_ISSUED_GET, lastIssuedGet);
        Words.LONG.set(segment, LAST_VISIBLE_GET, lastVisibleGet);
    }

    /** {@return the number of peers, including this rank} */
    public int ranks() {
        return (int) Words.INT.get(segment, RANKS);
    }

    /** {@return the number of descriptors of a queue} */
    public int queueSize() {
        return (int) Words.INT.get(segment, QUEUE_SIZE);
    }

    /** {@return the address of the queues} */
    public long queues() {
        return (long) Words.LONG.get(segment, QUEUES);
    }

    /** {@return the address of the producer indices} */
    public long pis() {
        return (long) Words.LONG.get(segment, PIS);
    }

    /** {@return the address of the consumer indices} */
    public long cis() {
        return (long) Words.LONG.get(segment, CIS);
    }

    /** {@return the address of the counters} */
    public long counters() {
        return (long) Words.LONG.get(segment, COUNTERS);
    }

    /** {@return the address of the signals} */
    public long signals() {
        return (long) Words.LONG.get(segment, SIGNALS);
    }

    private static long offset(String field) {
        return ncclGinProxyGpuCtx_v2_t.layout().byteOffset(groupElement(field));
    }
}
