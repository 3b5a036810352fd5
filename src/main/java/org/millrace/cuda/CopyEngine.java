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
 * A GPU's copy engine. Copies wait until somebody asks for one of them, or there are many: those that may be made in
 * any order are begun by one call of the driver's then, if the driver has one for that, and all of them share an event,
 * which tells that copies are over.
 *
 * <p>
 * One thread at a time, with the device current. No call allocates, once this was made.
 */
final class CopyEngine implements CopyQueue.Engine {

    private static final Duration PATIENCE = Duration.ofSeconds(10);
    /** More than can be under way; a power of two. */
    private static final int EVENTS = 1024;
    /** So many copies at once are worth the call for many. */
    private static final int LEAST_IN_BATCH = 2;
    private static final int MOST_REFUSALS = 3;
    /** A plain copy of fewer bytes from the host's memory is not the copy engine's: see {@link RowCopies}. */
    private static final int LEAST_PLAIN_FROM_HOST = 32 << 10;

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
    /** The last copy that was asked for, that was submitted, that an event is behind, and that was made. */
    private long begun;
    private long submitted;
    private long marked;
    private long done;
    /** A call of the driver's has failed: what was to be copied by then never is. */
    private @Nullable RuntimeException failure;
    /** Of {@link CopyQueue.Counts}; others than the queue's thread may read what is a moment old. */
    private long merged;
    private long calls;
    private long batched;
    private long batchCalls;

    /**
     * An engine with nothing to do.
     *
     * @param context a {@code CUcontext}
     */
    CopyEngine(CudaDriver driver, long context) {
        this.driver = driver;
        this.context = context;
        rows = new RowCopies(driver);
        numbers = new NumberStores(driver);
        batches = BatchCopies.find(CopyBatch.MOST);
        try (CudaDriver.EnteredContext _ = driver.enter(context)) {
            stream = driver.newStream();
            for (int i = 0; i < EVENTS; i++) {
                events[i] = driver.newEvent();
            }
        }
    }

    /** The thread that uses the queue stays in the context, until it uses one of another, or leaves it for good. */
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
        return begun - done < EVENTS - 1 || isDone(begun - EVENTS + 2); // two: one may be staged for the other
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
        requireWhole();
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
        return waiting.rows(copy) == 1 && (!waiting.isFromHost(copy) || waiting.bytes(copy) >= LEAST_PLAIN_FROM_HOST);
    }

    private void beginPlain(int first, int end) {
        if (end - first >= LEAST_IN_BATCH && batches != null && beginAtOnce(batches, first, end)) {
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
        for (int row = 0; row < count; row++) { // they lie in several allocations
            beginOne(to + row * waiting.targetPitch(copy), from + row * waiting.sourcePitch(copy), bytes,
                    waiting.isFromHost(copy) && bytes < LEAST_PLAIN_FROM_HOST);
        }
    }

    /** A short one in pieces, none of which waits for a kernel. */
    private void beginOne(long to, long from, long bytes, boolean isShort) {
        long begun = 0;
        long piece = isShort ? beginPiece(to, from, bytes) : 0;
        while (piece > 0) {
            begun += piece;
            piece = begun < bytes ? beginPiece(to + begun, from + begun, bytes - begun) : 0;
        }
        if (begun < bytes) { // a single byte makes no rows
            driver.copy(to + begun, from + begun, bytes - begun, stream);
            calls++;
        }
    }

    /**
     * Of a short one: two rows, or three where half of it would cut a number. A kernel may poll for a number of 4 or 8
     * bytes, and must not see a part of it: it is stored at once if it is all that there is, and lies within a row
     * otherwise, as rows are made one after the other.
     *
     * @return how many bytes were begun; 0 if the driver refuses
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

    /** False if the driver does not do that: nothing is lost if it has begun some, as they may be made twice. */
    private boolean beginAtOnce(BatchCopies with, int first, int end) {
        for (int i = first; i < end; i++) {
            with.set(i - first, waiting.to(i), waiting.from(i), waiting.bytes(i));
        }
        calls++;
        if (with.begin(end - first, stream) != 0) {
            refusals++;
            batches = refusals < MOST_REFUSALS ? with : null;
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
        requireWhole();
        if (number - submitted > 0) {
            submit();
            return false; // nothing is over the moment that it is begun
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

    private void requireWhole() {
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
            if (!Waiting.until(() -> driver.isIdle(stream), PATIENCE)) {
                throw new MillraceException("copies are still under way after " + PATIENCE.toSeconds() + " s");
            }
        }
    }

    @Override
    public void close() {
        try (CudaDriver.EnteredContext _ = driver.enter(context)) {
            Waiting.until(() -> failure != null || isDone(begun), PATIENCE);
            driver.destroyStream(stream);
            for (long event : events) {
                driver.destroyEvent(event);
            }
        }
    }

    /**
     * Copies of 4 or 8 bytes from the host's memory to a device that a kernel sees whole or not at all: the stream
     * stores their value. Rows of half the bytes ({@link RowCopies}) are made one after the other. One object a thread;
     * no call allocates.
     */
    static final class NumberStores {

        private static final int HOST_POINTER = 4; // CU_POINTER_ATTRIBUTE_HOST_POINTER
        @SuppressWarnings("restricted") // an address that CUDA knows as the host's
        private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

        private final CudaDriver driver;
        private final MemorySegment host = Arena.ofAuto().allocate(ValueLayout.JAVA_LONG);

        NumberStores(CudaDriver driver) {
            this.driver = driver;
        }

        /**
         * Enqueues a store of the value that is in the host's memory now.
         *
         * @param from   as the device sees it
         * @param stream a {@code CUstream}
         * @return false if it is no such number, or the driver refuses: nothing was enqueued
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
     * Copies of several rows of the same length, by one call of the driver's. One object a thread; no call allocates.
     *
     * <p>
     * They are made by a copy engine, whatever their size. A plain copy of less than 32 KiB from the host's memory to a
     * GPU is not: its bytes become a command of the compute engine, which waits for the end of another context's time
     * slice, 2.4 ms, while a kernel runs there (two H100s, driver 580).
     */
    static final class RowCopies {

        /** {@code CUDA_MEMCPY2D_v2}: the members that are not 0, for both ends by their addresses. */
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

        /** Binds the call. */
        RowCopies(CudaDriver driver) {
            this.driver = driver;
            memory.set(ValueLayout.JAVA_INT, SOURCE_TYPE, UNIFIED);
            memory.set(ValueLayout.JAVA_INT, TARGET_TYPE, UNIFIED);
        }

        /**
         * Enqueues a copy between any two places that the device reaches. The driver refuses rows of several
         * allocations.
         *
         * @param targetPitch from a row's target to the next one's; at least {@code width}, less than 2<sup>31</sup>
         * @param sourcePitch from a row's source to the next one's; as {@code targetPitch}
         * @param width       bytes of a row
         * @param stream      a {@code CUstream}
         * @return false if the driver refuses these places: nothing was enqueued
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
     * The driver's call that begins many copies at once, in no order among them: of CUDA 12.8 and newer. One object a
     * thread; no call allocates.
     */
    static final class BatchCopies {

        private static final String FUNCTION = "cuMemcpyBatchAsync"; // of 12.8 in newer drivers, too, which have a _v2
        private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG;
        /** {@code CUmemcpyAttributes}: the order of reading, two hints that GPUs' and pinned memory need not, flags. */
        private static final long ATTRIBUTES_BYTES = 24;
        private static final int IN_STREAM_ORDER = 1; // CU_MEMCPY_SRC_ACCESS_ORDER_STREAM

        private final CFunction function;
        /** Targets, sources, sizes, the attributes, the first copy that they are for, and which copy has failed. */
        private final MemorySegment memory;
        private final int most;

        private BatchCopies(CFunction function, int most) {
            this.function = function;
            this.most = most;
            memory = Arena.ofAuto().allocate(at(3) + ATTRIBUTES_BYTES + 2 * Long.BYTES, Long.BYTES);
            memory.set(ValueLayout.JAVA_INT, at(3), IN_STREAM_ORDER);
        }

        /**
         * Looks for the call.
         *
         * @return null if the driver is older
         */
        static @Nullable BatchCopies find(int most) {
            MemorySegment library = DynamicLoader.open(CudaDriver.NAME).handle();
            MemorySegment found = library == null ? null : DynamicLoader.find(library, FUNCTION);
            return found == null ? null : new BatchCopies(CFunction.at(found), most);
        }

        private long at(int array) {
            return array * (long) most * Long.BYTES;
        }

        /** Says what a copy is. */
        void set(int index, long to, long from, long bytes) {
            long offset = index * (long) Long.BYTES;
            memory.set(LONG, offset, to);
            memory.set(LONG, at(1) + offset, from);
            memory.set(LONG, at(2) + offset, bytes);
        }

        /**
         * Begins copies, behind all that the stream has to do.
         *
         * @param stream where; not the default one
         * @return what the driver answers; 0 if they are begun
         */
        int begin(int count, long stream) {
            long arrays = memory.address();
            long attributes = arrays + at(3);
            return (int) function.call(arrays, arrays + at(1), arrays + at(2), count, attributes,
                    attributes + ATTRIBUTES_BYTES, 1L, attributes + ATTRIBUTES_BYTES + Long.BYTES, stream);
        }
    }
}
