package org.millrace.device;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.Plan;
import org.millrace.operation.OperationGroup;

/**
 * The operations of captured streams ({@code cudaStreamBeginCapture}). A capture begins on one stream. Another stream
 * joins the capture when it waits for an event of a captured stream. The operations do not run. At the end of the
 * capture they become a plan.
 *
 * <p>
 * Each stream has a vector clock with an entry for each stream of the capture. The entry for stream {@code s} is the
 * number of operations of {@code s} that precede the next operation of the clock's own stream. An event stores the
 * clock of its stream. If a stream waits for an event, each entry of the stream's clock becomes the maximum of this
 * entry and the event's entry. At the end, the clock of the first stream shows whether this stream has waited for all
 * operations of the other streams.
 */
final class StreamCapture {

    /** One recording of an event during a capture. */
    static final class CapturedMark {
        private final StreamCapture capture;
        private final int number;
        private final int[] clock;

        private CapturedMark(StreamCapture capture, int number, int[] clock) {
            this.capture = capture;
            this.number = number;
            this.clock = clock;
        }

        StreamCapture capture() {
            return capture;
        }
    }

    /**
     * A call of the program during the capture: an operation, the recording of an event, or the wait for an event.
     *
     * @param stream    index of the stream in the capture
     * @param operation captured operation; null if the call records an event or waits for one
     * @param mark      number of the event's mark
     * @param records   true for the recording of an event; false for the wait
     */
    private record Step(int stream, EmulatedStream.@Nullable CapturedOperation operation, int mark, boolean records) {
    }

    private final EmulatedDevice device;
    private final List<EmulatedStream> streams = new ArrayList<>();
    private final List<int[]> clocks = new ArrayList<>();
    private final List<Step> steps = new ArrayList<>();
    private int marks;
    /** Reason why the capture cannot become a plan; null while the capture is valid. */
    private @Nullable String invalid;
    private boolean over;

    StreamCapture(EmulatedDevice device, EmulatedStream origin) {
        this.device = device;
        streams.add(origin);
        clocks.add(new int[1]);
    }

    /**
     * Adds an operation of a stream. Returns false if the capture has ended; the caller must then enqueue the
     * operation.
     */
    synchronized boolean add(EmulatedStream stream, EmulatedStream.CapturedOperation operation) {
        if (over) {
            return false;
        }
        int at = require(stream);
        steps.add(new Step(at, operation, 0, false));
        clock(at)[at]++;
        return true;
    }

    /** Adds the recording of an event on a stream. Returns the new mark; null if the capture has ended. */
    synchronized @Nullable CapturedMark mark(EmulatedStream stream) {
        if (over) {
            return null;
        }
        int at = require(stream);
        CapturedMark mark = new CapturedMark(this, marks++, clock(at).clone());
        steps.add(new Step(at, null, mark.number, true));
        return mark;
    }

    /**
     * Adds a stream's wait for an event of this capture. A stream that is not part of this capture yet joins the
     * capture.
     */
    synchronized void waitFor(EmulatedStream stream, CapturedMark mark) {
        if (over) {
            throw new IllegalStateException("the event was recorded while " + streams.getFirst()
                    + " was captured, which is over: record it again");
        }
        requireValid(stream);
        if (!streams.contains(stream)) {
            streams.add(stream);
            clocks.add(new int[streams.size()]);
        }
        int at = streams.indexOf(stream);
        int[] clock = clock(at);
        for (int each = 0; each < mark.clock.length; each++) {
            clock[each] = Math.max(clock[each], mark.clock[each]);
        }
        steps.add(new Step(at, null, mark.number, false));
    }

    private int[] clock(int stream) {
        int[] clock = clocks.get(stream);
        if (clock.length < streams.size()) {
            clock = Arrays.copyOf(clock, streams.size());
            clocks.set(stream, clock);
        }
        return clock;
    }

    private int require(EmulatedStream stream) {
        requireValid(stream);
        return streams.indexOf(stream);
    }

    private void requireValid(EmulatedStream stream) {
        if (invalid != null) {
            throw new MillraceException(
                    stream + ": the capture was invalidated: " + invalid + ". End it, and begin again");
        }
    }

    /**
     * Invalidates the capture and throws, because the program made a call that cannot be captured. Does nothing if the
     * capture has ended, because the stream can then carry out the call.
     *
     * @throws MillraceException if the capture has not ended; the message states the reason
     */
    synchronized void refuse(String why) {
        if (!over) {
            invalidate(why);
            throw new MillraceException(why + ". The capture on " + streams.getFirst() + " is invalid now: end it");
        }
    }

    /** Makes the capture invalid. If it is invalid already, the first reason is kept. */
    private void invalidate(String why) {
        invalid = invalid == null ? why : invalid;
    }

    /**
     * @throws IllegalStateException if the capture began on another stream (the capture then continues), or if it has
     *                               ended already
     * @throws MillraceException     if the capture is invalid, or if the first stream has not waited for all work of
     *                               another stream
     */
    Plan end(EmulatedStream stream) {
        String why;
        synchronized (this) {
            if (streams.getFirst() != stream) {
                throw new IllegalStateException(
                        stream + ": the capture began on " + streams.getFirst() + ", and has to be ended there");
            }
            if (over) {
                throw new IllegalStateException(stream + " is not captured");
            }
            over = true;
            why = invalid == null ? unjoined() : "the capture was invalidated: " + invalid;
        }
        releaseStreams();
        if (why != null) {
            steps.forEach(StreamCapture::release);
            throw new MillraceException(stream + ": " + why);
        }
        return new CapturedPlan(List.copyOf(steps));
    }

    private @Nullable String unjoined() {
        int[] joined = clock(0);
        for (int each = 1; each < streams.size(); each++) {
            if (joined[each] < clock(each)[each]) {
                return "work of " + streams.get(each) + " was not joined: let " + streams.getFirst()
                        + " wait for an event behind it before the capture ends";
            }
        }
        return null;
    }

    /**
     * Releases the streams from the capture. Takes the streams' locks, and is therefore called without this object's
     * lock. A stream that joins a capture takes its own lock first and then this object's lock. The opposite order
     * could cause a deadlock. The fields that are read here do not change after the end of the capture.
     */
    private void releaseStreams() {
        streams.forEach(each -> each.captureEnded(this));
    }

    /**
     * Called when a stream of the capture is closed. If the capture began on this stream, the capture ends without a
     * plan. Otherwise the capture becomes invalid.
     */
    void leave(EmulatedStream stream) {
        synchronized (this) {
            if (over) {
                return;
            }
            if (streams.getFirst() != stream) {
                invalidate(stream + " was closed while it was captured");
                return;
            }
            over = true;
        }
        releaseStreams();
        steps.forEach(StreamCapture::release);
    }

    private static void release(Step step) {
        if (step.operation != null) {
            step.operation.release();
        }
    }

    /**
     * The captured operations. A launch enqueues them in the order of their capture. The stream of the launch replaces
     * the first captured stream. A new stream replaces each other captured stream.
     */
    private final class CapturedPlan implements Plan {

        private final List<Step> recorded;
        private @Nullable EmulatedEvent afterLast;
        private boolean closed;

        CapturedPlan(List<Step> recorded) {
            this.recorded = recorded;
        }

        @Override
        public synchronized void launch(DeviceStream stream) {
            if (closed) {
                throw new IllegalStateException(device.name() + ": the plan is closed");
            }
            device.check(stream);
            EmulatedStream where = (EmulatedStream) stream;
            if (OperationGroup.isOpen() || where.isCapturing()) {
                throw new IllegalStateException(device.name() + ": a plan is launched outside of "
                        + (where.isCapturing() ? "captures" : "groups"));
            }
            device.awaitRoom(stream);
            for (Step step : recorded) {
                if (step.operation != null) {
                    step.operation.check();
                }
            }
            if (afterLast != null) {
                // The launch waits for the plan's previous run, because only one run at a time is possible.
                where.waitFor(afterLast);
            }
            EmulatedStream[] on = new EmulatedStream[streams.size()];
            Arrays.setAll(on, each -> each == 0 ? where : device.newStream());
            try {
                enqueue(on);
            } finally {
                Arrays.stream(on).skip(1).forEach(EmulatedStream::closeWhenDone);
                afterLast = device.newEvent();
                where.record(afterLast);
            }
        }

        private void enqueue(EmulatedStream[] on) {
            EmulatedEvent[] reached = new EmulatedEvent[marks];
            for (Step step : recorded) {
                EmulatedStream target = on[step.stream];
                if (step.operation != null) {
                    step.operation.enqueue(target);
                } else if (step.records) {
                    reached[step.mark] = device.newEvent();
                    target.record(reached[step.mark]);
                } else {
                    target.waitFor(reached[step.mark]);
                }
            }
        }

        @Override
        public synchronized void close() {
            if (!closed) {
                closed = true;
                recorded.forEach(StreamCapture::release);
            }
        }
    }
}
