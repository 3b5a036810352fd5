package org.millrace.device.gin;

import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.GinCells;
import org.millrace.abi.GinDescriptorFormat;
import org.millrace.abi.GinOp;
import org.millrace.gin.GinException;
import org.millrace.gin.Window;

/**
 * One block's hold on a context. It posts descriptors and waits for signals and counters, as {@code ncclGin} does. Any
 * number of blocks may hold the same context. Each block has its own object, which one thread at a time uses.
 *
 * <p>
 * Methods that post have two forms. {@code put} and similar methods wait while the queue is full. {@code tryPut} and
 * similar methods return false instead, for blocks that must not wait. Every wait ends with an exception if the
 * communicator fails, or after the requirements' deadline.
 */
public final class HostGin {

    private static final int NO_COUNTER = -1;

    private final GinDeviceCommunicator communicator;
    private final int number;
    private final HostGinContext context;
    private final GinPoster poster;
    private final GinPoster.BlockWait wait;
    private final DescriptorWriter writer;

    public HostGin(GinDeviceCommunicator communicator, int context) {
        this.communicator = communicator;
        this.number = context;
        this.context = communicator.context(context);
        this.writer = new DescriptorWriter(communicator.requirements().format());
        this.wait =
                new GinPoster.BlockWait(communicator.communicator(), communicator.requirements().deadline().toNanos());
        this.poster = new GinPoster(this.context, communicator.rank(), context, wait);
    }

    public GinDeviceCommunicator communicator() {
        return communicator;
    }

    public int context() {
        return number;
    }

    /**
     * Copies bytes to a peer's window, which this rank's own window names. Returns when the descriptor is posted.
     *
     * @param source  must not be written until a {@link #flush}, or until the counter has grown
     * @param action  action at the peer after the put has arrived
     * @param counter grows by one when the source has been read; negative for none
     */
    public void put(GinTeam team, int peer, Window target, long targetOffset, Window source, long sourceOffset,
            long bytes, RemoteAction action, int counter) {
        postBoth(team, peer, writer.put(target, targetOffset, source, sourceOffset, bytes, action, counter));
    }

    /** Copies bytes to a peer's window, without an action or a counter. */
    public void put(GinTeam team, int peer, Window target, long targetOffset, Window source, long sourceOffset,
            long bytes) {
        put(team, peer, target, targetOffset, source, sourceOffset, bytes, RemoteAction.NONE, NO_COUNTER);
    }

    /**
     * Does the same as {@link #put(GinTeam, int, Window, long, Window, long, long, RemoteAction, int)} without waiting.
     * Returns false if the queue is full and nothing was posted.
     */
    public boolean tryPut(GinTeam team, int peer, Window target, long targetOffset, Window source, long sourceOffset,
            long bytes, RemoteAction action, int counter) {
        long @Nullable [] second = writer.put(target, targetOffset, source, sourceOffset, bytes, action, counter);
        return poster.tryPost(team.toWorld(communicator.rank(), peer), writer.words, second);
    }

    private void postBoth(GinTeam team, int peer, long @Nullable [] second) {
        int world = team.toWorld(communicator.rank(), peer);
        poster.post(world, writer.words);
        if (second != null) {
            poster.post(world, second);
        }
    }

    /** Stores the lowest 1 to 8 bytes of a value in a peer's window, at any offset. */
    public void putValue(GinTeam team, int peer, Window target, long targetOffset, long value, int bytes,
            RemoteAction action) {
        postBoth(team, peer, writer.putValue(target, targetOffset, value, bytes, action));
    }

    /**
     * Does the same as {@link #putValue} without waiting. Returns false if the queue is full and nothing was posted.
     */
    public boolean tryPutValue(GinTeam team, int peer, Window target, long targetOffset, long value, int bytes,
            RemoteAction action) {
        long @Nullable [] second = writer.putValue(target, targetOffset, value, bytes, action);
        return poster.tryPost(team.toWorld(communicator.rank(), peer), writer.words, second);
    }

    /** Changes a peer's signal, after all earlier puts of this context to the peer. */
    public void signal(GinTeam team, int peer, RemoteAction action) {
        poster.post(team.toWorld(communicator.rank(), peer), writer.signal(action));
    }

    /** Does the same as {@link #signal} without waiting. Returns false if the queue is full and nothing was posted. */
    public boolean trySignal(GinTeam team, int peer, RemoteAction action) {
        return poster.tryPost(team.toWorld(communicator.rank(), peer), writer.signal(action), null);
    }

    /**
     * Copies bytes from a peer's window. The bytes have arrived after a {@link #flush}. NCCL has this operation from
     * 2.30 on.
     */
    public void get(GinTeam team, int peer, Window source, long sourceOffset, Window target, long targetOffset,
            long bytes) {
        writer.get(source, sourceOffset, target, targetOffset, bytes);
        poster.postGet(team.toWorld(communicator.rank(), peer), writer.words);
    }

    /**
     * Waits until the sources of all puts of this context have been read and its gets have arrived. Does not wait until
     * the puts have arrived.
     */
    public void flush() {
        for (int peer = 0; peer < communicator.world().ranks(); peer++) {
            poster.flush(peer, writer.words);
        }
    }

    /** Returns whether all descriptors posted so far are complete, so that a {@link #flush} of puts would not wait. */
    public boolean isFlushed() {
        for (int peer = 0; peer < communicator.world().ranks(); peer++) {
            if (!poster.isFlushed(peer)) {
                return false;
            }
        }
        return true;
    }

    /**
     * Returns the value of a signal of this rank since its last reset. The data of all puts before the signal is
     * visible.
     */
    public long readSignal(int signal) {
        long value = context.signals.acquire(signal);
        return context.resetsByOffset() ? value - context.signalOffsets.acquire(signal) : value;
    }

    /** Waits until a signal has reached a value. The data of all puts before the signal is then visible. */
    public void waitSignal(int signal, long least) {
        waitSignal(signal, least, Long.SIZE);
    }

    /** Waits for the low bits of a signal, 1 to 64. They are compared by difference, so they may wrap. */
    public void waitSignal(int signal, long least, int bits) {
        wait.begin();
        while (!reached(readSignal(signal), least, bits)) {
            if (!wait.pause()) {
                throw new GinException(this + " waited " + communicator.requirements().deadline().toMillis()
                        + " ms for signal " + signal + " to reach " + least + "; it is " + readSignal(signal));
            }
        }
    }

    /** Waits for a condition that other ranks of this process bring about. */
    public void waitUntil(String what, BooleanSupplier condition) {
        wait.begin();
        while (!condition.getAsBoolean()) {
            if (!wait.pause()) {
                throw new GinException(
                        this + " waited " + communicator.requirements().deadline().toMillis() + " ms for " + what);
            }
        }
    }

    static boolean reached(long value, long least, int bits) {
        return value - least << Long.SIZE - bits >= 0;
    }

    /** Sets a signal and its shadow to 0. No peer may be changing the signal. */
    public void resetSignal(int signal) {
        if (context.resetsByOffset()) {
            context.signalOffsets.release(signal, context.signals.acquire(signal));
        } else {
            context.signals.release(signal, 0);
        }
        context.shadows.release(signal, 0);
    }

    /** Adds the expected growth of a signal to its shadow. */
    public void increaseSignalShadow(int signal, long delta) {
        context.shadows.addRelease(signal, delta);
    }

    /** Waits until a signal has grown to its shadow. */
    public void waitSignalMeetShadow(int signal) {
        waitSignal(signal, context.shadows.acquire(signal));
    }

    /**
     * Waits until a signal exceeds its shadow by at least the given amount. Then raises the shadow to the signal.
     * Returns the difference before that.
     */
    public long waitSignalFollowShadow(int signal, long leastDelta) {
        long before = context.shadows.acquire(signal);
        waitSignal(signal, before + leastDelta);
        long delta = readSignal(signal) - before;
        context.shadows.addRelease(signal, delta);
        return delta;
    }

    /** Returns the value of a counter of this rank since its last reset. */
    public long readCounter(int counter) {
        return context.counters.acquire(counter);
    }

    /** Waits until a counter has reached a value: the sources of that many puts have been read. */
    public void waitCounter(int counter, long least) {
        GinCells counters = context.counters;
        wait.begin();
        while (!reached(counters.acquire(counter), least, Long.SIZE)) {
            if (!wait.pause()) {
                throw new GinException(this + " waited " + communicator.requirements().deadline().toMillis()
                        + " ms for counter " + counter + " to reach " + least + "; it is " + counters.acquire(counter));
            }
        }
    }

    /** Sets a counter to 0. No put that names the counter may be in flight. */
    public void resetCounter(int counter) {
        context.counters.release(counter, 0);
    }

    @Override
    public String toString() {
        return "rank " + communicator.rank() + ", context " + number;
    }

    /**
     * Writes the descriptors of one block. A signal in a window needs a separate descriptor after the descriptor of its
     * put.
     */
    private static final class DescriptorWriter {

        private final GinDescriptorFormat format;
        final long[] words = new long[GinDescriptorFormat.MAX_WORDS];
        private final long[] signalWords = new long[GinDescriptorFormat.MAX_WORDS];

        DescriptorWriter(GinDescriptorFormat format) {
            this.format = format;
        }

        /** Fills in {@link #words}. Returns the second descriptor if two are necessary, otherwise null. */
        long @Nullable [] put(Window target, long targetOffset, Window source, long sourceOffset, long bytes,
                RemoteAction action, int counter) {
            beginPut(counter >= 0 ? GinOp.COUNTER : 0, bytes, action);
            format.source(words, source.handle(), sourceOffset);
            format.target(words, target.handle(), targetOffset);
            format.completion(words, Math.max(counter, 0), action.signal(), action.value());
            return windowSignal(action);
        }

        long @Nullable [] putValue(Window target, long targetOffset, long value, int bytes, RemoteAction action) {
            beginPut(GinOp.INLINE, bytes, action);
            format.inline(words, value);
            format.target(words, target.handle(), targetOffset);
            format.completion(words, 0, action.signal(), action.value());
            return windowSignal(action);
        }

        private void beginPut(int op, long bytes, RemoteAction action) {
            format.begin(words, GinOp.PUT | op | (action.isInWindow() ? 0 : action.op()), bytes);
        }

        private long @Nullable [] windowSignal(RemoteAction action) {
            if (!action.isInWindow()) {
                return null;
            }
            if (format == GinDescriptorFormat.V28) {
                throw new GinException("NCCL 2.28 has no signals in windows: require format V29 or later");
            }
            format.begin(signalWords, action.op(), 0);
            format.source(signalWords, action.window().handle(), action.offset());
            format.completion(signalWords, 0, 0, action.value());
            return signalWords;
        }

        /** Returns the only descriptor. */
        long[] signal(RemoteAction action) {
            long @Nullable [] inWindow = windowSignal(action);
            if (inWindow == null) {
                beginPut(0, 0, action);
                format.completion(words, 0, action.signal(), action.value());
            }
            return inWindow == null ? words : inWindow;
        }

        /** Fills in {@link #words}. */
        void get(Window source, long sourceOffset, Window target, long targetOffset, long bytes) {
            if (!format.hasGets()) {
                throw new GinException("NCCL 2.28 and 2.29 have no get: require format V30_3 or V30");
            }
            format.begin(words, GinOp.GET, bytes);
            format.source(words, source.handle(), sourceOffset);
            format.target(words, target.handle(), targetOffset);
        }
    }
}
