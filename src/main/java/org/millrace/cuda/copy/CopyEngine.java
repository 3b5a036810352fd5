package org.millrace.cuda.copy;

import java.time.Duration;
import org.millrace.agent.Waiting;
import org.millrace.cuda.CudaDevice;
import org.millrace.cuda.CudaDriver;
import org.millrace.cuda.CudaStream;
import org.millrace.cuda.CurrentDevice;

/**
 * A GPU's copy engine. Behind each copy comes an event, which completes on the engine itself: a store that the stream
 * makes would be another engine's, and cost some 2 microseconds more.
 *
 * <p>
 * One thread at a time, with the device current. No call allocates, once this was made.
 */
final class CopyEngine implements CopyQueue.Engine {

    private static final Duration PATIENCE = Duration.ofSeconds(10);
    /** More than can be under way; a power of two. */
    private static final int EVENTS = 1024;

    private final CudaDriver driver;
    private final CudaStream stream;
    private final long streamAddress;
    private final long[] events = new long[EVENTS];
    private long begun;
    private long done;

    CopyEngine(CudaDriver driver, CudaDevice device) {
        this.driver = driver;
        this.stream = device.newStream();
        this.streamAddress = stream.handle().address().address();
        try (CurrentDevice _ = device.makeCurrent()) {
            for (int i = 0; i < EVENTS; i++) {
                events[i] = driver.newEvent();
            }
        }
    }

    @Override
    public boolean hasRoom() {
        return begun - done < EVENTS || isDone(begun - EVENTS + 1);
    }

    @Override
    public long copy(long to, long from, long bytes) {
        driver.copy(to, from, bytes, streamAddress);
        return mark();
    }

    @Override
    public long storeLong(long to, long value) {
        driver.storeLong(streamAddress, to, value);
        return mark();
    }

    @Override
    public long storeInt(long to, int value) {
        driver.storeInt(streamAddress, to, value);
        return mark();
    }

    private long mark() {
        driver.record(event(begun + 1), streamAddress);
        return ++begun;
    }

    private long event(long number) {
        return events[(int) number & EVENTS - 1];
    }

    @Override
    public boolean isDone(long number) {
        if (done - number < 0 && driver.isDone(event(number))) {
            done = number;
        }
        return done - number >= 0;
    }

    @Override
    public void settle() {
        stream.synchronize(PATIENCE);
    }

    @Override
    public void close() {
        Waiting.until(() -> isDone(begun), PATIENCE);
        stream.close();
        for (long event : events) {
            driver.destroyEvent(event);
        }
    }
}
