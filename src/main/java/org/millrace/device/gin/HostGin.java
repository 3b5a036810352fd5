package org.millrace.device.gin;

import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.abi.GinCells;
import org.millrace.abi.GinDescriptorFormat;
import org.millrace.abi.GinOp;
import org.millrace.gin.GinException;
import org.millrace.gin.Window;

/**
 * One block's hold on a context: it posts descriptors and waits for signals and counters, as {@code ncclGin}. Any
 * number of blocks may hold the same context, each with an object of its own, which is used by one thread at a time.
 *
 * <p>
 * What posts comes in two forms. {@code put} and its kin wait while the queue is full; {@code tryPut} and its kin
 * return false then, for blocks that must not wait. Every wait ends with an exception if the communicator fails, or
 * after the requirements' deadline.
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
     * Copies bytes to a peer's window, which is named by this rank's own. Returns when the descriptor is posted.
     *
     * @param source  not to be written until a {@link #flush}, or until the counter says so
     * @param action  what follows at the peer
     * @param counter grows by one when the source was read; negative for none
     */
    public void put(GinTeam team, int peer, Window target, long targetOffset, Window source, long sourceOffset,
            long bytes, RemoteAction action, int counter) {
        postBoth(team, peer, writer.put(target, targetOffset, source, sourceOffset, bytes, action, counter));
    }

    /** Copies bytes to a peer's window, and nothing more. */
    public void put(GinTeam team, int peer, Window target, long targetOffset, Window source, long sourceOffset,
            long bytes) {
        put(team, peer, target, targetOffset, source, sourceOffset, bytes, RemoteAction.NONE, NO_COUNTER);
    }

    /**
     * As {@link #put(GinTeam, int, Window, long, Window, long, long, RemoteAction, int)}, without waiting: returns
     * false if the queue is full, and nothing was posted.
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

    /** As {@link #putValue}, without waiting: returns false if the queue is full, and nothing was posted. */
    public boolean tryPutValue(GinTeam team, int peer, Window target, long targetOffset, long value, int bytes,
            RemoteAction action) {
        long @Nullable [] second = writer.putValue(target, targetOffset, value, bytes, action);
        return poster.tryPost(team.toWorld(communicator.rank(), peer), writer.words, second);
    }

    /** Changes a peer's signal, after all earlier puts of this context to it. */
    public void signal(GinTeam team, int peer, RemoteAction action) {
        poster.post(team.toWorld(communicator.rank(), peer), writer.signal(action));
    }

    /** As {@link #signal}, without waiting: returns false if the queue is full, and nothing was posted. */
    public boolean trySignal(GinTeam team, int peer, RemoteAction action) {
        return poster.tryPost(team.toWorld(communicator.rank(), peer), writer.signal(action), null);
    }

    /** Copies bytes from a peer's window. NCCL has this from 2.30. They are there after a {@link #flush}. */
    public void get(GinTeam team, int peer, Window source, long sourceOffset, Window target, long targetOffset,
            long bytes) {
        writer.get(source, sourceOffset, target, targetOffset, bytes);
        poster.postGet(team.toWorld(communicator.rank(), peer), writer.words);
    }

    /**
     * Waits until the sources of all puts of this context were read, and its gets have arrived; not until the puts
     * have.
     */
    public void flush() {
        for (int peer = 0; peer < communicator.world().ranks(); peer++) {
            poster.flush(peer, writer.words);
        }
    }

    /** Whether a {@link #flush} of puts would not wait: all descriptors that were posted so far are complete. */
    public boolean isFlushed() {
        for (int peer = 0; peer < communicator.world().ranks(); peer++) {
            if (!poster.isFlushed(peer)) {
                return false;
            }
        }
        return true;
    }

    /** A signal of this rank since it was reset. What was put before it is visible. */
    public long readSignal(int signal) {
        long value = context.signals.acquire(signal);
        return context.resetsByOffset() ? value - context.signalOffsets.acquire(signal) : value;
    }

    /** Waits until a signal has reached a value. What was put before it is visible then. */
    public void waitSignal(int signal, long least) {
        waitSignal(signal, least, Long.SIZE);
    }

    /** Waits for the low bits of a signal, 1 to 64; they are compared by difference, so that they may wrap. */
    public void waitSignal(int signal, long least, int bits) {
        wait.begin();
        while (!reached(readSignal(signal), least, bits)) {
            if (!wait.goOn()) {
                throw new GinException(this + " waited " + communicator.requirements().deadline().toMillis()
                        + " ms for signal " + signal + " to reach " + least + "; it is " + readSignal(signal));
            }
        }
    }

    /** Waits for something that other ranks of this process do. */
    public void waitUntil(String what, BooleanSupplier condition) {
        wait.begin();
        while (!condition.getAsBoolean()) {
            if (!wait.goOn()) {
                throw new GinException(
                        this + " waited " + communicator.requirements().deadline().toMillis() + " ms for " + what);
            }
        }
    }

    static boolean reached(long value, long least, int bits) {
        return value - least << Long.SIZE - bits >= 0;
    }

    /** Sets a signal and its shadow to 0. No peer may be changing it. */
    public void resetSignal(int signal) {
        if (context.resetsByOffset()) {
            context.signalOffsets.release(signal, context.signals.acquire(signal));
        } else {
            context.signals.release(signal, 0);
        }
        context.shadows.release(signal, 0);
    }

    /** Remembers that a signal is expected to grow. */
    public void increaseSignalShadow(int signal, long delta) {
        context.shadows.addRelease(signal, delta);
    }

    /** Waits until a signal has grown to its shadow. */
    public void waitSignalMeetShadow(int signal) {
        waitSignal(signal, context.shadows.acquire(signal));
    }

    /** Waits until a signal is some way ahead of its shadow, which then follows it. Returns how far ahead it was. */
    public long waitSignalFollowShadow(int signal, long leastDelta) {
        long before = context.shadows.acquire(signal);
        waitSignal(signal, before + leastDelta);
        long delta = readSignal(signal) - before;
        context.shadows.addRelease(signal, delta);
        return delta;
    }

    /** A counter of this rank since it was reset. */
    public long readCounter(int counter) {
        return context.counters.acquire(counter);
    }

    /** Waits for a counter: the sources of so many puts were read. */
    public void waitCounter(int counter, long least) {
        GinCells counters = context.counters;
        wait.begin();
        while (!reached(counters.acquire(counter), least, Long.SIZE)) {
            if (!wait.goOn()) {
                throw new GinException(this + " waited " + communicator.requirements().deadline().toMillis()
                        + " ms for counter " + counter + " to reach " + least + "; it is " + counters.acquire(counter));
            }
        }
    }

    /** Sets a counter to 0. No put that names it may be under way. */
    public void resetCounter(int counter) {
        context.counters.release(counter, 0);
    }

    @Override
    public String toString() {
        return "rank " + communicator.rank() + ", context " + number;
    }

    /**
     * Writes the descriptors of one block. A signal in a window needs a descriptor of its own, behind that of its put.
     */
    private static final class DescriptorWriter {

        private final GinDescriptorFormat format;
        final long[] words = new long[GinDescriptorFormat.MAX_WORDS];
        private final long[] signalWords = new long[GinDescriptorFormat.MAX_WORDS];

        DescriptorWriter(GinDescriptorFormat format) {
            this.format = format;
        }

        /** Fills in {@link #words}; returns the second descriptor, if it takes two. */
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
