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
 * The warp that reads the commands makes few short copies itself, which is quickest; others are made by workers, many
 * at once. Copies of one sequence have one worker, which keeps the order of those that are strict; of a sequence that
 * has had none for long all workers make the others, and a strict one is told when those are made, as is a copy that
 * must be behind all that workers make.
 *
 * <p>
 * Commands are posted one after another, and sealed together: then it is known which of them the kernel sees, as it may
 * leave at any time. {@link CopyQueue}s that share a kernel take turns: what one has posted it seals before the next
 * one posts.
 *
 * <p>
 * One thread at a time.
 */
final class CopyCommands {

    /** The warp's 32 lanes load all of a copy at once, with 4 loads each. */
    private static final int LOADS = 32 * 4;
    private static final int WIDEST_LOAD = 16;
    /** A longer copy is better off with a copy engine, which has the bandwidth of all workers by itself. */
    private static final int LONGEST = 32 << 10;
    /** With so many copies under way the warp is quicker than a worker, which has to be told first. */
    private static final int FEW = 2;
    /** The golden ratio's fraction: numbers that are any step apart fall to workers that are far apart. */
    private static final long GOLDEN = 0x9e37_79b9L;
    /** A kernel that comes at all does so within this time. */
    static final long COMES_NANOS = TimeUnit.MICROSECONDS.toNanos(100);
    /** Copies of a sequence behind its last strict one before they are spread: a strict one would wait for them. */
    private static final int BEFORE_SPREADING = 16;
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    private final CopyMailbox mailbox;
    private final Runnable launcher;
    /** By worker, from 1: how many copies it was given. */
    private final int[] given;
    private int next;
    /** The first command that was posted and not sealed. */
    private int unsealed;
    /** By command: who was to make it. */
    private final byte[] workers = new byte[CopyMailbox.COMMANDS];
    /** Who has posted the commands that are not sealed. */
    private @Nullable CopyQueue poster;
    private int nextWorker;
    /** By worker: how many copies of its sequences were posted behind the last strict one. */
    private final int[] sinceStrict;
    /** By worker: what other workers were given last of its sequences. */
    private final int[][] spread;
    /** By worker: whether others may have such copies that are not made. */
    private final boolean[] isSpread;
    /** What the kernel has said of the commands and, by worker, of its copies: it is there for this thread. */
    private int done;
    private final int[] copied;
    /** No worker has more to make than this. */
    private int mostGiven;
    private boolean launched;
    /** When the kernel was asked to come that was not there yet; 0 once it was. */
    private long asked;
    /** Of {@link #counts}; others than this thread may read what is a moment old. */
    private long copies;
    private final long[] visitsByStream = new long[CopyLaunches.MOST_STREAMS];
    private long visits;
    private long waited;
    private long longestWait;

    /**
     * Commands for a kernel that was never launched.
     *
     * @param first    the number of the first command; 1, or whatever a test wants to wrap
     * @param workers  0 to {@link CopyMailbox#WORKERS}
     * @param launcher enqueues the kernel, without keeping the caller waiting for that; what is to be tried again is
     *                 {@link CopyMailbox#GONE}
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
        Arrays.fill(sinceStrict, BEFORE_SPREADING);
        this.spread = new int[workers + 1][workers + 1];
        this.isSpread = new boolean[workers + 1];
        mailbox.donePlain(first);
    }

    /** Whether the kernel makes such a copy. */
    boolean fits(long to, long from, long bytes, int order) {
        return given.length > 1 && order != CopyOrder.IN_TURN && bytes <= LONGEST || fitsWarp(to, from, bytes);
    }

    /** By 16 bytes, by 8 or one by one, as all three numbers allow, and all at once. */
    private static boolean fitsWarp(long to, long from, long bytes) {
        long width = Long.lowestOneBit(to | from | bytes | WIDEST_LOAD);
        return bytes <= LOADS * (width < Long.BYTES ? 1 : width);
    }

    /** Has the kernel launched, if it is not there. */
    void invite() {
        if (!launched || mailbox.stateAcquire() == CopyMailbox.GONE) {
            if (unsealed != next) {
                poster.seal(); // the one that comes begins behind all that was posted
            }
            mailbox.stateAbsentRelease();
            launched = true;
            asked = System.nanoTime();
            launcher.run();
        }
    }

    /** In words, for people and for scripts. */
    String counts() {
        return copies + ", in " + visits + " visits that began "
                + (visits == 0 ? 0 : TimeUnit.NANOSECONDS.toMicros(waited / visits)) + " us after they were asked for ("
                + TimeUnit.NANOSECONDS.toMicros(longestWait) + " us at the most; by stream: "
                + Arrays.stream(visitsByStream).mapToObj(Long::toString).collect(Collectors.joining(" ")) + ")";
    }

    /** Whether the kernel is there and has room for another command. */
    boolean isReady() {
        if (mailbox.stateAcquire() != CopyMailbox.PRESENT) {
            return false;
        }
        if (asked != 0) {
            begun(System.nanoTime() - asked);
            asked = 0;
        }
        return (next - done < CopyMailbox.COMMANDS || next - lookDone() < CopyMailbox.COMMANDS) && haveWorkersRoom();
    }

    /** Whether it was asked to come and may be there in a moment. */
    boolean isComing() {
        return asked != 0 && System.nanoTime() - asked < COMES_NANOS;
    }

    private int lookDone() {
        done = mailbox.doneAcquire();
        return done;
    }

    private int lookCopied(int worker) {
        int now = mailbox.copiedAcquire(worker);
        if (now != copied[worker]) {
            // The line was fetched from memory: the other workers' words lie in it, and are asked for next.
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
        visitsByStream[mailbox.streamPlain() % CopyLaunches.MOST_STREAMS]++; // it may have left meanwhile
    }

    private boolean haveWorkersRoom() {
        if (mostGiven < CopyMailbox.GIVEN) {
            return true;
        }
        mostGiven = 0;
        for (int worker = 1; worker < given.length; worker++) {
            mostGiven = Math.max(mostGiven, given[worker] - lookCopied(worker));
        }
        return mostGiven < CopyMailbox.GIVEN;
    }

    /**
     * Posts a copy; what is behind all others is posted when {@link #areWorkersIdle}.
     *
     * @param by whose {@link CopyQueue#seal} is called before another posts
     * @return what {@link #isDone} is asked for when it is sealed. The kernel was ready
     */
    long post(long to, long from, int bytes, int order, @Nullable CopyQueue by) {
        if (poster != by) {
            if (poster != null && unsealed != next) {
                poster.seal();
            }
            poster = by;
        }
        int worker = worker(to, from, bytes, order);
        int number = next++; // one that is not seen is not used again: its words lie where the next kernel would find
                             // them
        mailbox.copyRelease(number, to, from, bytes, worker, CopyOrder.isStrict(order));
        workers[number & CopyMailbox.COMMANDS - 1] = (byte) worker;
        if (worker == 0) {
            return ticket(0, number);
        }
        mostGiven++;
        return ticket(worker, ++given[worker]);
    }

    /** How many of the queue's commands are posted and not sealed. */
    int unsealed(CopyQueue of) {
        return poster == of ? next - unsealed : 0;
    }

    /**
     * Makes sure that the kernel sees what was posted. If it has left before, its last look tells.
     *
     * @return how many commands, the last, it does not see
     */
    int seal() {
        int unseen = 0;
        if (next != unsealed && mailbox.stateBehindCommand() != CopyMailbox.PRESENT) {
            await(next, () -> mailbox.stateAcquire() == CopyMailbox.GONE); // a look across PCIe: a microsecond or two
            unseen = next - lookDone();
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
        boolean warp = fitsWarp(to, from, bytes) && next - lookDone() < FEW;
        if (order == CopyOrder.FREE) {
            return warp ? 0 : anyWorker();
        }
        int own = own(order);
        // The warp gives away what is behind its own copies when it has made them; a worker's it does not wait for.
        if (warp && isIdle(own)) {
            return 0;
        }
        if (CopyOrder.isStrict(order)) {
            sinceStrict[own] = 0;
        } else if (sinceStrict[own] == BEFORE_SPREADING) {
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

    /** Whether a copy has to wait, before it is posted, for others of its sequence, which several workers make. */
    boolean isBehindSpread(int order) {
        return given.length > 1 && order > CopyOrder.FREE && CopyOrder.isStrict(order) && isSpread[own(order)];
    }

    /** Waits until a copy need not wait any more. */
    void awaitSpread(int order) {
        if (unsealed != next) {
            poster.seal(); // or what is awaited may not be seen
        }
        int own = own(order);
        for (int worker = 1; worker < given.length; worker++) {
            // what the kernel did not see was taken back
            int last = spread[own][worker] - given[worker] > 0 ? given[worker] : spread[own][worker];
            await(ticket(worker, last));
        }
        isSpread[own] = false;
    }

    private boolean isIdle(int worker) {
        return given[worker] == copied[worker] || given[worker] == lookCopied(worker);
    }

    private static long ticket(int worker, int number) {
        return (long) worker << 32 | Integer.toUnsignedLong(number);
    }

    /** Whether a copy was made. */
    boolean isDone(long ticket) {
        int worker = (int) (ticket >>> 32) & 0xff;
        int number = (int) ticket;
        return worker == 0 ? done - number > 0 || lookDone() - number > 0
                : copied[worker] - number >= 0 || lookCopied(worker) - number >= 0;
    }

    private boolean areWorkersIdle() {
        for (int worker = 1; worker < given.length; worker++) {
            if (given[worker] != mailbox.copiedAcquire(worker)) { // from any thread
                return false;
            }
        }
        return true;
    }

    /** Waits until the copies are made that were sealed by now; from any thread. */
    void settle() {
        int last = unsealed - 1;
        await(last, () -> mailbox.doneAcquire() - last > 0 && areWorkersIdle());
    }

    /** Waits until a copy is made. */
    void await(long ticket) {
        await((int) ticket, () -> isDone(ticket));
    }

    /** Waits until the kernel has left, as it does by itself; from any thread. */
    void awaitLeave() {
        await(next - 1, () -> !launched || mailbox.stateAcquire() == CopyMailbox.GONE);
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
