package org.millrace.cuda.driver;

import org.jspecify.annotations.Nullable;

/**
 * Copies that are made while the caller continues. A copy engine makes them. If there is a {@link CopyKernel}, the
 * kernel makes the short copies. Independent copies may be in flight in the engine and in the kernel at the same time.
 * A copy in the kernel that must follow copies in the engine begins after these copies are complete, and vice versa.
 * The kernel's copies take microseconds, so copies of the engine may wait for them. The engine takes longer. If a short
 * copy must follow incomplete copies of the engine, the engine therefore makes the short copy, too.
 *
 * <p>
 * Only one thread at a time may call a method, except {@link #settle}. After construction, no method allocates.
 */
public final class CopyQueue implements AutoCloseable {

    /** A copy engine. Each copy has a number, one more than the number of the previous copy. */
    interface Engine extends AutoCloseable {

        /**
         * Returns whether two more copies may begin. Returns false if the limit of copies in flight would be exceeded.
         */
        boolean hasRoom();

        /**
         * Requests a copy of 1 byte or more. The copy begins now or later in a batch. It begins at the latest when the
         * caller asks for its completion. Returns the number of the copy.
         */
        long copy(long to, long from, long bytes, int order, boolean fromHost);

        /**
         * Returns whether a copy and all earlier copies are complete. If so, the calling thread sees the copied bytes.
         */
        boolean isDone(long number);

        /**
         * Passes to the driver all requested copies that have not been passed yet. Returns false if there were none.
         */
        boolean submit();

        /** Returns the engine's statistics since its construction. */
        Counts counts();

        /** Waits until no submitted copy is in flight. Unlike the other methods, callable from any thread. */
        void settle();

        /** Waits until the copies in flight are complete, and releases the engine's resources. */
        @Override
        void close();
    }

    /**
     * Numbers of requested copies, of the driver calls that began them, and of recorded events.
     *
     * @param merged  number of copies that became part of the previous copy
     * @param batches number of driver calls that began several copies at once
     * @param batched number of copies that these calls began
     */
    public record Counts(long asked, long merged, long calls, long batches, long batched, long events) {

        /** The counts of a queue without copies. */
        public static final Counts NONE = new Counts(0, 0, 0, 0, 0, 0);

        /** Returns these counts plus the counts of another queue. */
        public Counts plus(Counts other) {
            return new Counts(asked + other.asked, merged + other.merged, calls + other.calls, batches + other.batches,
                    batched + other.batched, events + other.events);
        }

        /** Returns one line of readable text that scripts can parse. */
        @Override
        public String toString() {
            return "copies by the GPU's engines: " + asked + " (" + merged + " merged with the one before), begun by "
                    + calls + " calls of the driver's, of which " + batches + " began " + batched + " at once, and "
                    + events + " events";
        }
    }

    /** Maximum number of copies in flight; a power of two. */
    private static final int COPIES = 2048;
    /**
     * Maximum number of copies in flight in the engine while the kernel is starting. A copy that must follow the
     * engine's copies reaches the kernel only after the engine's copies are complete. With more copies in the engine,
     * the kernel would stay without work for longer and would leave again. A copy takes the engine almost 2 µs, and the
     * kernel makes many copies in this time.
     */
    static final int MAX_BEFORE_KERNEL = 8;

    private final Engine engine;
    private final @Nullable CopyCommands kernel;
    private final boolean extend;
    /**
     * The number that the kernel or the copy engine gave to each copy, indexed by the copy's number in this queue. A
     * number of the kernel, which is 0 or more, is stored unchanged. For a number of the engine, the bitwise complement
     * is stored, which is negative.
     */
    private final long[] numbers = new long[COPIES];
    private long begun;
    private long done;
    /**
     * Numbers of three copies in this queue: the last one given to the engine, the last one given to the kernel, and
     * the last one with order {@link CopyOrder#IN_TURN}.
     */
    private long lastOfEngine;
    private long lastOfKernel;
    private long lastInTurn;
    private boolean inTurnAtKernel;
    /**
     * {@code atKernel} states whether the kernel may have incomplete copies. {@code ordered} states whether the last
     * requested copy must follow other copies.
     */
    private boolean atKernel;
    private boolean ordered;
    /**
     * Number of the last copy given to the kernel with another order than {@link CopyOrder#IN_TURN}. No worker has a
     * copy with a larger number, because workers make no copies with order IN_TURN.
     */
    private long lastUnordered;
    /**
     * Creates a queue without copies.
     *
     * @param context a {@code CUcontext} for the copies; the queue makes it current on the thread that uses the queue
     * @param kernel  kernel that makes short copies, for this queue and for other queues of the same thread; null if
     *                the engine makes all copies
     * @param extend  whether the queue's copies extend the kernel's stay
     */
    public CopyQueue(CudaDriver driver, long context, @Nullable CopyKernel kernel, boolean extend) {
        this(new CopyEngine(driver, context), kernel == null ? null : kernel.commands(), extend);
    }

    CopyQueue(Engine engine, @Nullable CopyCommands kernel, boolean extend) {
        this.extend = extend;
        this.engine = engine;
        this.kernel = kernel;
    }

    /**
     * Returns whether two more copies may begin within the limit of copies in flight.
     *
     * <p>
     * In two cases the result is also false until the engine's copies are complete, so that later copies can pass to
     * the kernel. First, the kernel is ready and the last copy had to follow other copies. Second, the kernel is
     * starting and {@link #MAX_BEFORE_KERNEL} copies are in flight.
     */
    public boolean hasRoom() {
        if (begun - done > COPIES - 2 && !isDone(begun - COPIES + 2)) {
            return false;
        }
        if (atKernel && !kernel.isReady(this)) {
            if (!isDone(lastOfKernel)) {
                // The kernel has no room for another command, or the kernel is leaving.
                return false;
            }
            atKernel = false;
        }
        return engine.hasRoom() && (atKernel || !isKernelNear() || isDone(begun));
    }

    private boolean isKernelNear() {
        return kernel != null
                && (ordered && kernel.isReady(this) || begun - done >= MAX_BEFORE_KERNEL && kernel.isStarting());
    }

    /** Requests a copy with order {@link CopyOrder#IN_TURN}: after all earlier copies and before all later copies. */
    public long copy(long to, long from, long bytes) {
        return copy(to, from, bytes, CopyOrder.IN_TURN);
    }

    /**
     * Requests a copy. The engine may delay the copy until the caller asks for its completion or calls {@link #submit}.
     * The engine then begins many copies with one driver call.
     *
     * @param bytes number of bytes, 1 or more
     * @param order a constant or a result of {@link CopyOrder}, which determines the copies that this copy must follow
     * @return number of the copy in this queue
     */
    public long copy(long to, long from, long bytes, int order) {
        return copy(to, from, bytes, order, false);
    }

    /**
     * Requests a copy from host memory to the device, as {@link #copy(long, long, long, int)} does. The engine begins
     * each short copy from host memory with its own driver calls, not with a call for many copies. If a copy consists
     * of exactly one aligned number of 4 or 8 bytes, a kernel never sees a part of this number. The number must already
     * be in host memory, because it may be read during this call.
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

    /**
     * Records that the next copy has order {@link CopyOrder#IN_TURN}.
     *
     * @param kernels whether the kernel makes this copy
     */
    private void inTurn(boolean kernels) {
        lastInTurn = begun + 1;
        inTurnAtKernel = kernels;
    }

    private long post(long to, long from, long bytes, int order, boolean fromHost) {
        atKernel = true;
        if (order == CopyOrder.IN_TURN) {
            inTurn(true);
        }
        lastOfKernel = begun(kernel.post(to, from, (int) bytes, order, fromHost, extend, this));
        if (order != CopyOrder.IN_TURN) {
            lastUnordered = begun;
        }
        if (kernel.unsealed(this) == CopyCommands.MAX_POSTED) {
            seal();
        }
        return begun;
    }

    /**
     * Seals the copies that this queue has posted to the kernel. If the kernel leaves and has not read some of these
     * copies, passes the unread copies to the engine. Before that, waits until the kernel's other copies are complete.
     */
    void seal() {
        if (kernel == null || kernel.unsealed(this) == 0) {
            return;
        }
        int unseen = kernel.seal();
        if (unseen > 0) {
            begun -= unseen;
            finishKernelCopies();
            inTurnAtKernel = inTurnAtKernel && lastInTurn <= begun;
            for (int position = unseen; position > 0; position--) {
                CopyCommands.Posted copy = kernel.fromLast(position);
                lastOfEngine = begun(~engine.copy(copy.to, copy.from, copy.bytes, copy.order, copy.fromHost));
            }
        }
    }

    /**
     * Returns whether the kernel can make the copy now. If the copy must follow copies that the kernel's workers make,
     * first waits until the workers have made them. This wait is necessary, because neither the kernel's warp nor a
     * worker waits for copies of other workers.
     */
    private boolean isKernelsTurn(int order) {
        if (!kernel.isReady(this) || !isEngineDone()) {
            return false;
        }
        if (atKernel && (order == CopyOrder.IN_TURN || kernel.isAfterSpread(order))) {
            // The kernel can read the awaited commands only after they are sealed.
            seal();
            if (order == CopyOrder.IN_TURN) {
                await(lastUnordered);
            } else {
                kernel.awaitSpread(order);
            }
            // If the kernel leaves, seal() passes its unread copies to the engine, so both conditions are checked
            // again.
            return kernel.isReady(this) && isEngineDone();
        }
        return true;
    }

    /** Returns whether the engine has completed all copies that the new copy must follow. */
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

    /** Waits until the kernel has completed its copies, up to the copy with the given number in this queue. */
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

    /**
     * Seals the posted copies. Then passes to the driver the copies that the engine has delayed. Returns false if the
     * engine had delayed no copy.
     */
    public boolean submit() {
        seal();
        return engine.submit();
    }

    /** Returns the statistics of the copy engine since the queue's construction. */
    public Counts counts() {
        return engine.counts();
    }

    /** Returns the number of the last requested copy. */
    public long last() {
        return begun;
    }

    /** Returns whether a copy and all earlier copies are complete. If so, the calling thread sees the copied bytes. */
    public boolean isDone(long number) {
        if (done - number < 0) {
            seal();
            // Workers do not complete their copies in the order of the commands, so each copy is checked.
            if (atKernel || numberOf(number) >= 0) {
                advance(number);
                // The engine's isDone() includes all earlier copies.
            } else if (engine.isDone(~numberOf(number))) {
                done = number;
            }
        }
        return done - number >= 0;
    }

    /**
     * Returns the number of the last copy that is complete together with all earlier copies. Checks the copies in
     * flight one after another.
     */
    public long lastDone() {
        seal();
        advance(begun);
        return done;
    }

    /**
     * Advances {@link #done}, at most to the given copy. Reads the mailbox at most once, even if it checks many copies.
     */
    private void advance(long number) {
        boolean isRead = false;
        while (done - number < 0) {
            long next = numberOf(done + 1);
            if (next < 0 ? !engine.isDone(~next) : !kernel.isKnownDone(next)) {
                if (next < 0 || isRead || !kernel.isDone(next)) {
                    return;
                }
                isRead = true;
            }
            done++;
        }
    }

    private long numberOf(long copy) {
        return numbers[(int) copy & COPIES - 1];
    }

    /**
     * Waits until no copy is in flight. Unlike the other methods, callable from any thread.
     *
     * @throws org.millrace.MillraceException if a copy is still in flight after ten seconds
     */
    public void settle() {
        engine.settle();
        if (kernel != null) {
            kernel.settle();
        }
    }

    /** Waits until the copies in flight are complete, and closes the engine. The kernel stays open. */
    @Override
    public void close() {
        finishKernelCopies();
        engine.close();
    }
}
