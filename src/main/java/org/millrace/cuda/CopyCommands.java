package org.millrace.cuda;

import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.CopyMailbox;
import org.millrace.agent.Waiting;

/**
 * Commands to a kernel that stays on a GPU as long as it has copies to make. It leaves without being told, and is
 * invited again when a copy for it arrives. No thread waits for its arrival, because it may take long until a GPU has
 * room for it.
 *
 * <pre>
 *    ABSENT  ───────→  PRESENT  ───────→  LEAVING  ───────→  GONE
 *      ↑      it runs           nothing to        it looked    │
 *      │                        do, or too long   once more    │
 *      └──────────────────────── invite() ─────────────────────┘
 * </pre>
 *
 * <p>
 * The warp that reads the commands makes a few short copies itself, which is fastest. Workers make the other copies,
 * many at once. Copies of one sequence have one worker, which keeps the order of the strict copies. If a sequence has
 * had no strict copy for long, all workers share its copies. A strict copy is then posted after those copies are made.
 * So is a copy that must follow all copies of the workers.
 *
 * <p>
 * Commands are posted one after another and sealed together. Sealing determines the commands that the kernel sees,
 * because it may leave at any time. {@link CopyQueue}s that share a kernel take turns: one queue seals its posted
 * commands before the next queue posts.
 *
 * <p>
 * One thread at a time.
 */
final class CopyCommands {

    /** Maximum number of loads of a copy by the warp. Its 32 lanes load all of a copy at once, with 4 loads each. */
    private static final int LOADS = 32 * 4;
    private static final int WIDEST_LOAD = 16;
    /**
     * Maximum length in bytes of a copy for the workers. A copy engine alone has the bandwidth of all workers and makes
     * longer copies.
     */
    private static final int MAX_BYTES = 32 << 10;
    /** Number of copies in flight below which the warp is faster than a worker, which must be notified first. */
    private static final int FEW_COPIES = 2;
    /** Fraction of the golden ratio. It assigns numbers at any constant distance to workers that are far apart. */
    private static final long GOLDEN = 0x9e37_79b9L;
    /** Time within which a kernel starts if it starts at all, in nanoseconds. */
    static final long START_NANOS = TimeUnit.MICROSECONDS.toNanos(100);
    /**
     * Number of copies of a sequence, after its last strict one, that go to its own worker before they are spread. A
     * strict copy would have to wait for spread copies.
     */
    private static final int COPIES_BEFORE_SPREADING = 16;
    private static final Duration TIMEOUT = Duration.ofSeconds(10);

    private final CopyMailbox mailbox;
    private final Runnable launcher;
    /** By worker, from 1: number of copies given to it. */
    private final int[] given;
    private int next;
    /** First command that is posted but not sealed. */
    private int unsealed;
    /** By command: its worker; 0 for the warp. */
    private final byte[] workers = new byte[CopyMailbox.COMMANDS];
    /** Queue that posted the unsealed commands. */
    private @Nullable CopyQueue poster;
    private int nextWorker;
    /** By worker: number of copies of its sequences posted after the last strict one. */
    private final int[] sinceStrict;
    /** By worker: the last copy of its sequences that each other worker was given. */
    private final int[][] spread;
    /** By worker: whether copies of its sequences that other workers were given may be incomplete. */
    private final boolean[] isSpread;
    /**
     * Last values read from the kernel: its progress through the commands and, by worker, through the copies. This
     * thread sees the effects of completed copies.
     */
    private int done;
    private final int[] copied;
    /** Upper bound of the number of copies that any worker still has to make. */
    private int maxGiven;
    private boolean launched;
    /** Time when the kernel was invited and had not started yet; 0 after it has started. */
    private long invitedAt;
    /** Statistics for {@link #counts}. Threads other than this one may read slightly outdated values. */
    private long copies;
    private final long[] visitsByStream = new long[CopyLaunches.MAX_STREAMS];
    private long visits;
    private long waited;
    private long longestWait;

    /**
     * Creates the commands for a kernel that was never launched.
     *
     * @param first    number of the first command; 1, or a value near a wrap in tests
     * @param workers  number of workers, 0 to {@link CopyMailbox#WORKERS}
     * @param launcher enqueues the kernel without making the caller wait; after a failed attempt that may be repeated,
     *                 the state is {@link CopyMailbox#GONE}
     */
    CopyCommands(CopyMailbox mailbox, int first, int workers, Runnable launcher) {
        this.mailbox = mailbox;
        this.launcher = launcher;
        this.next = first;
        this.unsealed = first;
        this.done = first;
        this.given = new int[workers + 1];
        this.copied = new int[workers + 1];
        this.sinceStrict = new int[workers + 1];
        Arrays.fill(sinceStrict, COPIES_BEFORE_SPREADING);
        this.spread = new int[workers + 1][workers + 1];
        this.isSpread = new boolean[workers + 1];
        mailbox.donePlain(first);
    }

    /** Returns whether the kernel can make a copy. */
    boolean fits(long to, long from, long bytes, int order) {
        return given.length > 1 && order != CopyOrder.IN_TURN && bytes <= MAX_BYTES || fitsWarp(to, from, bytes);
    }

    /**
     * Returns whether the warp can make a copy at once. It copies units of 16 bytes, 8 bytes or 1 byte, depending on
     * the alignment of all three numbers.
     */
    private static boolean fitsWarp(long to, long from, long bytes) {
        long width = Long.lowestOneBit(to | from | bytes | WIDEST_LOAD);
        return bytes <= LOADS * (width < Long.BYTES ? 1 : width);
    }

    /** Has the kernel launched if it is not present. */
    void invite() {
        if (!launched || mailbox.stateAcquire() == CopyMailbox.GONE) {
            if (unsealed != next) {
                poster.seal(); // the next kernel begins after all posted commands
            }
            mailbox.stateAbsentRelease();
            launched = true;
            invitedAt = System.nanoTime();
            launcher.run();
        }
    }

    /** Returns the statistics as text for people and scripts. */
    String counts() {
        return copies + ", in " + visits + " visits that began "
                + (visits == 0 ? 0 : TimeUnit.NANOSECONDS.toMicros(waited / visits)) + " us after they were asked for ("
                + TimeUnit.NANOSECONDS.toMicros(longestWait) + " us at the most; by stream: "
                + Arrays.stream(visitsByStream).mapToObj(Long::toString).collect(Collectors.joining(" ")) + ")";
    }

    /** Returns whether the kernel is present and has room for another command. */
    boolean isReady() {
        if (mailbox.stateAcquire() != CopyMailbox.PRESENT) {
            return false;
        }
        if (invitedAt != 0) {
            begun(System.nanoTime() - invitedAt);
            invitedAt = 0;
        }
        return (next - done < CopyMailbox.COMMANDS || next - readDone() < CopyMailbox.COMMANDS) && workersHaveRoom();
    }

    /** Returns whether the kernel was invited and may start soon. */
    boolean isStarting() {
        return invitedAt != 0 && System.nanoTime() - invitedAt < START_NANOS;
    }

    private int readDone() {
        done = mailbox.doneAcquire();
        return done;
    }

    private int readCopied(int worker) {
        int now = mailbox.copiedAcquire(worker);
        if (now != copied[worker]) {
            // The line was fetched from memory. It contains the other workers' words, which are read next.
            for (int other = 1; other < copied.length; other++) {
                copied[other] = mailbox.copiedAcquire(other);
            }
            copied[worker] = now;
        }
        return now;
    }

    private void begun(long wait) {
        visits++;
        waited += wait;
        longestWait = Math.max(longestWait, wait);
        visitsByStream[mailbox.streamPlain() % CopyLaunches.MAX_STREAMS]++; // the kernel may have left meanwhile
    }

    private boolean workersHaveRoom() {
        if (maxGiven < CopyMailbox.GIVEN) {
            return true;
        }
        maxGiven = 0;
        for (int worker = 1; worker < given.length; worker++) {
            maxGiven = Math.max(maxGiven, given[worker] - readCopied(worker));
        }
        return maxGiven < CopyMailbox.GIVEN;
    }

    /**
     * Posts a copy. The kernel must be ready. A copy that must follow all others is posted when
     * {@link #areWorkersIdle}.
     *
     * @param by queue whose {@link CopyQueue#seal} is called before another queue posts
     * @return ticket for {@link #isDone}, valid once the copy is sealed
     */
    long post(long to, long from, int bytes, int order, @Nullable CopyQueue by) {
        if (poster != by) {
            if (poster != null && unsealed != next) {
                poster.seal();
            }
            poster = by;
        }
        int worker = worker(to, from, bytes, order);
        // A kernel may leave before it reads a command. The command's number is not reused, because the next kernel
        // would find the old command's words at that position.
        int number = next++;
        mailbox.copyRelease(number, to, from, bytes, worker, CopyOrder.isStrict(order));
        workers[number & CopyMailbox.COMMANDS - 1] = (byte) worker;
        if (worker == 0) {
            return ticket(0, number);
        }
        maxGiven++;
        return ticket(worker, ++given[worker]);
    }

    /** Returns the number of the queue's commands that are posted but not sealed. */
    int unsealed(CopyQueue of) {
        return poster == of ? next - unsealed : 0;
    }

    /**
     * Makes sure that the kernel sees the posted commands. If it has left before, its last look determines which
     * commands it saw.
     *
     * @return number of commands, at the end, that the kernel does not see
     */
    int seal() {
        int unseen = 0;
        if (next != unsealed && mailbox.stateBehindCommand() != CopyMailbox.PRESENT) {
            // a read across PCIe: one or two microseconds
            await(next, () -> mailbox.stateAcquire() == CopyMailbox.GONE);
            unseen = next - readDone();
            for (int number = done; number != next; number++) {
                int worker = workers[number & CopyMailbox.COMMANDS - 1];
                given[worker] -= worker == 0 ? 0 : 1;
            }
            mailbox.donePlain(next);
        }
        copies += next - unsealed - unseen;
        unsealed = next;
        return unseen;
    }

    private int worker(long to, long from, int bytes, int order) {
        if (given.length == 1 || order == CopyOrder.IN_TURN) {
            return 0;
        }
        boolean warp = fitsWarp(to, from, bytes) && next - readDone() < FEW_COPIES;
        if (order == CopyOrder.FREE) {
            return warp ? 0 : anyWorker();
        }
        int own = own(order);
        // The warp passes on later copies only after its own copies are complete, but it does not wait for a worker's
        // copies.
        if (warp && isIdle(own)) {
            return 0;
        }
        if (CopyOrder.isStrict(order)) {
            sinceStrict[own] = 0;
        } else if (sinceStrict[own] == COPIES_BEFORE_SPREADING) {
            int other = anyWorker();
            spread[own][other] = given[other] + 1;
            isSpread[own] = true;
            return other;
        } else {
            sinceStrict[own]++;
        }
        return own;
    }

    private int own(int order) {
        return 1 + (int) ((CopyOrder.sequence(order) * GOLDEN & 0xffff_ffffL) * (given.length - 1) >>> 32);
    }

    private int anyWorker() {
        nextWorker = nextWorker + 1 < given.length ? nextWorker + 1 : 1;
        return nextWorker;
    }

    /**
     * Returns whether a copy must wait, before it is posted, for earlier copies of its sequence that several workers
     * make.
     */
    boolean isAfterSpread(int order) {
        return given.length > 1 && order > CopyOrder.FREE && CopyOrder.isStrict(order) && isSpread[own(order)];
    }

    /** Waits until all copies that a {@linkplain CopyOrder#strict strict} copy must follow are complete. */
    void awaitSpread(int order) {
        if (unsealed != next) {
            poster.seal(); // otherwise the kernel may not see the awaited commands
        }
        int own = own(order);
        for (int worker = 1; worker < given.length; worker++) {
            // commands that the kernel did not see were withdrawn
            int last = spread[own][worker] - given[worker] > 0 ? given[worker] : spread[own][worker];
            await(ticket(worker, last));
        }
        isSpread[own] = false;
    }

    private boolean isIdle(int worker) {
        return given[worker] == copied[worker] || given[worker] == readCopied(worker);
    }

    private static long ticket(int worker, int number) {
        return (long) worker << 32 | Integer.toUnsignedLong(number);
    }

    /** Returns whether a copy was made. */
    boolean isDone(long ticket) {
        int worker = (int) (ticket >>> 32) & 0xff;
        int number = (int) ticket;
        return worker == 0 ? done - number > 0 || readDone() - number > 0
                : copied[worker] - number >= 0 || readCopied(worker) - number >= 0;
    }

    private boolean areWorkersIdle() {
        for (int worker = 1; worker < given.length; worker++) {
            if (given[worker] != mailbox.copiedAcquire(worker)) { // from any thread
                return false;
            }
        }
        return true;
    }

    /** Waits until all copies sealed so far are complete. Callable from any thread. */
    void settle() {
        int last = unsealed - 1;
        await(last, () -> mailbox.doneAcquire() - last > 0 && areWorkersIdle());
    }

    /** Waits until a copy is complete. */
    void await(long ticket) {
        await((int) ticket, () -> isDone(ticket));
    }

    /** Waits until the kernel has left, which it does without being told. Callable from any thread. */
    void awaitLeave() {
        await(next - 1, () -> !launched || mailbox.stateAcquire() == CopyMailbox.GONE);
    }

    private static void await(int number, BooleanSupplier condition) {
        if (!Waiting.until(condition, TIMEOUT)) {
            throw new MillraceException(
                    "the kernel that makes small copies does not answer (command " + Integer.toUnsignedString(number)
                            + "): see whether something keeps the GPU from running it, or do without it:"
                            + " MILLRACE_GIN_COPY_KERNEL=0");
        }
    }
}
