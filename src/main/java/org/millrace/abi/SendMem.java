package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.ncclSendMem;

/**
 * {@code ncclSendMem}: the half of a connection's control memory that returns credit.
 *
 * <pre>
 *    0        8                 128          136                  152         256               288       4096
 *    +--------+-------- - - ----+------------+--------------------+---- - - --+-----------------+--- - - --+
 *    | head   |       pad       | ptrExchange| redOpArgExchange[2]|    pad    | offsFifo[8]     |   pad    |
 *    +--------+-------- - - ----+------------+--------------------+---- - - --+-----------------+--- - - --+
 *      u64                        pointer      u64                              i32
 * </pre>
 *
 * <p>
 * {@code head} is the number of steps with slots that are free again. The first 128 bytes contain no other field.
 *
 * <table>
 * <caption>Writers of head</caption>
 * <tr>
 * <th>side</th>
 * <th>writer</th>
 * <th>reader</th>
 * </tr>
 * <tr>
 * <td>send</td>
 * <td>the proxy, after a step has left its slot</td>
 * <td>the sending kernel, which waits until {@code head + 8 >= step + 1}</td>
 * </tr>
 * <tr>
 * <td>receive</td>
 * <td>the receiving kernel, after it has used a slot</td>
 * <td>the proxy, before it fills a slot</td>
 * </tr>
 * </table>
 *
 * <p>
 * A release of {@code head} pairs with the acquire on the other side. All accesses to the slot and to its
 * {@code connFifo} entry come before the release, so the other side may overwrite both. On the send side the entry's
 * size must be {@link RecvMem#EMPTY} before {@code head} announces that the entry may be used again.
 *
 * <p>
 * The exchange words are for kernels that access each other's memory directly. No release that Millrace knows uses
 * {@code offsFifo}, because offsets travel in {@link RecvMem}. A proxy does not access these fields. Facts: NCCL 2.28
 * {@code comm.h}, {@code transport/net.cc}.
 */
public final class SendMem extends PolledStruct {
    /** The struct's size: one page. */
    public static final long BYTES = ncclSendMem.sizeof();
    /** The alignment that the accesses require. NCCL's own structs lie on a page boundary. */
    public static final long ALIGNMENT = ncclSendMem.layout().byteAlignment();
    /** Offset of {@code head}. */
    public static final long HEAD_OFFSET = ncclSendMem.layout().byteOffset(groupElement("head"));

    private SendMem(MemorySegment segment) {
        super("ncclSendMem", segment, BYTES, ALIGNMENT);
    }

    /** {@return a view of a send half of exactly {@link #BYTES} bytes, aligned to {@link #ALIGNMENT}} */
    public static SendMem of(MemorySegment segment) {
        return new SendMem(segment);
    }

    /** {@return the number of freed steps; the peer's accesses to their slots happened before} */
    public long headAcquire() {
        return (long) Words.LONG.getAcquire(Words.MEMORY, base + HEAD_OFFSET);
    }

    /** {@return the number of freed steps, without order; for the only writer of the field} */
    public long headPlain() {
        return (long) Words.LONG.get(Words.MEMORY, base + HEAD_OFFSET);
    }

    /** Frees the slots of all steps before the given step, after all accesses of this thread to these slots. */
    public void headRelease(long step) {
        Words.LONG.setRelease(Words.MEMORY, base + HEAD_OFFSET, step);
    }

    /** Initializes {@code head} with a plain store, before any other thread or device accesses the memory. */
    public void headPlain(long step) {
        Words.LONG.set(Words.MEMORY, base + HEAD_OFFSET, step);
    }
}
