package org.millrace.abi;

import static java.lang.foreign.MemoryLayout.PathElement.groupElement;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import org.millrace.ffi.mailbox.mailbox_h;
import org.millrace.ffi.mailbox.millraceCopyCommand;
import org.millrace.ffi.mailbox.millraceCopyMailbox;

/**
 * What a host tells a kernel that copies for it, and what that answers.
 *
 * <pre>
 *    0            32           64               2048     2052         2116    2176     2180    2304
 *    +------------+------------+------ - - -----+--------+------ - ---+- - - -+--------+- - - -+
 *    | command 0  | command 1  |                |  done  |   copied   |  pad  | state  |  pad  |
 *    +------------+------------+------ - - -----+--------+------ - ---+- - - -+--------+- - - -+
 *                                                 u32      u32 a worker         u32
 *    a command, the bits of its words
 *    0                  48     64 = 0            48     64 = 0 16    32     48     64 = 0   32     40    41   48     64
 *    +------------------+------+------------------+------+----+----+-------+------+-----------+------+-----+----+------+
 *    |  to, lower bits  |number| from, lower bits |number| to |from|       |number|   bytes   |worker|order|    |number|
 *    +------------------+------+------------------+------+----+----+-------+------+-----------+------+-----+----+------+
 *                                                        upper bits
 * </pre>
 *
 * <p>
 * Command {@code n} lies at {@code n} modulo {@link #COMMANDS}. The host writes commands, and {@code state} while no
 * kernel is there; the kernel writes {@code done}, the number of the first command that it has neither carried out nor
 * given to a worker, {@code copied}, how many copies each worker has made in all, and {@code state} while it is there.
 * Numbers wrap at 2<sup>32</sup>.
 *
 * <p>
 * A word of a command is there when the lower bits of the command's number are, as in a line of LL, so that reads
 * across PCIe bring many commands. The words' releases pair with the kernel's acquires: what is to be copied is visible
 * to it. The kernel's releases of {@code done} and {@code copied} pair with the acquires here: a thread that is told
 * then that a copy was made sees it.
 */
public final class CopyMailbox extends PolledStruct {
    public static final long BYTES = millraceCopyMailbox.sizeof();
    /** The alignment that its accesses need. */
    public static final long ALIGNMENT = millraceCopyMailbox.layout().byteAlignment();
    /** How many commands there is room for; a power of two. */
    public static final int COMMANDS = mailbox_h.MILLRACE_COPY_COMMANDS();
    /** How many workers there are at most. */
    public static final int WORKERS = mailbox_h.MILLRACE_COPY_WORKERS();
    /** How many copies a worker may have been given and not have made; a power of two. */
    public static final int GIVEN = mailbox_h.MILLRACE_COPY_GIVEN();
    /** {@link #stateAcquire()}: no kernel is there, or it has not begun. */
    public static final int ABSENT = mailbox_h.MILLRACE_COPY_ABSENT();
    /** {@link #stateAcquire()}: a kernel carries out commands. */
    public static final int PRESENT = mailbox_h.MILLRACE_COPY_PRESENT();
    /** {@link #stateAcquire()}: the kernel looks at the commands for the last time. */
    public static final int LEAVING = mailbox_h.MILLRACE_COPY_LEAVING();
    /** {@link #stateAcquire()}: the kernel reads no command any more. */
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
     * Has bytes copied.
     *
     * @param number  of the command; its place must be free
     * @param bytes   1 to 2<sup>30</sup> - 1
     * @param worker  who copies, from 1; 0: the warp that reads the commands, which can do so with few bytes only
     * @param ordered whether nobody may see the bytes before what the worker was given earlier
     */
    public void copyRelease(int number, long to, long from, int bytes, int worker, boolean ordered) {
        long work = bytes | (long) worker << WORKER_SHIFT | (ordered ? 1L << ORDERED_SHIFT : 0);
        long command = base + (long) (number & COMMANDS - 1) * COMMAND_BYTES;
        long flag = (long) number << NUMBER_SHIFT;
        long upper = to >>> NUMBER_SHIFT | from >>> NUMBER_SHIFT << FROM_SHIFT;
        Words.LONG.setRelease(Words.MEMORY, command + TO, to & LOWER_BITS | flag);
        Words.LONG.setRelease(Words.MEMORY, command + FROM, from & LOWER_BITS | flag);
        Words.LONG.setRelease(Words.MEMORY, command + UPPER, upper | flag);
        Words.LONG.setRelease(Words.MEMORY, command + WORK, work | flag);
    }

    /** {@return how many copies a worker has made; what they copied is there} */
    public int copiedAcquire(int worker) {
        return (int) Words.INT.getAcquire(Words.MEMORY, base + COPIED + (long) (worker - 1) * Integer.BYTES);
    }

    /**
     * {@return the number of the first command that was neither carried out nor given to a worker; what the warp copied
     * before it is there}
     */
    public int doneAcquire() {
        return (int) Words.INT.getAcquire(Words.MEMORY, base + DONE);
    }

    /** Sets the number of the first command, while no kernel is there. */
    public void donePlain(int number) {
        Words.INT.set(Words.MEMORY, base + DONE, number);
    }

    /** {@return how far the kernel is: one of the constants} */
    public int stateAcquire() {
        return (int) Words.INT.getAcquire(Words.MEMORY, base + STATE) & (1 << STREAM_SHIFT) - 1;
    }

    /** {@return in which stream the kernel was launched that is there, as {@link #PRESENT} was seen} */
    public int streamPlain() {
        return (int) Words.INT.get(Words.MEMORY, base + STATE) >>> STREAM_SHIFT;
    }

    /**
     * How far the kernel is, behind what this thread has posted. A full fence: pairs with that of the kernel between
     * its store of {@link #LEAVING} and its last look at the commands. If this sees {@link #PRESENT}, the kernel sees
     * the command.
     */
    public int stateBehindCommand() {
        VarHandle.fullFence();
        return stateAcquire();
    }

    /** A kernel is to be there, which begins where {@link #donePlain} says. Pairs with the kernel's acquire. */
    public void stateAbsentRelease() {
        Words.INT.setRelease(Words.MEMORY, base + STATE, ABSENT);
    }

    /** The kernel that was going to be there could not be launched. Pairs with {@link #stateAcquire}. */
    public void stateGoneRelease() {
        Words.INT.setRelease(Words.MEMORY, base + STATE, GONE);
    }
}
