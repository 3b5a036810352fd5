package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.ncclGinProxyGpuCtx_v1_t;
import org.millrace.ffi.device.ncclGinProxyGpuCtx_v2_t;

/**
 * {@code ncclGinProxyGpuCtx_t}: what a kernel knows of a GIN context. A plugin fills it in before it hands it out;
 * afterwards nobody writes it.
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
 * All pointers are device-visible addresses. {@code pis}, the two of gets and {@code signalOffsets} are changed by
 * kernels atomically and must be device memory, zeroed; the others may be mapped host memory. Version 1 is that of
 * 2.28, 2.29, 2.30.3 and 2.30.4, and of later 2.30 where {@code createContext} is told backend version 1; where there
 * are several contexts in one handle they follow each other without gaps.
 */
public final class GinGpuContext {
    /** Its size up to 2.30.4. */
    public static final long BYTES_V1 = ncclGinProxyGpuCtx_v1_t.sizeof();
    /** Its size from 2.30.5. */
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
     * @throws IllegalArgumentException if its size or alignment is another
     */
    public static GinGpuContext of(MemorySegment segment) {
        long bytes = segment.byteSize() == BYTES_V1 ? BYTES_V1 : BYTES_V2;
        return new GinGpuContext(Words.checked("ncclGinProxyGpuCtx_t", segment, bytes, ALIGNMENT));
    }

    /** {@return whether the fields of 2.30.5 are there} */
    public boolean hasSignalOffsets() {
        return segment.byteSize() == BYTES_V2;
    }

    /**
     * Sets what every version has.
     *
     * @param queueSize descriptors of a queue, a power of two
     * @param pis       address of the places given out, by peer
     * @param cis       address of the places free again, by peer
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
     * Sets what version 2 has besides.
     *
     * @param signalOffsets  address of what each signal was when it was reset
     * @param lastIssuedGet  address of the newest get's index, by peer
     * @param lastVisibleGet address of the newest get's index that a flush has covered, by peer
     */
    public void setGets(long signalOffsets, long lastIssuedGet, long lastVisibleGet) {
        Words.LONG.set(segment, SIGNAL_OFFSETS, signalOffsets);
        Words.LONG.set(segment, LAST_ISSUED_GET, lastIssuedGet);
        Words.LONG.set(segment, LAST_VISIBLE_GET, lastVisibleGet);
    }

    /** {@return number of peers, this rank included} */
    public int ranks() {
        return (int) Words.INT.get(segment, RANKS);
    }

    /** {@return descriptors of a queue} */
    public int queueSize() {
        return (int) Words.INT.get(segment, QUEUE_SIZE);
    }

    /** {@return address of the queues} */
    public long queues() {
        return (long) Words.LONG.get(segment, QUEUES);
    }

    /** {@return address of the places given out} */
    public long pis() {
        return (long) Words.LONG.get(segment, PIS);
    }

    /** {@return address of the places free again} */
    public long cis() {
        return (long) Words.LONG.get(segment, CIS);
    }

    /** {@return address of the counters} */
    public long counters() {
        return (long) Words.LONG.get(segment, COUNTERS);
    }

    /** {@return address of the signals} */
    public long signals() {
        return (long) Words.LONG.get(segment, SIGNALS);
    }

    private static long offset(String field) {
        return ncclGinProxyGpuCtx_v2_t.layout().byteOffset(groupElement(field));
    }
}
