package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.ncclSendMem;
import org.millrace.foreign.PolledStruct;
import org.millrace.foreign.Words;

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
 * {@code head} is the number of freed steps. The slots of all steps below {@code head} may be used again. The first 128
 * bytes contain no other field.
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
 * A release of {@code head} pairs with the acquire of {@code head} by the other side. The writer accesses the slot and
 * its {@code connFifo} entry only before the release, so the reader may then overwrite both. On the send side the proxy
 * sets the entry's size to {@link RecvMem#EMPTY} before it advances {@code head}.
 *
 * <p>
 * {@code ptrExchange} and {@code redOpArgExchange} are for kernels that access each other's memory directly. No NCCL
 * release that Millrace supports uses {@code offsFifo}, because {@link RecvMem} contains the offsets. A proxy does not
 * access these fields. Facts: NCCL 2.28 {@code comm.h}, {@code transport/net.cc}.
 */
public final class SendMem extends PolledStruct {
    /** Size of the struct in bytes: one page. */
    public static final long BYTES = ncclSendMem.sizeof();
    /** Alignment that the accesses require, in bytes. NCCL's own structs lie on a page boundary. */
    public static final long ALIGNMENT = ncclSendMem.layout().byteAlignment();
    /** Offset of {@code head} in the struct, in bytes. */
    public static final long HEAD_OFFSET = ncclSendMem.layout().byteOffset(groupElement("head"));

    private SendMem(MemorySegment segment) {
        super("ncclSendMem", segment, BYTES, ALIGNMENT);
    }

    /** {@return a view of the struct in a segment of exactly {@link #BYTES} bytes, aligned to {@link #ALIGNMENT}} */
    public static SendMem of(MemorySegment segment) {
        return new SendMem(segment);
    }

    /**
     * {@return head: the number of freed steps; after this acquire, the writer of head no longer accesses the slots of
     * these steps}
     */
    public long headAcquire() {
        return (long) Words.LONG.getAcquire(Words.MEMORY, base + HEAD_OFFSET);
    }

    /** {@return head: the number of freed steps, without ordering; only for the thread that writes the field} */
    public long headPlain() {
        return (long) Words.LONG.get(Words.MEMORY, base + HEAD_OFFSET);
    }

    /**
     * Sets head to a step: frees the slots of all steps before this step. This thread's earlier accesses to these slots
     * happen before the store.
     */
    public void headRelease(long step) {
        Words.LONG.setRelease(Words.MEMORY, base + HEAD_OFFSET, step);
    }
}
