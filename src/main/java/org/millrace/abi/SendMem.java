package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import org.millrace.ffi.device.ncclSendMem;

/**
 * {@code ncclSendMem}: the half of a connection's control memory through which credit flows back.
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
 * {@code head} is the number of steps whose slots are free again; it lies alone in its 128 bytes.
 *
 * <table>
 * <caption>Who writes head</caption>
 * <tr>
 * <th>side</th>
 * <th>writer</th>
 * <th>reader</th>
 * </tr>
 * <tr>
 * <td>send</td>
 * <td>the proxy, after a step has left its slot</td>
 * <td>the sending kernel, which waits until {@code
 * head + 8 >= step + 1}</td>
 * </tr>
 * <tr>
 * <td>receive</td>
 * <td>the receiving kernel, after it has used a slot</td>
 * <td>the proxy, before it fills one</td>
 * </tr>
 * </table>
 *
 * <p>
 * A release of {@code head} pairs with the acquire on the other side: all accesses to the slot and to its {@code
 * connFifo} entry come before it, so the other side may overwrite both. On the send side the entry's size must be
 * {@link RecvMem#EMPTY} before {@code head} tells that the entry may be used again.
 *
 * <p>
 * The exchange words are for kernels that reach each other's memory directly, and no release that Millrace knows uses
 * {@code offsFifo} (offsets travel in {@link RecvMem}): a proxy leaves them alone. Facts: NCCL 2.28 {@code
 * comm.h}, {@code transport/net.cc}.
 */
public final class SendMem extends PolledStruct {
    /** The struct's size: one page. */
    public static final long BYTES = ncclSendMem.sizeof();
    /** The alignment that its accesses need. NCCL's own lie on a page boundary. */
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

    /** {@return the number of freed steps; what their slots held was used before} */
    public long headAcquire() {
        return (long) Words.LONG.getAcquire(Words.MEMORY, base + HEAD_OFFSET);
    }

    /** {@return the number of freed steps, for its only writer: no order} */
    public long headPlain() {
        return (long) Words.LONG.get(Words.MEMORY, base + HEAD_OFFSET);
    }

    /** Frees the slots of all steps before one, and with them everything this thread did to them. */
    public void headRelease(long step) {
        Words.LONG.setRelease(Words.MEMORY, base + HEAD_OFFSET, step);
    }

    /** Sets {@code head} while nobody else looks yet. */
    public void headPlain(long step) {
        Words.LONG.set(Words.MEMORY, base + HEAD_OFFSET, step);
    }
}
