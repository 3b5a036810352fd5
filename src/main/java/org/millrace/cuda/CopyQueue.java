package org.millrace.cuda;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Copies that are made while the caller continues. A copy engine makes them. If there is a {@link CopyKernel}, it makes
 * the short ones. Both may have copies in flight that need no order. A copy that must follow others begins when the
 * other of the two has made all its copies. The kernel's copies take microseconds and the engine's copies take longer.
 * A short copy that must follow the engine's copies is therefore the engine's, too.
 *
 * <p>
 * One thread at a time, with the queue's device current. After construction, no call allocates.
 */
public final class CopyQueue implements AutoCloseable {

    /** Makes copies one after another. Their numbers grow by one. */
    interface Engine extends AutoCloseable {

        /**
         * Returns whether two more copies may begin. Returns false if the number of copies in flight has reached its
         * limit.
         */
        boolean hasRoom();

        /**
         * Begins a copy of 1 byte or more, at the latest when the caller asks for its completion. Returns its number.
         */
        long copy(long to, long from, long bytes, int order, boolean fromHost);

        /** Returns whether a copy and all before it are complete. If so, the calling thread sees the bytes. */
        boolean isDone(long number);

        /** Begins all copies that have not begun yet. Returns false if there were none. */
        boolean submit();

        /** Returns its statistics so far. */
        Counts counts();

        /** Waits until no submitted copy is in flight. Unlike the other calls, callable from any thread. */
        void settle();

        /** Waits for the copies in flight, and closes. */
        @Override
        void close();
    }

    /**
     * Numbers of requested copies and of the driver calls for them.
     *
     * @param merged number of copies that became part of the previous one
     */
    public record Counts(long asked, long merged, long calls, long batches, long batched, long events) {

        /** No copies. */
        public static final Counts NONE = new Counts(0, 0, 0, 0, 0, 0);

        /** Returns the sum of several queues. */
        public Counts plus(Counts other) {
            return new Counts(asked + other.asked, merged + other.merged, calls + other.calls, batches + other.batches,
                    batched + other.batched, events + other.events);
        }

        /** Returns one line for people and scripts. */
        @Override
        public String toString() {
            return "copies by the GPU's engines: " + asked + " (" + merged + " merged with the one before), begun by "
                    + calls + " calls of the driver's, of which " + batches + " began " + batched + " at once, and "
                    + events + " events";
        }
    }

    /** Maximum number of copies in flight, or more; a power of two. */
    private static final int COPIES = 2048;
    /**
     * Number of copies that are posted to the kernel before they are sealed: the number that the kernel sees at once.
     */
    private static final int POSTED = 16;

    /**
     * Maximum number of copies in flight while the kernel is about to start. With more, the kernel would leave again
     * before the engine had made them.
     */
    private static final int MAX_BEFORE_KERNEL = 32;

    private final Engine engine;
    private final @Nullable CopyCommands kernel;
    /** By number in this queue: the kernel's number of the copy, or the complement of the engine's number. */
    private final long[] numbers = new long[COPIES];
    private long begun;
    private long done;
    /** Last copy given to each of the two, and last copy with order {@link CopyOrder#IN_TURN}. */
    private long lastOfEngine;
    private long lastOfKernel;
    private long lastInTurn;
    private boolean inTurnAtKernel;
    /** Whether the kernel may have incomplete copies, and whether a copy that was begun must follow others. */
    private boolean atKernel;
    private boolean ordered;
    /** Last copy given to the kernel that was not in turn. The copies of its workers are this one or earlier. */
    private long lastUnordered;
    /** Unsealed requests to the kernel, by number in this queue. They are kept because the kernel may have left. */
    private final Posted[] posted = new Posted[POSTED];

    private static final class Posted {
        private long to;
        private long from;
        private long bytes;
        private int order;
        private boolean fromHost;
    }

    /**
     * Creates an empty queue.
     *
     * @param context a {@code CUcontext} for the copies; the queue makes it current on the thread that uses the queue
     * @param kernel  kernel that makes small copies, for this and other queues of the same thread; null if the engine
     *                makes all
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
     * Returns whether two more copies may begin without waiting for copies in flight. The number of copies in flight is
     * limited. If the kernel is ready and the last copy had to follow others, the engine first completes its copies.
     * Later copies can then pass to the kernel. While the kernel starts, the engine receives at most
     * {@link #MAX_BEFORE_KERNEL} copies before it completes them.
     */
    public boolean hasRoom() {
        if (begun - done > COPIES - 2 && !isDone(begun - COPIES + 2)) {
            return false;
        }
        if (atKernel && !kernel.isReady()) {
            if (!isDone(lastOfKernel)) {
                return false; // the kernel is full, or it is leaving
            }
            atKernel = false;
        }
        return engine.hasRoom() && (atKernel || !isKernelNear() || isDone(begun));
    }

    private boolean isKernelNear() {
        return kernel != null
                && (ordered && kernel.isReady() || begun - done >= MAX_BEFORE_KERNEL && kernel.isStarting());
    }

    /** Begins a copy after all others. */
    public long copy(long to, long from, long bytes) {
        return copy(to, from, bytes, CopyOrder.IN_TURN);
    }

    /**
     * Begins a copy. An engine delays it until the caller asks for its completion or {@link #submit}s the queue. It
     * then begins many copies in one driver call.
     *
     * @param bytes number of bytes, 1 or more
     * @param order constant or result of {@link CopyOrder}: the other copies that it must follow
     */
    public long copy(long to, long from, long bytes, int order) {
        return copy(to, from, bytes, order, false);
    }

    /**
     * Does the same as {@link #copy(long, long, long, int)}, from host memory to the device. An engine makes short
     * copies of this kind in another way. If a copy consists of exactly one number of 4 or 8 bytes at an aligned
     * address, a kernel never sees a part of it. The number must be in host memory by now, and not only when its turn
     * comes.
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
            finishKernelCopies();
        }
        if (order == CopyOrder.IN_TURN) {
            inTurn(false);
        }
        return begunByEngine(engine.copy(to, from, bytes, order, fromHost), fits);
    }

    /** Records that the next copy is after and before all others. */
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

    /**
     * Makes sure that the kernel sees the requested copies. Copies that it does not see are given to the engine, after
     * the others.
     */
    void seal() {
        if (kernel == null || kernel.unsealed(this) == 0) {
            return;
        }
        int unseen = kernel.seal();
        if (unseen > 0) {
            long last = begun;
            begun -= unseen;
            finishKernelCopies();
            inTurnAtKernel = inTurnAtKernel && lastInTurn <= begun;
            while (begun != last) {
                Posted copy = posted[(int) (begun + 1) & POSTED - 1];
                lastOfEngine = begun(~engine.copy(copy.to, copy.from, copy.bytes, copy.order, copy.fromHost));
            }
        }
    }

    /**
     * Returns whether the kernel can make the copy now. If the copy must follow others, waits here for the copies of
     * the kernel's workers, because neither the warp nor the copy's own worker waits for them.
     */
    private boolean isKernelsTurn(int order) {
        if (!kernel.isReady() || !isEngineDone()) {
            return false;
        }
        if (atKernel && (order == CopyOrder.IN_TURN || kernel.isAfterSpread(order))) {
            seal(); // otherwise the kernel may not see the awaited commands
            if (order == CopyOrder.IN_TURN) {
                await(lastUnordered);
            } else {
                kernel.awaitSpread(order);
            }
        }
        return kernel.isReady() && isEngineDone(); // the engine may have copies that the kernel left unread
    }

    /** Returns whether the engine has made all copies that the new one must follow. */
    private boolean isEngineDone() {
        return ordered ? isDone(lastOfEngine) : inTurnAtKernel || isDone(lastInTurn);
    }

    private void finishKernelCopies() {
        seal();
        if (atKernel) {
            await(begun);
            atKernel = false;
        }
    }

    /** Waits for the kernel's copies, up to the given number. */
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

    /** Begins all delayed copies. Returns false if no copy was delayed. */
    public boolean submit() {
        seal();
        return engine.submit();
    }

    /** Returns the statistics of the copy engine so far. */
    public Counts counts() {
        return engine.counts();
    }

    /** Returns the number of the last copy that was begun. */
    public long last() {
        return begun;
    }

    /**
     * Returns whether a copy and all before it are complete.
     *
     * @return true once the target holds the bytes and the calling thread sees them
     */
    public boolean isDone(long number) {
        if (done - number < 0) {
            seal();
            if (atKernel || numberOf(number) >= 0) { // workers do not finish in the order of their commands
                advance(number);
            } else if (engine.isDone(~numberOf(number))) { // then all earlier copies are complete too
                done = number;
            }
        }
        return done - number >= 0;
    }

    /**
     * Returns the last copy that is complete together with all before it. Checks the copies in flight one after
     * another.
     */
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
     * Waits until no copy is in flight. Unlike the other calls, callable from any thread.
     *
     * @throws org.millrace.MillraceException if one is still in flight after ten seconds
     */
    public void settle() {
        engine.settle();
        if (kernel != null) {
            kernel.settle();
        }
    }

    /** Waits for the copies in flight, and closes the engine. */
    @Override
    public void close() {
        finishKernelCopies();
        engine.close();
    }
}
