package org.millrace.device;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.millrace.DeviceStream;
import org.millrace.MillraceException;
import org.millrace.OperationGroup;
import org.millrace.Plan;

/**
 * What streams are given while they are captured ({@code cudaStreamBeginCapture}): the stream on which the capture
 * began, and those that have waited since for an event of one that is captured. Nothing of it runs; at the end it is a
 * plan.
 *
 * <p>
 * Each stream has a clock that says how many operations of each stream lie before its next one; an event carries the
 * clock of its stream, and who waits for it takes the later of the two. So at the end the first stream's clock says
 * whether anything was left that it has not waited for.
 */
final class StreamCapture {

    /** Where an event was recorded in a capture. */
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
     * A call of the program.
     *
     * @param stream    which
     * @param operation null where an event is recorded or waited for
     * @param mark      number of that event's mark
     * @param records   whether it is recorded
     */
    private record Step(int stream, EmulatedStream.@Nullable CapturedOperation operation, int mark, boolean records) {
    }

    private final EmulatedDevice device;
    private final List<EmulatedStream> streams = new ArrayList<>();
    private final List<int[]> clocks = new ArrayList<>();
    private final List<Step> steps = new ArrayList<>();
    private int marks;
    /** Why there will be no plan; null as long as there can be one. */
    private @Nullable String invalid;
    private boolean over;

    StreamCapture(EmulatedDevice device, EmulatedStream origin) {
        this.device = device;
        streams.add(origin);
        clocks.add(new int[1]);
    }

    /** Keeps what a stream is given; false if the capture is over, and it is to be enqueued. */
    synchronized boolean add(EmulatedStream stream, EmulatedStream.CapturedOperation operation) {
        if (over) {
            return false;
        }
        int at = require(stream);
        steps.add(new Step(at, operation, 0, false));
        clock(at)[at]++;
        return true;
    }

    /** An event is recorded on a stream; null if the capture is over. */
    synchronized @Nullable CapturedMark mark(EmulatedStream stream) {
        if (over) {
            return null;
        }
        int at = require(stream);
        CapturedMark mark = new CapturedMark(this, marks++, clock(at).clone());
        steps.add(new Step(at, null, mark.number, true));
        return mark;
    }

    /** A stream waits for an event of this capture, and is part of it from then on. */
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
     * What a stream of it was asked for cannot be captured: there will be no plan. Unless the capture is over, and the
     * stream may do it.
     *
     * @throws MillraceException that says so
     */
    synchronized void refuse(String why) {
        if (!over) {
            invalidate(why);
            throw new MillraceException(why + ". The capture on " + streams.getFirst() + " is invalid now: end it");
        }
    }

    /** The first reason is the one that is told. */
    private void invalidate(String why) {
        invalid = invalid == null ? why : invalid;
    }

    /**
     * Ends the capture.
     *
     * @throws IllegalStateException if it began on another stream, and goes on then; or was ended meanwhile
     * @throws MillraceException     if it is invalid, or a stream of it was not waited for again
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
        giveBack();
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
     * Its streams are as they were. Without the lock: a stream that joins has its own, and then asks for this one. What
     * is read here changes no more once the capture is over.
     */
    private void giveBack() {
        streams.forEach(each -> each.captureEnded(this));
    }

    /** A stream of it is closed. */
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
        giveBack();
        steps.forEach(StreamCapture::release);
    }

    private static void release(Step step) {
        if (step.operation != null) {
            step.operation.release();
        }
    }

    /** What was captured, enqueued again in the same order: each stream but the first has one of its own. */
    private final class CapturedPlan implements Plan {

        private final List<Step> recorded;
        private @Nullable EmulatedEvent behindLast;
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
            if (behindLast != null) {
                where.waitFor(behindLast); // a plan runs once at a time
            }
            EmulatedStream[] on = new EmulatedStream[streams.size()];
            Arrays.setAll(on, each -> each == 0 ? where : device.newStream());
            try {
                enqueue(on);
            } finally {
                Arrays.stream(on).skip(1).forEach(EmulatedStream::closeWhenDone);
                behindLast = device.newEvent();
                where.record(behindLast);
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
