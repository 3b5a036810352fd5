package org.millrace.cuda.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.agent.Waiting;
import org.millrace.cuda.driver.CudaDriver.Function;
import org.millrace.foreign.CFunction;
import org.millrace.foreign.Words;
import org.millrace.library.DynamicLoader;

/**
 * A GPU's copy engine. Requested copies are collected in a batch. The batch is passed to the driver when the caller
 * asks for the completion of one of these copies, or when the batch is full. If the driver has
 * {@code cuMemcpyBatchAsync}, one call begins several copies that may be made in any order. One event reports the
 * completion of the whole batch.
 *
 * <p>
 * Only one thread at a time may call a method, except {@link #settle}. After construction, no method allocates memory
 * in the steady state.
 */
final class CopyEngine implements CopyQueue.Engine {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    /** Number of events, which is larger than the number of events in flight; a power of two. */
    private static final int EVENTS = 1024;
    /** Minimum number of copies that are begun by {@link BatchCopies}. */
    private static final int MIN_IN_BATCH = 2;
    private static final int MAX_REFUSALS = 3;
    /**
     * Minimum length in bytes of a plain copy from host memory. Shorter plain copies would not be made by the copy
     * engine: see {@link RowCopies}.
     */
    private static final int MIN_PLAIN_FROM_HOST = 32 << 10;

    private final CudaDriver driver;
    private final long context;
    private final RowCopies rows;
    private final NumberStores numbers;
    private @Nullable BatchCopies batches;
    private int refusals;
    private boolean ignoresCaptures;
    private final MemorySegment current = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG);
    private long stream;
    private final long[] events = new long[EVENTS];
    /** For each event: number of the last copy that was submitted before the event was recorded. */
    private final long[] covered = new long[EVENTS];
    private final CopyBatch waiting = new CopyBatch();
    private long recorded;
    private long reached;
    /**
     * Numbers of four copies: the last requested copy, the last copy that was passed to the driver, the last copy that
     * an event covers, and the last complete copy.
     */
    private long begun;
    private long submitted;
    private long marked;
    private long done;
    /**
     * First failure of a driver call, or null. Copies that are incomplete at that moment are never reported as
     * complete.
     */
    private @Nullable RuntimeException failure;
    /**
     * Values for {@link CopyQueue.Counts}. Other threads read these fields without ordering and may see slightly
     * outdated values.
     */
    private long merged;
    private long calls;
    private long batched;
    private long batchCalls;

    /** @param context the {@code CUcontext} of the copies */
    CopyEngine(CudaDriver driver, long context) {
        this.driver = driver;
        this.context = context;
        rows = new RowCopies(driver);
        numbers = new NumberStores(driver);
        batches = BatchCopies.find(CopyBatch.MAX_COPIES);
        try (CudaDriver.EnteredContext _ = driver.enter(context)) {
            stream = driver.newStream();
            for (int i = 0; i < EVENTS; i++) {
                events[i] = driver.newEvent();
            }
        }
    }

    /**
     * Makes the engine's context current on the calling thread. It stays current until the thread uses a queue of
     * another context, or {@linkplain CudaDriver#leaveContext leaves} the context.
     */
    private void enter() {
        if (!ignoresCaptures) {
            ignoresCaptures = true;
            driver.ignoreCaptures();
        }
        if (driver.currentContext(current) != context) {
            driver.useContext(context);
        }
    }

    @Override
    public boolean hasRoom() {
        // Room for two copies is necessary, because a transfer through staging memory consists of two copies.
        return begun - done < EVENTS - 1 || isDone(begun - EVENTS + 2);
    }

    @Override
    public long copy(long to, long from, long bytes, int order, boolean fromHost) {
        if (!waiting.add(to, from, bytes, order, fromHost)) {
            merged++;
        }
        begun++;
        if (waiting.isFull()) {
            submit();
        }
        return begun;
    }

    @Override
    public boolean submit() {
        if (submitted == begun) {
            return false;
        }
        requireNoFailure();
        enter();
        try {
            int levels = waiting.sort();
            for (int level = 0; level < levels; level++) {
                begin(waiting.start(level), waiting.end(level));
            }
            submitted = begun;
            mark();
            return true;
        } catch (RuntimeException failed) {
            failure = failed;
            throw failed;
        } finally {
            waiting.clear();
        }
    }

    private void begin(int first, int end) {
        int next = first;
        while (next < end) {
            int plain = next;
            while (plain < end && isPlain(plain)) {
                plain++;
            }
            beginPlain(next, plain);
            if (plain < end) {
                beginRows(plain);
            }
            next = plain + 1;
        }
    }

    private boolean isPlain(int copy) {
        return waiting.rows(copy) == 1 && (!waiting.isFromHost(copy) || waiting.bytes(copy) >= MIN_PLAIN_FROM_HOST);
    }

    private void beginPlain(int first, int end) {
        if (end - first >= MIN_IN_BATCH && batches != null && beginAtOnce(batches, first, end)) {
            return;
        }
        for (int i = first; i < end; i++) {
            driver.copy(waiting.to(i), waiting.from(i), waiting.bytes(i), stream);
            calls++;
        }
    }

    private void beginRows(int copy) {
        long to = waiting.to(copy);
        long from = waiting.from(copy);
        long bytes = waiting.bytes(copy);
        int count = waiting.rows(copy);
        calls++;
        if (count > 1
                && rows.copy(to, waiting.targetPitch(copy), from, waiting.sourcePitch(copy), bytes, count, stream)) {
            return;
        }
        // The driver refuses rows that lie in several allocations. Each row is then copied separately.
        for (int row = 0; row < count; row++) {
            beginOne(to + row * waiting.targetPitch(copy), from + row * waiting.sourcePitch(copy), bytes,
                    waiting.isFromHost(copy) && bytes < MIN_PLAIN_FROM_HOST);
        }
    }

    /**
     * Begins one copy. A short copy from host memory is divided into pieces that the copy engine makes, so that no
     * piece waits for a kernel.
     */
    private void beginOne(long to, long from, long bytes, boolean isShort) {
        long begun = 0;
        long piece = isShort ? beginPiece(to, from, bytes) : 0;
        while (piece > 0) {
            begun += piece;
            piece = begun < bytes ? beginPiece(to + begun, from + begun, bytes - begun) : 0;
        }
        // A remaining single byte cannot be divided into rows.
        if (begun < bytes) {
            driver.copy(to + begun, from + begun, bytes - begun, stream);
            calls++;
        }
    }

    /**
     * Begins the next piece of a short copy. A copy of exactly one aligned number of 4 or 8 bytes becomes a single
     * store by the stream. Any other piece consists of two equal rows, or of three if two equal rows would divide a
     * number. Rows are made one after the other, and a kernel may poll a number of 4 or 8 bytes. Each number therefore
     * lies within one row, and the kernel never sees a part of the number.
     *
     * @return number of bytes of the piece; 0 if the driver refuses
     */
    private long beginPiece(long to, long from, long bytes) {
        calls++;
        if (numbers.store(to, from, bytes, stream)) {
            return bytes;
        }
        long unit = bytes > Long.BYTES && bytes % Long.BYTES == 0 ? Long.BYTES
                : bytes > Integer.BYTES && bytes % Integer.BYTES == 0 ? Integer.BYTES : 1;
        long units = bytes / unit;
        int count = units == 3 ? 3 : 2;
        long row = (units % 2 == 0 || units == 3 ? units : units - 3) / count * unit;
        return row > 0 && rows.copy(to, row, from, row, row, count, stream) ? row * count : 0;
    }

    /**
     * Begins several copies by one driver call. Returns false if the driver refuses the call. The caller then begins
     * all the copies again. Some copies may then be made twice, which is harmless.
     */
    private boolean beginAtOnce(BatchCopies with, int first, int end) {
        for (int i = first; i < end; i++) {
            with.set(i - first, waiting.to(i), waiting.from(i), waiting.bytes(i));
        }
        calls++;
        if (with.begin(end - first, stream) != 0) {
            refusals++;
            batches = refusals < MAX_REFUSALS ? with : null;
            return false;
        }
        batchCalls++;
        batched += end - first;
        return true;
    }

    private void mark() {
        recorded++;
        driver.record(event(recorded), stream);
        covered[(int) recorded & EVENTS - 1] = submitted;
        marked = submitted;
    }

    private long event(long number) {
        return events[(int) number & EVENTS - 1];
    }

    @Override
    public boolean isDone(long number) {
        if (done - number >= 0) {
            return true;
        }
        requireNoFailure();
        if (number - submitted > 0) {
            submit();
            // A copy that has just been passed to the driver is not complete yet.
            return false;
        }
        enter();
        if (number - marked > 0) {
            mark();
        }
        while (reached != recorded && done - number < 0 && driver.isDone(event(reached + 1))) {
            reached++;
            done = covered[(int) reached & EVENTS - 1];
        }
        return done - number >= 0;
    }

    private void requireNoFailure() {
        RuntimeException failed = failure;
        if (failed != null) {
            throw new MillraceException("copies failed: " + failed.getMessage(), failed);
        }
    }

    @Override
    public CopyQueue.Counts counts() {
        return new CopyQueue.Counts(begun, merged, calls, batchCalls, batched, recorded);
    }

    @Override
    public void settle() {
        try (CudaDriver.EnteredContext _ = driver.enter(context)) {
            if (!Waiting.until(() -> driver.isIdle(stream), TIMEOUT)) {
                throw new MillraceException("copies are not complete after " + TIMEOUT.toSeconds() + " s");
            }
        }
    }

    @Override
    public void close() {
        try (CudaDriver.EnteredContext _ = driver.enter(context)) {
            Waiting.until(() -> failure != null || isDone(begun), TIMEOUT);
            driver.destroyStream(stream);
            for (long event : events) {
                driver.destroyEvent(event);
            }
        }
    }

    /**
     * Copies of exactly one number of 4 or 8 bytes from host memory to a device. The stream stores the value, so a
     * kernel sees all bytes of the number or none. {@link RowCopies} would divide the number into two rows, which are
     * made one after the other. One thread at a time. No method allocates.
     */
    static final class NumberStores {

        private static final int HOST_POINTER = 4; // CU_POINTER_ATTRIBUTE_HOST_POINTER

        private final CudaDriver driver;
        private final MemorySegment host = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG);

        NumberStores(CudaDriver driver) {
            this.driver = driver;
        }

        /**
         * Enqueues a store of the value that host memory contains now.
         *
         * @param from   address of the value as the device sees it
         * @param stream a {@code CUstream}
         * @return false if the copy is not one aligned number of 4 or 8 bytes in host memory, or if the driver refuses
         *         the store; nothing is enqueued then
         */
        boolean store(long to, long from, long bytes, long stream) {
            boolean isLong = bytes == Long.BYTES && (to | from) % Long.BYTES == 0;
            if (!isLong && (bytes != Integer.BYTES || (to | from) % Integer.BYTES != 0)) {
                return false;
            }
            int found = (int) driver.function(Function.POINTER_ATTRIBUTE).call(host.address(), HOST_POINTER, from);
            long address = found == 0 ? host.get(ValueLayout.JAVA_LONG, 0) : 0;
            if (address == 0) {
                return false;
            }
            int stored = isLong
                    ? (int) driver.function(Function.STORE_LONG)
                            .call(stream, to, Words.MEMORY.get(ValueLayout.JAVA_LONG, address), 0)
                    : (int) driver.function(Function.STORE_INT)
                            .call(stream, to, Words.MEMORY.get(ValueLayout.JAVA_INT, address), 0);
            return stored == 0;
        }
    }

    /**
     * Copies of several rows of the same length by one driver call. One thread at a time. No method allocates.
     *
     * <p>
     * A copy engine makes row copies of any size. A plain copy of less than 32 KiB from host memory to a GPU does not
     * use a copy engine. The driver puts the copied bytes into a command for the compute engine. If a kernel of another
     * context runs on the compute engine, the command waits for the end of that context's time slice. A time slice
     * takes 2.4 ms (two H100s, driver 580).
     */
    static final class RowCopies {

        /**
         * Size of {@code CUDA_MEMCPY2D_v2}, and offsets of the members that this class sets. All other members stay 0.
         * The struct contains the addresses of source and target.
         */
        private static final long BYTES = 128;
        private static final long SOURCE_TYPE = 16;
        private static final long SOURCE = 32;
        private static final long SOURCE_PITCH = 48;
        private static final long TARGET_TYPE = 72;
        private static final long TARGET = 88;
        private static final long TARGET_PITCH = 104;
        private static final long WIDTH = 112;
        private static final long HEIGHT = 120;
        private static final int UNIFIED = 4; // CU_MEMORYTYPE_UNIFIED
        private static final int INVALID_VALUE = 1; // CUDA_ERROR_INVALID_VALUE
        private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;

        private final CudaDriver driver;
        private final MemorySegment memory = Arena.ofAuto().allocate(BYTES, Long.BYTES);

        RowCopies(CudaDriver driver) {
            this.driver = driver;
            memory.set(ValueLayout.JAVA_INT, SOURCE_TYPE, UNIFIED);
            memory.set(ValueLayout.JAVA_INT, TARGET_TYPE, UNIFIED);
        }

        /**
         * Enqueues a copy of several rows between any two locations that the device reaches. The driver refuses rows
         * that lie in several allocations.
         *
         * @param targetPitch distance between the targets of consecutive rows, in bytes; at least {@code width}, less
         *                    than 2<sup>31</sup>
         * @param sourcePitch distance between the sources of consecutive rows, in bytes; at least {@code width}, less
         *                    than 2<sup>31</sup>
         * @param width       number of bytes of each row
         * @param stream      a {@code CUstream}
         * @return false if the driver refuses these locations; nothing is enqueued then
         */
        boolean copy(long to, long targetPitch, long from, long sourcePitch, long width, int rows, long stream) {
            memory.set(LONG, SOURCE, from);
            memory.set(LONG, SOURCE_PITCH, sourcePitch);
            memory.set(LONG, TARGET, to);
            memory.set(LONG, TARGET_PITCH, targetPitch);
            memory.set(LONG, WIDTH, width);
            memory.set(LONG, HEIGHT, (long) rows);
            int code = (int) driver.function(Function.COPY_ROWS).call(memory.address(), stream);
            if (code == INVALID_VALUE) {
                return false;
            }
            driver.check(Function.COPY_ROWS, code);
            return true;
        }
    }

    /**
     * The driver call that begins many copies at once, without an order among them. Available from CUDA 12.8 on. One
     * thread at a time. No method allocates.
     */
    static final class BatchCopies {

        // Name of the function with the signature of CUDA 12.8. Newer drivers export this function under the same name,
        // and export a function with a newer signature as cuMemcpyBatchAsync_v2.
        private static final String FUNCTION = "cuMemcpyBatchAsync";
        private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
        /**
         * Size of {@code CUmemcpyAttributes} in bytes. The structure contains the order of the reads of the source, two
         * location hints, and flags. Copies of device memory and of pinned memory do not need the hints.
         */
        private static final long ATTRIBUTES_BYTES = 24;
        private static final int IN_STREAM_ORDER = 1; // CU_MEMCPY_SRC_ACCESS_ORDER_STREAM

        private final CFunction function;
        /**
         * Arguments of the call, in this order: the arrays of targets, sources and sizes, the attributes, the index of
         * the first copy with these attributes, and the index of the failed copy.
         */
        private final MemorySegment memory;
        private final int capacity;

        private BatchCopies(CFunction function, int capacity) {
            this.function = function;
            this.capacity = capacity;
            memory = Arena.ofAuto().allocate(at(3) + ATTRIBUTES_BYTES + 2 * Long.BYTES, Long.BYTES);
            memory.set(ValueLayout.JAVA_INT, at(3), IN_STREAM_ORDER);
        }

        /**
         * Looks up the function in the driver's library.
         *
         * @param capacity maximum number of copies in one call
         * @return null if the driver lacks the function
         */
        static @Nullable BatchCopies find(int capacity) {
            MemorySegment library = DynamicLoader.open(CudaDriver.NAME).handle();
            MemorySegment found = library == null ? null : DynamicLoader.find(library, FUNCTION);
            return found == null ? null : new BatchCopies(CFunction.at(found), capacity);
        }

        private long at(int array) {
            return array * (long) capacity * Long.BYTES;
        }

        /** Sets the target, the source and the length of the copy at an index. */
        void set(int index, long to, long from, long bytes) {
            long offset = index * (long) Long.BYTES;
            memory.set(LONG, offset, to);
            memory.set(LONG, at(1) + offset, from);
            memory.set(LONG, at(2) + offset, bytes);
        }

        /**
         * Begins the first {@code count} copies after all earlier work of the stream.
         *
         * @param stream a stream other than the default stream
         * @return result of the driver; 0 if the copies have begun
         */
        int begin(int count, long stream) {
            long arrays = memory.address();
            long attributes = arrays + at(3);
            return (int) function.call(arrays, arrays + at(1), arrays + at(2), count, attributes,
                    attributes + ATTRIBUTES_BYTES, 1L, attributes + ATTRIBUTES_BYTES + Long.BYTES, stream);
        }
    }
}
