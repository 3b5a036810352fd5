package org.millrace.cuda;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Copies that are made while the caller does something else. A copy engine makes them; if there is a
 * {@link CopyKernel}, it makes the short ones. Both may have copies under way that are behind none; one that is behind
 * others begins when the other of the two has made all that it has: what the kernel has takes microseconds, and what
 * the engine has more, so that such a copy behind it is the engine's too.
 *
 * <p>
 * One thread at a time, with the queue's device current. No call allocates, once the queue was made.
 */
public final class CopyQueue implements AutoCloseable {

    /** What makes copies one after another. Their numbers grow by one. */
    interface Engine extends AutoCloseable {

        /** Whether two more may be begun; false if as many are under way as can be asked after. */
        boolean hasRoom();

        /** Begins a copy of 1 byte or more, some time before somebody asks for it; returns its number. */
        long copy(long to, long from, long bytes, int order, boolean fromHost);

        /** Whether a copy was made, and all before it: a thread that is told now sees the bytes. */
        boolean isDone(long number);

        /** Begins all that was not begun yet; false if there was nothing. */
        boolean submit();

        /** What it has done so far. */
        Counts counts();

        /** Waits until none is under way that was submitted; unlike the other calls, from any thread. */
        void settle();

        /** Waits for what was begun, and ends. */
        @Override
        void close();
    }

    /**
     * What copy engines were asked for, and by how many calls of the driver's.
     *
     * @param merged those that became part of the one before
     */
    public record Counts(long asked, long merged, long calls, long batches, long batched, long events) {

        /** Nothing. */
        public static final Counts NONE = new Counts(0, 0, 0, 0, 0, 0);

        /** The sum of several queues. */
        public Counts plus(Counts other) {
            return new Counts(asked + other.asked, merged + other.merged, calls + other.calls, batches + other.batches,
                    batched + other.batched, events + other.events);
        }

        /** One line for people and for scripts. */
        @Override
        public String toString() {
            return "copies by the GPU's engines: " + asked + " (" + merged + " merged with the one before), begun by "
                    + calls + " calls of the driver's, of which " + batches + " began " + batched + " at once, and "
                    + events + " events";
        }
    }

    /** As many as can be under way, or more; a power of two. */
    private static final int COPIES = 2048;
    /** So many are posted to the kernel before they are sealed, as many as it sees at once. */
    private static final int POSTED = 16;

    /** So many the engine is given while the kernel is on its way: it would not stay until many were made. */
    private static final int MOST_BEFORE_KERNEL = 32;

    private final Engine engine;
    private final @Nullable CopyCommands kernel;
    /** By number here: the number that the kernel gave the copy; of the engine's the complement. */
    private final long[] numbers = new long[COPIES];
    private long begun;
    private long done;
    /** The last that each was given, and the last of all that is behind and before all others. */
    private long lastOfEngine;
    private long lastOfKernel;
    private long lastInTurn;
    private boolean inTurnAtKernel;
    /** Whether the kernel may have some that are not made, and whether one that was begun is behind others. */
    private boolean atKernel;
    private boolean ordered;
    /** The last one of the kernel's that was not in turn: those of its workers are before it, and it. */
    private long lastUnordered;
    /** What the kernel was asked for that is not sealed, by number here: it may have left. */
    private final Posted[] posted = new Posted[POSTED];

    private static final class Posted {
        private long to;
        private long from;
        private long bytes;
        private int order;
        private boolean fromHost;
    }

    /**
     * A queue with nothing in it.
     *
     * @param context a {@code CUcontext} in which copies are made; the queue makes it current where it is used
     * @param kernel  that makes small copies, of this and other queues of the same thread; null if the engine makes all
     */
    public CopyQueue(CudaDriver driver, long context, @Nullable CopyKernel kernel) {
        this(new CopyEngine(driver, context), kernel == null ? null : kernel.commands());
    }

    CopyQueue(Engine engine, @Nullable CopyCommands kernel) {
        this.engine = engine;
        this.kernel = kernel;
        Arrays.setAll(posted, unused -> new Posted());
    }

    /**
     * Whether two more copies may be begun without waiting for those under way: only so many can be asked after. Where
     * the kernel has come, the engine first makes what it has if copies are behind others, and is not given many where
     * the kernel is expected.
     */
    public boolean hasRoom() {
        if (begun - done > COPIES - 2 && !isDone(begun - COPIES + 2)) {
            return false;
        }
        if (atKernel && !kernel.isReady()) {
            if (!isDone(lastOfKernel)) {
                return false; // it has as much as it can be given, or leaves
            }
            atKernel = false;
        }
        return engine.hasRoom() && (atKernel || !isKernelNear() || isDone(begun));
    }

    private boolean isKernelNear() {
        return kernel != null
                && (ordered && kernel.isReady() || begun - done >= MOST_BEFORE_KERNEL && kernel.isComing());
    }

    /** Begins a copy, behind all others. */
    public long copy(long to, long from, long bytes) {
        return copy(to, from, bytes, CopyOrder.IN_TURN);
    }

    /**
     * Begins a copy. An engine waits with that until somebody asks for it, or for the queue to be {@link #submit}ted:
     * many are begun at once then, in one call of the driver's.
     *
     * @param bytes 1 or more
     * @param order of {@link CopyOrder}: which other copies it must be behind
     */
    public long copy(long to, long from, long bytes, int order) {
        return copy(to, from, bytes, order, false);
    }

    /**
     * As {@link #copy(long, long, long, int)}, from the host's memory to the device: an engine makes short copies of
     * this kind in another way. A kernel never sees a part of a number of 4 or 8 bytes that lies at a multiple of that
     * and is all that is copied; it must be in the host's memory by now, and not only when it is its turn.
     */
    public long copyFromHost(long to, long from, long bytes, int order) {
        return copy(to, from, bytes, order, true);
    }

    private long copy(long to, long from, long bytes, int order, boolean fromHost) {
        boolean fits = kernel != null && kernel.fits(to, from, bytes, order);
        ordered = order == CopyOrder.IN_TURN || CopyOrder.isStrict(order);
        if (fits && isKernelsTurn(order)) {
            return post(to, from, bytes, order, fromHost);
        }
        seal();
        if (ordered || inTurnAtKernel && !isDone(lastInTurn)) {
            passKernel();
        }
        if (order == CopyOrder.IN_TURN) {
            inTurn(false);
        }
        return begunByEngine(engine.copy(to, from, bytes, order, fromHost), fits);
    }

    /** The next is behind and before all others. */
    private void inTurn(boolean kernels) {
        lastInTurn = begun + 1;
        inTurnAtKernel = kernels;
    }

    private long post(long to, long from, long bytes, int order, boolean fromHost) {
        atKernel = true;
        if (order == CopyOrder.IN_TURN) {
            inTurn(true);
        }
        lastOfKernel = begun(kernel.post(to, from, (int) bytes, order, this));
        if (order != CopyOrder.IN_TURN) {
            lastUnordered = begun;
        }
        Posted copy = posted[(int) begun & POSTED - 1];
        copy.to = to;
        copy.from = from;
        copy.bytes = bytes;
        copy.order = order;
        copy.fromHost = fromHost;
        if (kernel.unsealed(this) == POSTED) {
            seal();
        }
        return begun;
    }

    /** Makes sure that the kernel sees what it was asked for: what it does not is the engine's, behind the rest. */
    void seal() {
        if (kernel == null || kernel.unsealed(this) == 0) {
            return;
        }
        int unseen = kernel.seal();
        if (unseen > 0) {
            long last = begun;
            begun -= unseen;
            passKernel();
            inTurnAtKernel = inTurnAtKernel && lastInTurn <= begun;
            while (begun != last) {
                Posted copy = posted[(int) (begun + 1) & POSTED - 1];
                lastOfEngine = begun(~engine.copy(copy.to, copy.from, copy.bytes, copy.order, copy.fromHost));
            }
        }
    }

    /**
     * What is behind others waits here for what workers of the kernel's make: neither the warp nor its own worker does.
     */
    private boolean isKernelsTurn(int order) {
        if (!kernel.isReady() || !isBehindEngine()) {
            return false;
        }
        if (atKernel && (order == CopyOrder.IN_TURN || kernel.isBehindSpread(order))) {
            seal(); // or what is awaited may not be seen
            if (order == CopyOrder.IN_TURN) {
                await(lastUnordered);
            } else {
                kernel.awaitSpread(order);
            }
        }
        return kernel.isReady() && isBehindEngine(); // what was not seen is the engine's
    }

    /** Whether the engine has made all that the copy must be behind. */
    private boolean isBehindEngine() {
        return ordered ? isDone(lastOfEngine) : inTurnAtKernel || isDone(lastInTurn);
    }

    private void passKernel() {
        seal();
        if (atKernel) {
            await(begun);
            atKernel = false;
        }
    }

    /** For the kernel's copies, up to one. */
    private void await(long number) {
        for (long copy = done + 1; copy - number <= 0; copy++) {
            if (numberOf(copy) >= 0) {
                kernel.await(numberOf(copy));
            }
        }
    }

    private long begunByEngine(long number, boolean fitsKernel) {
        lastOfEngine = begun(~number);
        if (fitsKernel) {
            kernel.invite();
        }
        return begun;
    }

    private long begun(long number) {
        begun++;
        numbers[(int) begun & COPIES - 1] = number;
        return begun;
    }

    /** Has all copies begun that wait for others to come; false if there are none. */
    public boolean submit() {
        seal();
        return engine.submit();
    }

    /** What the copy engine was asked for so far. */
    public Counts counts() {
        return engine.counts();
    }

    /** The copy that was begun last. */
    public long last() {
        return begun;
    }

    /**
     * Whether a copy was made, and all before it.
     *
     * @return true once the target holds the bytes and a thread that is told now sees them
     */
    public boolean isDone(long number) {
        if (done - number < 0) {
            seal();
            if (atKernel || numberOf(number) >= 0) { // its workers are not through in the order in which they were told
                advance(number);
            } else if (engine.isDone(~numberOf(number))) { // and all before
                done = number;
            }
        }
        return done - number >= 0;
    }

    /** The last copy that was made, as all before it were: looks at those under way one after another. */
    public long lastDone() {
        seal();
        advance(begun);
        return done;
    }

    private void advance(long number) {
        while (done - number < 0 && isMade(numberOf(done + 1))) {
            done++;
        }
    }

    private long numberOf(long copy) {
        return numbers[(int) copy & COPIES - 1];
    }

    private boolean isMade(long number) {
        return number >= 0 ? kernel.isDone(number) : engine.isDone(~number);
    }

    /**
     * Waits until no copy is under way; unlike the other calls, from any thread.
     *
     * @throws org.millrace.MillraceException if one still is after ten seconds
     */
    public void settle() {
        engine.settle();
        if (kernel != null) {
            kernel.settle();
        }
    }

    /** Waits for what was begun, and gives the engine back. */
    @Override
    public void close() {
        passKernel();
        engine.close();
    }
}
