package org.millrace.abi.kernel;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import org.millrace.ffi.mailbox.mailbox_h;
import org.millrace.ffi.mailbox.millraceCopyCommand;
import org.millrace.ffi.mailbox.millraceCopyMailbox;
import org.millrace.foreign.PolledStruct;
import org.millrace.foreign.Words;

/**
 * Memory that the host shares with a kernel that makes copies ({@code src/main/cuda/copy.cu}). The host posts commands,
 * and the kernel reports its progress and its state.
 *
 * <pre>
 *    0            32           64               2048     2052         2116    2176     2180    2304
 *    +------------+------------+------ - - -----+--------+------ - ---+- - - -+--------+- - - -+
 *    | command 0  | command 1  |                |  done  |   copied   |  pad  | state  |  pad  |
 *    +------------+------------+------ - - -----+--------+------ - ---+- - - -+--------+- - - -+
 *                                                 u32      u32 per worker       u32
 *    a command, the bits of its words
 *    0                48     64 = 0           48     64=0 16   32      48     64=0     32     40    41   42 48     64
 *    +----------------+------+----------------+------+----+----+-------+------+--------+------+-----+----+--+------+
 *    |to, lower bits  |number|from, lower bits|number| to |from|       |number| bytes  |worker|order|stay|  |number|
 *    +----------------+------+----------------+------+----+----+-------+------+--------+------+-----+----+--+------+
 *                                                        upper bits
 * </pre>
 *
 * <p>
 * Command {@code n} lies at index {@code n} modulo {@link #COMMANDS}. The host writes the commands. It also writes
 * {@code state} while no kernel is running. The kernel writes the following fields:
 * <ul>
 * <li>{@code done}, the number of the first command that it has neither executed nor passed to a worker
 * <li>{@code copied}, the total number of copies that each worker has made
 * <li>{@code state}, while the kernel is running
 * </ul>
 * Numbers wrap at 2<sup>32</sup>.
 *
 * <p>
 * A word of a command is present if it contains the lower bits of the command's number, as in a line of LL. The kernel
 * can therefore read many commands at the same time, with many reads across PCIe in flight. The host stores each word
 * with release, and the kernel loads it with acquire, so the data to copy is visible to the kernel. The kernel stores
 * {@code done} and {@code copied} with release, and the host loads them with acquire. After such a load the host sees
 * the copied data. Any thread that the host then notifies also sees this data.
 */
public final class CopyMailbox extends PolledStruct {
    public static final long BYTES = millraceCopyMailbox.sizeof();
    /** Alignment that the accesses require, in bytes. */
    public static final long ALIGNMENT = millraceCopyMailbox.layout().byteAlignment();
    /** Number of commands that fit in the mailbox; a power of two. */
    public static final int COMMANDS = mailbox_h.MILLRACE_COPY_COMMANDS();
    /** Maximum number of workers. */
    public static final int WORKERS = mailbox_h.MILLRACE_COPY_WORKERS();
    /** Maximum number of copies that a worker has received but not completed; a power of two. */
    public static final int GIVEN = mailbox_h.MILLRACE_COPY_GIVEN();
    /** Value of {@link #stateAcquire()}: a launch was requested, and no kernel has started since. */
    public static final int ABSENT = mailbox_h.MILLRACE_COPY_ABSENT();
    /** Value of {@link #stateAcquire()}: a kernel executes commands. */
    public static final int PRESENT = mailbox_h.MILLRACE_COPY_PRESENT();
    /** Value of {@link #stateAcquire()}: the kernel reads the commands for the last time. */
    public static final int LEAVING = mailbox_h.MILLRACE_COPY_LEAVING();
    /** Value of {@link #stateAcquire()}: the kernel has left and reads no further command. */
    public static final int GONE = mailbox_h.MILLRACE_COPY_GONE();

    private static final long DONE = millraceCopyMailbox.layout().byteOffset(groupElement("done"));
    private static final long COPIED = millraceCopyMailbox.layout().byteOffset(groupElement("copied"));
    private static final long STATE = millraceCopyMailbox.layout().byteOffset(groupElement("state"));
    private static final long COMMAND_BYTES = millraceCopyCommand.sizeof();
    private static final long TO = offset("to");
    private static final long FROM = offset("from");
    private static final long UPPER = offset("upper");
    private static final long WORK = offset("work");
    private static final int NUMBER_SHIFT = mailbox_h.MILLRACE_COPY_NUMBER_SHIFT();
    private static final int FROM_SHIFT = mailbox_h.MILLRACE_COPY_FROM_SHIFT();
    private static final int WORKER_SHIFT = mailbox_h.MILLRACE_COPY_WORKER_SHIFT();
    private static final int ORDERED_SHIFT = mailbox_h.MILLRACE_COPY_ORDERED_SHIFT();
    private static final int EXTENDS_SHIFT = mailbox_h.MILLRACE_COPY_EXTENDS_SHIFT();
    private static final int STREAM_SHIFT = mailbox_h.MILLRACE_COPY_STREAM_SHIFT();
    private static final long LOWER_BITS = (1L << NUMBER_SHIFT) - 1;

    private CopyMailbox(MemorySegment segment) {
        super("millraceCopyMailbox", segment, BYTES, ALIGNMENT);
    }

    /** {@return a view of a mailbox of exactly {@link #BYTES} bytes, aligned to {@link #ALIGNMENT}} */
    public static CopyMailbox of(MemorySegment segment) {
        return new CopyMailbox(segment);
    }

    private static long offset(String word) {
        return millraceCopyCommand.layout().byteOffset(groupElement(word));
    }

    /**
     * Posts a command that copies bytes.
     *
     * @param number  number of the command; the previous command at its index must be done
     * @param to      address of the target
     * @param from    address of the source
     * @param bytes   number of bytes to copy, 1 to 2<sup>30</sup> - 1
     * @param worker  number of the worker that makes the copy, from 1; 0 for the warp that reads the commands. This
     *                warp can copy only a few bytes
     * @param ordered whether the bytes of the worker's earlier commands must become visible before the bytes of this
     *                command
     * @param extend  whether the kernel's stay is extended because of this command
     */
    public void copyRelease(int number, long to, long from, int bytes, int worker, boolean ordered, boolean extend) {
        long work = bytes | (long) worker << WORKER_SHIFT | (ordered ? 1L << ORDERED_SHIFT : 0)
                | (extend ? 1L << EXTENDS_SHIFT : 0);
        long command = base + (long) (number & COMMANDS - 1) * COMMAND_BYTES;
        long flag = (long) number << NUMBER_SHIFT;
        long upper = to >>> NUMBER_SHIFT | from >>> NUMBER_SHIFT << FROM_SHIFT;
        Words.LONG.setRelease(Words.MEMORY, command + TO, to & LOWER_BITS | flag);
        Words.LONG.setRelease(Words.MEMORY, command + FROM, from & LOWER_BITS | flag);
        Words.LONG.setRelease(Words.MEMORY, command + UPPER, upper | flag);
        Words.LONG.setRelease(Words.MEMORY, command + WORK, work | flag);
    }

    /** {@return the number of copies that a worker has completed; the copied data is visible after this acquire} */
    public int copiedAcquire(int worker) {
        return (int) Words.INT.getAcquire(Words.MEMORY, base + COPIED + (long) (worker - 1) * Integer.BYTES);
    }

    /**
     * {@return the number of the first command that was neither executed nor passed to a worker; after this acquire,
     * the data of all commands that the reading warp itself executed is visible}
     */
    public int doneAcquire() {
        return (int) Words.INT.getAcquire(Words.MEMORY, base + DONE);
    }

    /** Sets the number of the first command that the next kernel reads. Called while no kernel is running. */
    public void donePlain(int number) {
        Words.INT.set(Words.MEMORY, base + DONE, number);
    }

    /** {@return the state of the kernel: {@link #ABSENT}, {@link #PRESENT}, {@link #LEAVING} or {@link #GONE}} */
    public int stateAcquire() {
        return (int) Words.INT.getAcquire(Words.MEMORY, base + STATE) & (1 << STREAM_SHIFT) - 1;
    }

    /**
     * {@return the number of the running kernel's stream; valid after {@link #stateAcquire} has returned
     * {@link #PRESENT}}
     */
    public int streamPlain() {
        return (int) Words.INT.get(Words.MEMORY, base + STATE) >>> STREAM_SHIFT;
    }

    /**
     * Returns the state of the kernel at a time after this thread has posted its commands. A full fence orders the
     * store of the commands before the load of the state. The fence pairs with a full fence of the kernel. The kernel
     * executes that fence after its store of {@link #LEAVING} and before its last read of the commands. If this method
     * returns {@link #PRESENT}, the kernel reads all these commands.
     */
    public int stateBehindCommand() {
        VarHandle.fullFence();
        return stateAcquire();
    }

    /**
     * Records that a kernel is about to be launched. The kernel starts with the command that {@link #donePlain} set.
     * This release pairs with the kernel's acquire of the state.
     */
    public void stateAbsentRelease() {
        Words.INT.setRelease(Words.MEMORY, base + STATE, ABSENT);
    }

    /** Records that the launch of the kernel failed. This release pairs with {@link #stateAcquire}. */
    public void stateGoneRelease() {
        Words.INT.setRelease(Words.MEMORY, base + STATE, GONE);
    }
}
