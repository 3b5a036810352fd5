package org.millrace.cuda;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.millrace.MillraceException;
import org.millrace.agent.Waiting;
import org.millrace.cuda.CudaDriver.Function;
import org.millrace.foreign.CFunction;
import org.millrace.library.DynamicLoader;

/**
 * A GPU's copy engine. Copies wait until the caller asks for the completion of one of them, or until there are many. If
 * the driver has a call for it, that call begins all copies that may be made in any order. All of them share an event,
 * which reports their completion.
 *
 * <p>
 * One thread at a time, with the device current. After construction, no call allocates.
 */
final class CopyEngine implements CopyQueue.Engine {

    private static final Duration TIMEOUT = Duration.ofSeconds(10);
    /** Number of events, more than can be in flight; a power of two. */
    private static final int EVENTS = 1024;
    /** Minimum number of copies for the call that begins many copies. */
    private static final int MIN_IN_BATCH = 2;
    private static final int MAX_REFUSALS = 3;
    /**
     * Minimum size in bytes of a plain copy from host memory. The copy engine does not make smaller ones: see
     * {@link RowCopies}.
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
    /** By event: the last copy before it. */
    private final long[] covered = new long[EVENTS];
    private final CopyBatch waiting = new CopyBatch();
    private long recorded;
    private long reached;
    /**
     * Numbers of the last copy that was requested, that was submitted, that is covered by an event, and that is
     * complete.
     */
    private long begun;
    private long submitted;
    private long marked;
    private long done;
    /** First failure of a driver call. Copies not complete by then are never completed. */
    private @Nullable RuntimeException failure;
    /** Values for {@link CopyQueue.Counts}. Threads other than the queue's thread may read slightly outdated values. */
    private long merged;
    private long calls;
    private long batched;
    private long batchCalls;

    /**
     * Creates an engine without copies.
     *
     * @param context a {@code CUcontext}
     */
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
     * Makes the context current on the queue's thread. The thread stays in it until it uses another context's queue or
     * leaves the context.
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
        // room for two copies, because one may be staged for the other
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
        for (int row = 0; row < count; row++) { // the rows lie in several allocations
            beginOne(to + row * waiting.targetPitch(copy), from + row * waiting.sourcePitch(copy), bytes,
                    waiting.isFromHost(copy) && bytes < MIN_PLAIN_FROM_HOST);
        }
    }

    /** Begins one copy. A short copy from host memory is made in pieces, none of which waits for a kernel. */
    private void beginOne(long to, long from, long bytes, boolean isShort) {
        long begun = 0;
        long piece = isShort ? beginPiece(to, from, bytes) : 0;
        while (piece > 0) {
            begun += piece;
            piece = begun < bytes ? beginPiece(to + begun, from + begun, bytes - begun) : 0;
        }
        if (begun < bytes) { // a single byte cannot be divided into rows
            driver.copy(to + begun, from + begun, bytes - begun, stream);
            calls++;
        }
    }

    /**
     * Begins a piece of a short copy: two rows, or three if half of the piece would divide a number. A kernel may poll
     * for a number of 4 or 8 bytes and must not see a part of it. A copy of exactly one number is a single store. In
     * longer copies each number lies within a row, because rows are made one after the other.
     *
     * @return number of bytes begun; 0 if the driver refuses
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
     * Begins several copies by one call. Returns false if the driver does not support that. Copies that the driver has
     * begun may be made twice without harm.
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
            return false; // no copy is complete at the moment when it begins
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
            throw new MillraceException("copies were given up: " + failed.getMessage(), failed);
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
                throw new MillraceException("copies are still under way after " + TIMEOUT.toSeconds() + " s");
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
     * Copies of 4 or 8 bytes from host memory to a device that a kernel sees whole or not at all. The stream stores
     * their value. Rows of half the bytes ({@link RowCopies}) would be made one after the other. One object per thread.
     * No call allocates.
     */
    static final class NumberStores {

        private static final int HOST_POINTER = 4; // CU_POINTER_ATTRIBUTE_HOST_POINTER
        @SuppressWarnings("restricted") // an address that CUDA reports as host memory
        private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

        private final CudaDriver driver;
        private final MemorySegment host = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG);

        NumberStores(CudaDriver driver) {
            this.driver = driver;
        }

        /**
         * Enqueues a store of the value that is in host memory now.
         *
         * @param from   address as the device sees it
         * @param stream a {@code CUstream}
         * @return false if the copy is no such number, or if the driver refuses; then nothing was enqueued
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
                            .call(stream, to, ALL.get(ValueLayout.JAVA_LONG, address), 0)
                    : (int) driver.function(Function.STORE_INT)
                            .call(stream, to, ALL.get(ValueLayout.JAVA_INT, address), 0);
            return stored == 0;
        }
    }

    /**
     * Copies of several rows of the same length by one driver call. One object per thread. No call allocates.
     *
     * <p>
     * A copy engine makes them, whatever their size. It does not make a plain copy of less than 32 KiB from host memory
     * to a GPU. The bytes of such a copy become a command of the compute engine. While a kernel runs there, that
     * command waits for the end of another context's time slice, 2.4 ms (two H100s, driver 580).
     */
    static final class RowCopies {

        /** {@code CUDA_MEMCPY2D_v2}: offsets of the members that are not 0. Both ends are given by their addresses. */
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

        /** Prepares the description of a copy. */
        RowCopies(CudaDriver driver) {
            this.driver = driver;
            memory.set(ValueLayout.JAVA_INT, SOURCE_TYPE, UNIFIED);
            memory.set(ValueLayout.JAVA_INT, TARGET_TYPE, UNIFIED);
        }

        /**
         * Enqueues a copy between any two locations that the device reaches. The driver refuses rows that lie in
         * several allocations.
         *
         * @param targetPitch distance between the targets of consecutive rows, in bytes; at least {@code width}, less
         *                    than 2<sup>31</sup>
         * @param sourcePitch distance between the sources of consecutive rows, in bytes; same range
         * @param width       number of bytes of a row
         * @param stream      a {@code CUstream}
         * @return false if the driver refuses these locations; then nothing was enqueued
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
     * The driver call that begins many copies at once, in no order among them; available from CUDA 12.8 on. One object
     * per thread. No call allocates.
     */
    static final class BatchCopies {

        // the version of 12.8, also in newer drivers, which have a _v2
        private static final String FUNCTION = "cuMemcpyBatchAsync";
        private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
        /**
         * Size of {@code CUmemcpyAttributes}: the order of reading, two hints that device memory and pinned memory do
         * not need, and flags.
         */
        private static final long ATTRIBUTES_BYTES = 24;
        private static final int IN_STREAM_ORDER = 1; // CU_MEMCPY_SRC_ACCESS_ORDER_STREAM

        private final CFunction function;
        /**
         * Targets, sources, sizes, the attributes, the index of the first copy with these attributes, and the index of
         * the failed copy.
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
         * Looks up the call.
         *
         * @return null if the driver does not have it
         */
        static @Nullable BatchCopies find(int capacity) {
            MemorySegment library = DynamicLoader.open(CudaDriver.NAME).handle();
            MemorySegment found = library == null ? null : DynamicLoader.find(library, FUNCTION);
            return found == null ? null : new BatchCopies(CFunction.at(found), capacity);
        }

        private long at(int array) {
            return array * (long) capacity * Long.BYTES;
        }

        /** Sets the parameters of a copy. */
        void set(int index, long to, long from, long bytes) {
            long offset = index * (long) Long.BYTES;
            memory.set(LONG, offset, to);
            memory.set(LONG, at(1) + offset, from);
            memory.set(LONG, at(2) + offset, bytes);
        }

        /**
         * Begins copies after all earlier work of the stream.
         *
         * @param stream a stream other than the default one
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
