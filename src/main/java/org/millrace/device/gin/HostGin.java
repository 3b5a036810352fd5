package org.millrace.device.gin;

import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.gin.GinCells;
import org.millrace.abi.gin.GinDescriptorFormat;
import org.millrace.abi.gin.GinOp;
import org.millrace.gin.GinException;
import org.millrace.gin.Window;

/**
 * One block's handle of a context. It posts descriptors and waits for signals and counters, as {@code ncclGin} does.
 * Any number of blocks may use the same context. Each block has its own handle, and only one thread at a time uses a
 * handle.
 *
 * <p>
 * The methods that post descriptors have two forms. {@code put} and similar methods wait while the queue is full.
 * {@code tryPut} and similar methods return false instead, for blocks that must not wait. Every wait ends with an
 * exception if the communicator fails, or if the deadline in the requirements passes.
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
     * Copies bytes from a window of this rank to a window of a peer. Returns when the descriptor is posted.
     *
     * @param peer    index of the peer in the team
     * @param target  this rank's object of the target window; the bytes go to the peer's part of this window
     * @param source  window of the source bytes; they must not be changed until a {@link #flush} has returned or the
     *                counter has increased
     * @param action  action at the peer after the put has arrived
     * @param counter number of the counter that increases by one when the source has been read; negative for none
     */
    public void put(GinTeam team, int peer, Window target, long targetOffset, Window source, long sourceOffset,
            long bytes, RemoteAction action, int counter) {
        postBoth(team, peer, writer.put(target, targetOffset, source, sourceOffset, bytes, action, counter));
    }

    /** Copies bytes from a window of this rank to a window of a peer, without an action or a counter. */
    public void put(GinTeam team, int peer, Window target, long targetOffset, Window source, long sourceOffset,
            long bytes) {
        put(team, peer, target, targetOffset, source, sourceOffset, bytes, RemoteAction.NONE, NO_COUNTER);
    }

    /**
     * Posts the same put as {@link #put(GinTeam, int, Window, long, Window, long, long, RemoteAction, int)}, but does
     * not wait. Returns false if the queue is full; nothing is posted then.
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

    /**
     * Stores the lowest 1 to 8 bytes of a value in a peer's window, at any offset.
     *
     * @param bytes number of bytes, 1 to 8
     */
    public void putValue(GinTeam team, int peer, Window target, long targetOffset, long value, int bytes,
            RemoteAction action) {
        postBoth(team, peer, writer.putValue(target, targetOffset, value, bytes, action));
    }

    /**
     * Posts the same put as {@link #putValue}, but does not wait. Returns false if the queue is full; nothing is posted
     * then.
     */
    public boolean tryPutValue(GinTeam team, int peer, Window target, long targetOffset, long value, int bytes,
            RemoteAction action) {
        long @Nullable [] second = writer.putValue(target, targetOffset, value, bytes, action);
        return poster.tryPost(team.toWorld(communicator.rank(), peer), writer.words, second);
    }

    /** Changes a signal of a peer. The change becomes visible after all earlier puts of this context to the peer. */
    public void signal(GinTeam team, int peer, RemoteAction action) {
        poster.post(team.toWorld(communicator.rank(), peer), writer.signal(action));
    }

    /**
     * Posts the same change as {@link #signal}, but does not wait. Returns false if the queue is full; nothing is
     * posted then.
     */
    public boolean trySignal(GinTeam team, int peer, RemoteAction action) {
        return poster.tryPost(team.toWorld(communicator.rank(), peer), writer.signal(action), null);
    }

    /**
     * Copies bytes from a peer's window to a window of this rank. The bytes have arrived when a later {@link #flush}
     * returns. NCCL has this operation from 2.30 on.
     */
    public void get(GinTeam team, int peer, Window source, long sourceOffset, Window target, long targetOffset,
            long bytes) {
        writer.get(source, sourceOffset, target, targetOffset, bytes);
        poster.postGet(team.toWorld(communicator.rank(), peer), writer.words);
    }

    /**
     * Waits until the sources of all puts of this context have been read, and until the data of its gets has arrived.
     * The puts may arrive at the peers later.
     */
    public void flush() {
        for (int peer = 0; peer < communicator.world().ranks(); peer++) {
            poster.flush(peer, writer.words);
        }
    }

    /**
     * Returns whether all descriptors that were posted in this context so far are complete. If so, a {@link #flush} of
     * puts would not wait.
     */
    public boolean isFlushed() {
        for (int peer = 0; peer < communicator.world().ranks(); peer++) {
            if (!poster.isFlushed(peer)) {
                return false;
            }
        }
        return true;
    }

    /**
     * Returns the increase of a signal of this rank since the signal's last reset. When this method returns, the data
     * of all puts that precede the increase is visible.
     */
    public long readSignal(int signal) {
        long value = context.signals.acquire(signal);
        return context.resetsByOffset() ? value - context.signalOffsets.acquire(signal) : value;
    }

    /**
     * Waits until a signal of this rank has reached a value. The data of all puts that precede the signal is then
     * visible.
     */
    public void waitSignal(int signal, long least) {
        waitSignal(signal, least, Long.SIZE);
    }

    /**
     * Waits until the low bits of a signal have reached a value. The bits are compared by difference, so they may wrap.
     *
     * @param bits number of bits, 1 to 64
     */
    public void waitSignal(int signal, long least, int bits) {
        wait.begin();
        while (!reached(readSignal(signal), least, bits)) {
            if (!wait.pause()) {
                throw new GinException(this + " waited " + communicator.requirements().deadline().toMillis()
                        + " ms for signal " + signal + " to reach " + least + "; it is " + readSignal(signal));
            }
        }
    }

    /**
     * Waits until a condition is true. Other ranks of this process make the condition true.
     *
     * @param what description of the condition in messages
     */
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

    /** Sets a signal of this rank and its shadow to 0. No peer may change the signal at the same time. */
    public void resetSignal(int signal) {
        if (context.resetsByOffset()) {
            context.signalOffsets.release(signal, context.signals.acquire(signal));
        } else {
            context.signals.release(signal, 0);
        }
        context.shadows.release(signal, 0);
    }

    /**
     * Adds to the shadow of a signal. The shadow is a local number: the value of the signal that the program expects
     * next.
     */
    public void increaseSignalShadow(int signal, long delta) {
        context.shadows.addRelease(signal, delta);
    }

    /** Waits until a signal has reached its shadow. */
    public void waitSignalMeetShadow(int signal) {
        waitSignal(signal, context.shadows.acquire(signal));
    }

    /**
     * Waits until a signal exceeds its shadow by at least the given amount. Then sets the shadow to the value of the
     * signal.
     *
     * @return difference between the signal and the old value of the shadow
     */
    public long waitSignalFollowShadow(int signal, long leastDelta) {
        long before = context.shadows.acquire(signal);
        waitSignal(signal, before + leastDelta);
        long delta = readSignal(signal) - before;
        context.shadows.addRelease(signal, delta);
        return delta;
    }

    /**
     * Returns the value of a counter of this rank. For each put with this counter, the counter increases by one when
     * the put's source has been read. Only puts since the counter's last reset are included.
     */
    public long readCounter(int counter) {
        return context.counters.acquire(counter);
    }

    /** Waits until a counter has reached a value. The sources of that number of puts have then been read. */
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

    /** Sets a counter to 0. No put that increases this counter may be in flight. */
    public void resetCounter(int counter) {
        context.counters.release(counter, 0);
    }

    @Override
    public String toString() {
        return "rank " + communicator.rank() + ", context " + number;
    }

    /**
     * Writes the words of one block's descriptors. If the action of a put is a signal in a window, the signal needs a
     * second descriptor, which follows the descriptor of the put.
     */
    private static final class DescriptorWriter {

        private final GinDescriptorFormat format;
        final long[] words = new long[GinDescriptorFormat.MAX_WORDS];
        private final long[] signalWords = new long[GinDescriptorFormat.MAX_WORDS];

        DescriptorWriter(GinDescriptorFormat format) {
            this.format = format;
        }

        /**
         * Writes the descriptor of a put into {@link #words}. Returns the words of the second descriptor; null if one
         * descriptor is enough.
         */
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

        /** Writes the descriptor of a signal without a put, and returns its words. */
        long[] signal(RemoteAction action) {
            long @Nullable [] inWindow = windowSignal(action);
            if (inWindow == null) {
                beginPut(0, 0, action);
                format.completion(words, 0, action.signal(), action.value());
            }
            return inWindow == null ? words : inWindow;
        }

        /** Writes the descriptor of a get into {@link #words}. */
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
