package org.millrace.cuda;

import java.time.Duration;

/**
 * Copies that run one after another while the caller does something else. Behind each one comes an event, which completes on the copy engine itself: a store
 * that the stream makes would be another engine's, and cost some 2 microseconds more.
 *
 * <p>One thread at a time, with the queue's device current. No call allocates, once the queue was made.
 */
public final class CopyQueue implements AutoCloseable {

    private static final Duration PATIENCE = Duration.ofSeconds(10);
    /** More than can be under way; a power of two. */
    private static final int EVENTS = 1024;

    private final CudaDriver driver;
    private final CudaStream stream;
    private final long streamAddress;
    private final long[] events = new long[EVENTS];
    private long begun;
    private long done;

    /**
     * A queue with nothing in it.
     *
     * @param driver the driver's functions
     * @param device the device that copies
     */
    public CopyQueue(CudaDriver driver, CudaDevice device) {
        this.driver = driver;
        this.stream = device.newStream();
        this.streamAddress = stream.handle().address().address();
        try (CurrentDevice _ = device.makeCurrent()) {
            for (int i = 0; i < EVENTS; i++) {
                events[i] = driver.newEvent();
            }
        }
    }

    /**
     * Whether another copy may be begun.
     *
     * @return false if as many are under way as can be asked after
     */
    public boolean hasRoom() {
        return begun - done < EVENTS || isDone(begun - EVENTS + 1);
    }

    /**
     * Begins a copy.
     *
     * @param to    address of the target
     * @param from  address of the source
     * @param bytes 1 or more
     * @return its number, to be asked after
     */
    public long copy(long to, long from, long bytes) {
        driver.copy(to, from, bytes, streamAddress);
        return mark();
    }

    /**
     * Begins a store of 8 bytes; quicker than a copy of them.
     *
     * @param to    address of the target, a multiple of 8
     * @param value what
     * @return its number, to be asked after
     */
    public long storeLong(long to, long value) {
        driver.storeLong(streamAddress, to, value);
        return mark();
    }

    /**
     * Begins a store of 4 bytes.
     *
     * @param to    address of the target, a multiple of 4
     * @param value what
     * @return its number, to be asked after
     */
    public long storeInt(long to, int value) {
        driver.storeInt(streamAddress, to, value);
        return mark();
    }

    private long mark() {
        begun++;
        driver.record(event(begun), streamAddress);
        return begun;
    }

    private long event(long number) {
        return events[(int) number & EVENTS - 1];
    }

    /**
     * The copy that was begun last.
     *
     * @return its number, to be asked after
     */
    public long last() {
        return begun;
    }

    /**
     * Whether a copy was made, and all before it.
     *
     * @param number what the copy's beginning returned
     * @return true once the target holds the bytes and whoever is told now sees them
     */
    public boolean isDone(long number) {
        if (done - number < 0 && driver.isDone(event(number))) {
            done = number;
        }
        return done - number >= 0;
    }

    /**
     * Waits until the stream holds nothing; unlike the other calls, from any thread.
     *
     * @throws org.millrace.MillraceException if it still does after ten seconds
     */
    public void settle() {
        stream.synchronize(PATIENCE);
    }

    /** Waits for what was begun, and gives the stream back. */
    @Override
    public void close() {
        Waiting.until(() -> isDone(begun), PATIENCE);
        stream.close();
        for (long event : events) {
            driver.destroyEvent(event);
        }
    }
}
