package org.millrace.cuda.driver;

import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.abi.kernel.CopyMailbox;
import org.millrace.agent.Waiting;

/**
 * The host's side of {@link CopyMailbox}: commands to a kernel that stays on a GPU as long as commands extend its stay.
 * The kernel determines the time when it leaves the GPU. The kernel is launched again for a later copy that the kernel
 * can make. No thread waits for the start of the kernel, because a GPU may have no room for it for a long time.
 *
 * <pre>
 *    ABSENT  ───────→  PRESENT  ───────→  LEAVING  ───────→  GONE
 *      ↑   kernel starts      no extension,   last read of the  │
 *      │                      or time is up   commands is done  │
 *      └──────────────────────── invite() ──────────────────────┘
 * </pre>
 *
 * <p>
 * One warp reads the commands. While few commands are unfinished, this warp makes short copies itself, because it is
 * then faster than a worker. Workers, which are other warps of the kernel, make the other copies in parallel. Each
 * sequence has one worker, which makes the sequence's strict copies in their order. A worker can have several
 * sequences. It also makes the relaxed copies of its sequences, except those that {@link CopyRuns} spreads over all
 * workers. A strict copy is posted only after the spread copies of its sequence are complete. A copy that must follow
 * all other copies is posted only after all workers' copies are complete.
 *
 * <p>
 * Commands are posted one after another. Sealing writes them to the mailbox together, because the kernel reads several
 * commands together. A write to a cache line that the kernel has read is slow. A kernel can leave at any time, possibly
 * before it reads a posted command. Sealing determines how many of the posted commands the current kernel reads.
 * Several {@link CopyQueue}s can use one kernel. The posted commands of one queue are sealed before another queue
 * posts.
 *
 * <p>
 * Only one thread at a time may call a method, unless the method states otherwise.
 */
final class CopyCommands {

    /**
     * Maximum number of loads for a copy by the warp. Each of the warp's 32 lanes has 4 loads in flight, and these
     * loads cover the whole copy.
     */
    private static final int LOADS = 32 * 4;
    private static final int WIDEST_LOAD = 16;
    /**
     * Maximum length of a copy for the workers, in bytes. A copy engine makes longer copies, because one copy engine
     * has as much bandwidth as all workers together.
     */
    private static final int MAX_BYTES = 32 << 10;
    /**
     * Number of unfinished commands below which the warp makes a short copy itself. The warp is then faster than a
     * worker, which must first be notified of the copy.
     */
    private static final int FEW_COPIES = 2;
    /**
     * Fractional part of the golden ratio, times 2<sup>32</sup>. A multiplication by this number assigns sequences to
     * workers that are far apart, even if the numbers of the sequences have a constant distance.
     */
    private static final long GOLDEN = 0x9e37_79b9L;
    /**
     * Time after an invitation during which the start of the kernel is expected, in nanoseconds. A start beside kernels
     * of DeepEP takes 280 µs on average. If the GPU has no room for the kernel, the start takes much longer.
     */
    static final long START_NANOS = TimeUnit.MICROSECONDS.toNanos(400);
    /** Maximum number of posted commands; a power of two. The kernel reads this number of commands together. */
    static final int MAX_POSTED = 16;
    private static final Duration TIMEOUT = Duration.ofSeconds(10);

    private final CopyMailbox mailbox;
    private final Runnable launcher;
    private final LongSupplier clock;
    /** Total number of copies given to each worker; the index is the worker's number, 1 or more. Each total wraps. */
    private final int[] given;
    private int next;
    /** Number of the first command that is posted but not sealed. */
    private int unsealed;
    /** The last posted commands, by number modulo the array length. */
    private final Posted[] posted = new Posted[MAX_POSTED];
    /** Queue that posted last. All unsealed commands are from this queue. */
    private @Nullable CopyQueue poster;
    private int nextWorker;
    private final CopyRuns runs;
    /**
     * {@code spread[w][o]}: number of the last copy that worker {@code o} was given for a sequence of worker {@code w}.
     */
    private final int[][] spread;
    /** For each worker: whether other workers may have incomplete copies of the worker's sequences. */
    private final boolean[] isSpread;
    /**
     * Values that this thread last read from the mailbox: the number of the first unfinished command, and, for each
     * worker, the number of its completed copies. This thread sees the data of the copies that are included in these
     * numbers.
     */
    private int done;
    private final int[] copied;
    /** Upper bound of the number of incomplete copies of any worker. */
    private int maxGiven;
    private boolean launched;
    /** Time of the last invitation ({@link System#nanoTime}); 0 after this thread has seen that the kernel started. */
    private long invitedAt;
    /**
     * Statistics for {@link #counts}. Other threads read these fields without ordering and may see slightly outdated
     * values.
     */
    private long copies;
    private final long[] visitsByStream = new long[CopyLaunches.MAX_STREAMS];
    private long visits;
    private long waited;
    private long longestWait;

    /** A posted command. The object is reused. {@code extend} states whether it extends the kernel's stay. */
    static final class Posted {
        long to;
        long from;
        int bytes;
        int order;
        boolean fromHost;
        boolean extend;
        /** Worker that makes the copy; 0 for the warp. */
        private int worker;
    }

    /**
     * @param first    number of the first command; 1, or in tests a number shortly before the numbers wrap around
     * @param workers  number of workers, 0 to {@link CopyMailbox#WORKERS}
     * @param launcher requests a launch of the kernel without waiting for the launch. If the launch fails and can be
     *                 repeated, the launcher sets the state to {@link CopyMailbox#GONE}.
     */
    CopyCommands(CopyMailbox mailbox, int first, int workers, Runnable launcher) {
        this(mailbox, first, workers, launcher, System::nanoTime);
    }

    /** @param clock current time in nanoseconds, as {@link System#nanoTime} */
    CopyCommands(CopyMailbox mailbox, int first, int workers, Runnable launcher, LongSupplier clock) {
        this.clock = clock;
        this.mailbox = mailbox;
        this.launcher = launcher;
        this.next = first;
        this.unsealed = first;
        this.done = first;
        this.given = new int[workers + 1];
        this.copied = new int[workers + 1];
        this.runs = new CopyRuns(workers);
        this.spread = new int[workers + 1][workers + 1];
        this.isSpread = new boolean[workers + 1];
        Arrays.setAll(posted, unused -> new Posted());
        mailbox.donePlain(first);
    }

    boolean fits(long to, long from, long bytes, int order) {
        return given.length > 1 && order != CopyOrder.IN_TURN && bytes <= MAX_BYTES || fitsWarp(to, from, bytes);
    }

    /**
     * Returns whether the warp can make a copy with one round of loads. The warp copies units of 16 bytes, 8 bytes or 1
     * byte, depending on the alignment of both addresses and of the length.
     */
    private static boolean fitsWarp(long to, long from, long bytes) {
        long width = Long.lowestOneBit(to | from | bytes | WIDEST_LOAD);
        return bytes <= LOADS * (width < Long.BYTES ? 1 : width);
    }

    /** Requests a launch of the kernel if the kernel has left or was never launched. */
    void invite() {
        if (!launched || mailbox.stateAcquire() == CopyMailbox.GONE) {
            if (unsealed != next) {
                // The next kernel begins with the first command after the sealed commands. The commands posted so far
                // are therefore sealed before its launch.
                poster.seal();
            }
            mailbox.stateAbsentRelease();
            launched = true;
            invitedAt = clock.getAsLong();
            launcher.run();
        }
    }

    /** Returns the statistics as readable text that scripts can parse. */
    String counts() {
        return copies + ", in " + visits + " visits that began "
                + (visits == 0 ? 0 : TimeUnit.NANOSECONDS.toMicros(waited / visits)) + " us after they were asked for ("
                + TimeUnit.NANOSECONDS.toMicros(longestWait) + " us maximum; by stream: "
                + Arrays.stream(visitsByStream).mapToObj(Long::toString).collect(Collectors.joining(" ")) + ")";
    }

    /**
     * Returns whether the kernel is present, and the mailbox and each worker have room for another command. The method
     * does not read the kernel's state while the queue {@code by} has unsealed commands. If the kernel leaves during
     * this time, {@link #seal} withdraws the commands that the kernel has not read.
     */
    boolean isReady(@Nullable CopyQueue by) {
        if (unsealed(by) == 0 && !isPresent()) {
            return false;
        }
        return (next - done < CopyMailbox.COMMANDS || next - readDone() < CopyMailbox.COMMANDS) && workersHaveRoom();
    }

    private boolean isPresent() {
        if (mailbox.stateAcquire() != CopyMailbox.PRESENT) {
            return false;
        }
        if (invitedAt != 0) {
            begun(clock.getAsLong() - invitedAt);
            invitedAt = 0;
        }
        return true;
    }

    /** Returns whether the kernel was invited less than {@link #START_NANOS} ago and can still start. */
    boolean isStarting() {
        return invitedAt != 0 && clock.getAsLong() - invitedAt < START_NANOS;
    }

    private int readDone() {
        done = mailbox.doneAcquire();
        return done;
    }

    private int readCopied(int worker) {
        if (mailbox.copiedAcquire(worker) != copied[worker]) {
            // A changed value means that the cache line was fetched from memory. The line also contains the words of
            // other workers, so reading these words now is cheap.
            readAllCopied();
        }
        return copied[worker];
    }

    private void readAllCopied() {
        for (int worker = 1; worker < copied.length; worker++) {
            copied[worker] = mailbox.copiedAcquire(worker);
        }
    }

    private void begun(long wait) {
        visits++;
        waited += wait;
        longestWait = Math.max(longestWait, wait);
        // The mailbox still contains the number of the kernel's stream if the kernel has left since this thread saw
        // PRESENT.
        visitsByStream[mailbox.streamPlain() % CopyLaunches.MAX_STREAMS]++;
    }

    private boolean workersHaveRoom() {
        if (maxGiven < CopyMailbox.GIVEN) {
            return true;
        }
        readAllCopied();
        maxGiven = 0;
        for (int worker = 1; worker < given.length; worker++) {
            maxGiven = Math.max(maxGiven, given[worker] - copied[worker]);
        }
        return maxGiven < CopyMailbox.GIVEN;
    }

    /**
     * Posts a copy. The kernel must be {@linkplain #isReady ready}, and fewer than {@link #MAX_POSTED} commands may be
     * posted and not sealed. If the copy must follow all other copies, the workers must also be
     * {@linkplain #areWorkersIdle idle}.
     *
     * @param extend whether the copy extends the kernel's stay
     * @param by     queue that posts the copy. If another queue posts next, the {@link CopyQueue#seal} of this queue is
     *               called first.
     * @return ticket for {@link #isDone}, valid after the command is sealed
     */
    long post(long to, long from, int bytes, int order, boolean fromHost, boolean extend, @Nullable CopyQueue by) {
        if (poster != by) {
            if (poster != null && unsealed != next) {
                poster.seal();
            }
            poster = by;
        }
        int worker = worker(to, from, bytes, order);
        // A kernel may leave before it reads this command. The number is not reused even then, because the next
        // kernel would find the words of the old command at that position.
        int number = next++;
        Posted command = posted[number & MAX_POSTED - 1];
        command.to = to;
        command.from = from;
        command.bytes = bytes;
        command.order = order;
        command.fromHost = fromHost;
        command.extend = extend;
        command.worker = worker;
        if (worker == 0) {
            return ticket(0, number);
        }
        maxGiven++;
        return ticket(worker, ++given[worker]);
    }

    /** Returns how many posted commands of a queue are not sealed yet. */
    int unsealed(@Nullable CopyQueue of) {
        return poster == of ? next - unsealed : 0;
    }

    /** Returns one of the last posted commands. Position 1 is the last one. */
    Posted fromLast(int position) {
        return posted[next - position & MAX_POSTED - 1];
    }

    /**
     * Seals the posted commands: writes them to the mailbox, and determines how many of them the kernel reads. If the
     * kernel is still present after this write, the kernel reads all of them. Otherwise this method waits for the end
     * of the kernel's last read of the commands.
     *
     * @return number of posted commands that the kernel does not read. They are the last posted commands, and are
     *         withdrawn
     */
    int seal() {
        int unseen = 0;
        for (int number = unsealed; number != next; number++) {
            Posted command = posted[number & MAX_POSTED - 1];
            mailbox.copyRelease(number, command.to, command.from, command.bytes, command.worker,
                    CopyOrder.isStrict(command.order), command.extend);
        }
        if (next != unsealed && mailbox.stateBehindCommand() != CopyMailbox.PRESENT) {
            // The kernel's last read of the commands crosses PCIe and takes one or two microseconds.
            await(next, () -> mailbox.stateAcquire() == CopyMailbox.GONE);
            unseen = next - readDone();
            for (int number = done; number != next; number++) {
                int worker = posted[number & MAX_POSTED - 1].worker;
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
        boolean spreads = runs.spreads(own, CopyOrder.isStrict(order));
        // The warp passes later commands to workers only after its own copies are complete, so a later copy of a worker
        // follows the warp's copies. But the warp does not wait for copies of a worker, so the worker of this sequence
        // must be idle.
        if (warp && isIdle(own)) {
            return 0;
        }
        if (!spreads) {
            return own;
        }
        int other = anyWorker();
        spread[own][other] = given[other] + 1;
        isSpread[own] = true;
        return other;
    }

    private int own(int order) {
        return 1 + (int) ((CopyOrder.sequence(order) * GOLDEN & 0xffff_ffffL) * (given.length - 1) >>> 32);
    }

    private int anyWorker() {
        nextWorker = nextWorker + 1 < given.length ? nextWorker + 1 : 1;
        return nextWorker;
    }

    /**
     * Returns whether a copy is strict and other workers may have incomplete earlier copies of its sequence. If so, the
     * caller must call {@link #awaitSpread} before it posts the copy.
     */
    boolean isAfterSpread(int order) {
        return given.length > 1 && order > CopyOrder.FREE && CopyOrder.isStrict(order) && isSpread[own(order)];
    }

    /**
     * Waits until the copies of a sequence that were spread over other workers are complete. A
     * {@linkplain CopyOrder#strict strict} copy of this sequence may then be posted.
     */
    void awaitSpread(int order) {
        if (unsealed != next) {
            // The kernel can read the awaited commands only after they are sealed.
            poster.seal();
        }
        int own = own(order);
        for (int worker = 1; worker < given.length; worker++) {
            // Commands that the kernel did not read were withdrawn, and `given` was decreased. The recorded number of
            // the last spread copy may therefore exceed `given`.
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

    /** Returns whether the copy with this ticket is complete. If it is, the calling thread sees the copied data. */
    boolean isDone(long ticket) {
        return isKnownDone(ticket)
                || (isOfWarp(ticket) ? readDone() - (int) ticket > 0 : readCopied(worker(ticket)) - (int) ticket >= 0);
    }

    /**
     * Returns whether the copy with this ticket is complete, according to the numbers that this thread last read from
     * the mailbox. The kernel changes these numbers often, so each read of them fetches a cache line.
     */
    boolean isKnownDone(long ticket) {
        return isOfWarp(ticket) ? done - (int) ticket > 0 : copied[worker(ticket)] - (int) ticket >= 0;
    }

    private static boolean isOfWarp(long ticket) {
        return worker(ticket) == 0;
    }

    private static int worker(long ticket) {
        return (int) (ticket >>> 32) & 0xff;
    }

    private boolean areWorkersIdle() {
        for (int worker = 1; worker < given.length; worker++) {
            // This code reads the mailbox and not the field `copied`, because settle() may be called on any thread.
            if (given[worker] != mailbox.copiedAcquire(worker)) {
                return false;
            }
        }
        return true;
    }

    /** Waits until all copies that have been sealed are complete. Callable from any thread. */
    void settle() {
        int last = unsealed - 1;
        await(last, () -> mailbox.doneAcquire() - last > 0 && areWorkersIdle());
    }

    /** Waits until the copy with this ticket is complete. */
    void await(long ticket) {
        await((int) ticket, () -> isDone(ticket));
    }

    /** Waits until the kernel has left. The kernel decides itself when to leave. Callable from any thread. */
    void awaitLeave() {
        await(next - 1, () -> !launched || mailbox.stateAcquire() == CopyMailbox.GONE);
    }

    private static void await(int number, BooleanSupplier condition) {
        if (!Waiting.until(condition, TIMEOUT)) {
            throw new MillraceException(
                    "the kernel that makes small copies does not respond (command " + Integer.toUnsignedString(number)
                            + "): see whether something keeps the GPU from running it, or do without it:"
                            + " MILLRACE_GIN_COPY_KERNEL=0");
        }
    }
}
