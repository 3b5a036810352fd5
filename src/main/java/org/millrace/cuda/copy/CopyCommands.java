package org.millrace.cuda.copy;

import java.time.Duration;
import java.util.function.BooleanSupplier;
import java.util.function.IntConsumer;
import org.millrace.MillraceException;
import org.millrace.abi.CopyMailbox;
import org.millrace.agent.Waiting;

/**
 * What a kernel is told that stays on a GPU as long as there are copies to make. It leaves by itself, and is asked to
 * come again when there is a copy for it; nobody waits until it does, because it may be long before a GPU has room for
 * it.
 *
 * <pre>
 *    ABSENT  ───────→  PRESENT  ───────→  LEAVING  ───────→  GONE
 *      ↑      it runs           nothing to        it looked    │
 *      │                        do, or too long   once more    │
 *      └──────────────────────── invite() ─────────────────────┘
 * </pre>
 *
 * <p>
 * One thread at a time.
 */
final class CopyCommands {

    /** The kernel's 32 lanes load all of a copy at once, with 16 loads each. */
    private static final int LOADS = 32 * 16;
    private static final int WIDEST_LOAD = 16;
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    private final CopyMailbox mailbox;
    private final IntConsumer launch;
    private int next;
    private boolean launched;

    /**
     * Commands for a kernel that was never launched.
     *
     * @param mailbox zeroed memory
     * @param first   the number of the first command; 1, or whatever a test wants to wrap
     * @param launch  enqueues the kernel, which is to begin with the command of the given number
     */
    CopyCommands(CopyMailbox mailbox, int first, IntConsumer launch) {
        this.mailbox = mailbox;
        this.launch = launch;
        this.next = first;
        mailbox.donePlain(first);
    }

    /**
     * Whether the kernel makes such a copy: by 16 bytes, by 8 or one by one, as all three numbers allow, and all at
     * once.
     */
    static boolean fits(long to, long from, long bytes) {
        long width = Long.lowestOneBit(to | from | bytes | WIDEST_LOAD);
        return bytes <= LOADS * (width < Long.BYTES ? 1 : width);
    }

    /** Has the kernel launched, if it is not there. */
    void invite() {
        if (!launched || mailbox.stateAcquire() == CopyMailbox.GONE) {
            launched = false;
            mailbox.stateAbsent();
            launch.accept(next);
            launched = true;
        }
    }

    /** Whether the kernel is there and has room for another command. */
    boolean isReady() {
        return mailbox.stateAcquire() == CopyMailbox.PRESENT && next - mailbox.doneAcquire() < CopyMailbox.COMMANDS;
    }

    /** Has bytes copied, as {@link #last()}; false if the kernel went without seeing that. It was ready. */
    boolean copy(long to, long from, int bytes) {
        mailbox.copyRelease(next, to, from, bytes);
        return isSeen();
    }

    /** Has a value of 4 or 8 bytes stored, as {@link #copy}. */
    boolean store(long to, long value, int bytes) {
        mailbox.valueRelease(next, to, value, bytes);
        return isSeen();
    }

    private boolean isSeen() {
        int number = next++; // one that was not seen is not used again: its words lie where the next kernel would find
                             // them
        if (mailbox.stateBehindCommand() == CopyMailbox.PRESENT) {
            return true;
        }
        await(number, () -> mailbox.stateAcquire() == CopyMailbox.GONE); // a look across PCIe: a microsecond or two
        if (isDone(number)) {
            return true;
        }
        mailbox.donePlain(next);
        return false;
    }

    /** The number of the last command. */
    int last() {
        return next - 1;
    }

    /** Whether a command was carried out, and all before it. */
    boolean isDone(int number) {
        return mailbox.doneAcquire() - number > 0;
    }

    /** Waits until the commands are carried out that were given by now; from any thread. */
    void settle() {
        await(last());
    }

    /** Waits until a command is carried out, and all before it. */
    void await(int number) {
        await(number, () -> isDone(number));
    }

    /** Waits until the kernel has left, as it does by itself; from any thread. */
    void awaitLeave() {
        await(last(), () -> !launched || mailbox.stateAcquire() == CopyMailbox.GONE);
    }

    private static void await(int number, BooleanSupplier condition) {
        if (!Waiting.until(condition, PATIENCE)) {
            throw new MillraceException(
                    "the kernel that makes small copies does not answer (command " + Integer.toUnsignedString(number)
                            + "): see whether something keeps the GPU from running it, or do without it:"
                            + " MILLRACE_GIN_COPY_KERNEL=0");
        }
    }
}
