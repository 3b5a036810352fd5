package org.millrace.device.gin;

import org.millrace.abi.GinCells;
import org.millrace.gin.GinException;
import org.millrace.gin.window.Window;

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
    private final Patience patience;
    private final GinWriter writer;

    /**
     * A hold on a context.
     *
     * @param communicator whose
     * @param context      0 to {@code contexts() - 1}
     */
    public HostGin(GinDeviceCommunicator communicator, int context) {
        this.communicator = communicator;
        this.number = context;
        this.context = communicator.context(context);
        this.writer = new GinWriter(communicator.requirements().format());
        this.patience = new Patience(communicator.communicator(), communicator.requirements().deadline().toNanos());
        this.poster = new GinPoster(this.context, communicator.rank(), context, patience);
    }

    /**
     * Whose context it is.
     *
     * @return the communicator
     */
    public GinDeviceCommunicator communicator() {
        return communicator;
    }

    /**
     * Which context it is.
     *
     * @return its number
     */
    public int context() {
        return number;
    }

    /**
     * Copies bytes to a peer's window. Returns when the descriptor is posted.
     *
     * @param team         of which the peer is a member
     * @param peer         its number in the team
     * @param target       the peer's window, by this rank's own
     * @param targetOffset in it
     * @param source       this rank's window; not to be written until a {@link #flush}, or until the counter says so
     * @param sourceOffset in it
     * @param bytes        0 or more
     * @param action       what follows at the peer
     * @param counter      grows by one when the source was read; negative for none
     */
    public void put(GinTeam team, int peer, Window target, long targetOffset, Window source, long sourceOffset,
            long bytes, RemoteAction action, int counter) {
        postBoth(team, peer, writer.put(target, targetOffset, source, sourceOffset, bytes, action, counter));
    }

    /**
     * Copies bytes to a peer's window, and nothing more.
     *
     * @param team         of which the peer is a member
     * @param peer         its number in the team
     * @param target       the peer's window, by this rank's own
     * @param targetOffset in it
     * @param source       this rank's window
     * @param sourceOffset in it
     * @param bytes        0 or more
     */
    public void put(GinTeam team, int peer, Window target, long targetOffset, Window source, long sourceOffset,
            long bytes) {
        put(team, peer, target, targetOffset, source, sourceOffset, bytes, RemoteAction.NONE, NO_COUNTER);
    }

    /**
     * As {@link #put(GinTeam, int, Window, long, Window, long, long, RemoteAction, int)}, without waiting.
     *
     * @param team         of which the peer is a member
     * @param peer         its number in the team
     * @param target       the peer's window, by this rank's own
     * @param targetOffset in it
     * @param source       this rank's window
     * @param sourceOffset in it
     * @param bytes        0 or more
     * @param action       what follows at the peer
     * @param counter      grows by one when the source was read; negative for none
     * @return false if the queue is full: nothing was posted
     */
    public boolean tryPut(GinTeam team, int peer, Window target, long targetOffset, Window source, long sourceOffset,
            long bytes, RemoteAction action, int counter) {
        long[] second = writer.put(target, targetOffset, source, sourceOffset, bytes, action, counter);
        return poster.tryPost(team.toWorld(communicator.rank(), peer), writer.words, second);
    }

    private void postBoth(GinTeam team, int peer, long[] second) {
        int world = team.toWorld(communicator.rank(), peer);
        poster.post(world, writer.words);
        if (second != null) {
            poster.post(world, second);
        }
    }

    /**
     * Stores a value in a peer's window.
     *
     * @param team         of which the peer is a member
     * @param peer         its number in the team
     * @param target       the peer's window, by this rank's own
     * @param targetOffset in it; needs no alignment
     * @param value        its lowest bytes are stored
     * @param bytes        1 to 8
     * @param action       what follows at the peer
     */
    public void putValue(GinTeam team, int peer, Window target, long targetOffset, long value, int bytes,
            RemoteAction action) {
        postBoth(team, peer, writer.putValue(target, targetOffset, value, bytes, action));
    }

    /**
     * As {@link #putValue}, without waiting.
     *
     * @param team         of which the peer is a member
     * @param peer         its number in the team
     * @param target       the peer's window, by this rank's own
     * @param targetOffset in it; needs no alignment
     * @param value        its lowest bytes are stored
     * @param bytes        1 to 8
     * @param action       what follows at the peer
     * @return false if the queue is full: nothing was posted
     */
    public boolean tryPutValue(GinTeam team, int peer, Window target, long targetOffset, long value, int bytes,
            RemoteAction action) {
        long[] second = writer.putValue(target, targetOffset, value, bytes, action);
        return poster.tryPost(team.toWorld(communicator.rank(), peer), writer.words, second);
    }

    /**
     * Changes a peer's signal, after all earlier puts of this context to it.
     *
     * @param team   of which the peer is a member
     * @param peer   its number in the team
     * @param action which and by how much
     */
    public void signal(GinTeam team, int peer, RemoteAction action) {
        poster.post(team.toWorld(communicator.rank(), peer), writer.signal(action));
    }

    /**
     * As {@link #signal}, without waiting.
     *
     * @param team   of which the peer is a member
     * @param peer   its number in the team
     * @param action which and by how much
     * @return false if the queue is full: nothing was posted
     */
    public boolean trySignal(GinTeam team, int peer, RemoteAction action) {
        return poster.tryPost(team.toWorld(communicator.rank(), peer), writer.signal(action), null);
    }

    /**
     * Copies bytes from a peer's window. NCCL has this from 2.30. They are there after a {@link #flush}.
     *
     * @param team         of which the peer is a member
     * @param peer         its number in the team
     * @param source       the peer's window, by this rank's own
     * @param sourceOffset in it
     * @param target       this rank's window
     * @param targetOffset in it
     * @param bytes        0 or more
     */
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

    /**
     * Whether a {@link #flush} of puts would not wait.
     *
     * @return true if all descriptors that were posted so far are complete
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
     * A signal of this rank. What was put before it is visible.
     *
     * @param signal of the context
     * @return its value since it was reset
     */
    public long readSignal(int signal) {
        long value = context.signals.acquire(signal);
        return context.resetsByOffset() ? value - context.signalOffsets.acquire(signal) : value;
    }

    /**
     * Waits for a signal. What was put before it is visible then.
     *
     * @param signal of the context
     * @param least  the value it must have reached
     */
    public void waitSignal(int signal, long least) {
        waitSignal(signal, least, Long.SIZE);
    }

    /**
     * Waits for the low bits of a signal.
     *
     * @param signal of the context
     * @param least  the value they must have reached; compared by difference, so that they may wrap
     * @param bits   how many count, 1 to 64
     */
    public void waitSignal(int signal, long least, int bits) {
        patience.begin();
        while (!reached(readSignal(signal), least, bits)) {
            if (!patience.lasts()) {
                throw new GinException(this + " waited " + communicator.requirements().deadline().toMillis()
                        + " ms for signal " + signal + " to reach " + least + "; it is " + readSignal(signal));
            }
        }
    }

    static boolean reached(long value, long least, int bits) {
        return value - least << Long.SIZE - bits >= 0;
    }

    /**
     * Sets a signal and its shadow to 0. No peer may be changing it.
     *
     * @param signal of the context
     */
    public void resetSignal(int signal) {
        if (context.resetsByOffset()) {
            context.signalOffsets.release(signal, context.signals.acquire(signal));
        } else {
            context.signals.release(signal, 0);
        }
        context.shadows.release(signal, 0);
    }

    /**
     * Remembers that a signal is expected to grow.
     *
     * @param signal of the context
     * @param delta  by how much
     */
    public void increaseSignalShadow(int signal, long delta) {
        context.shadows.addRelease(signal, delta);
    }

    /**
     * Waits until a signal has grown to its shadow.
     *
     * @param signal of the context
     */
    public void waitSignalMeetShadow(int signal) {
        waitSignal(signal, context.shadows.acquire(signal));
    }

    /**
     * Waits until a signal is some way ahead of its shadow, which then follows it.
     *
     * @param signal     of the context
     * @param leastDelta how far ahead it must be
     * @return how far ahead it was
     */
    public long waitSignalFollowShadow(int signal, long leastDelta) {
        long before = context.shadows.acquire(signal);
        waitSignal(signal, before + leastDelta);
        long delta = readSignal(signal) - before;
        context.shadows.addRelease(signal, delta);
        return delta;
    }

    /**
     * A counter of this rank.
     *
     * @param counter of the context
     * @return its value since it was reset
     */
    public long readCounter(int counter) {
        return context.counters.acquire(counter);
    }

    /**
     * Waits for a counter: the sources of so many puts were read.
     *
     * @param counter of the context
     * @param least   the value it must have reached
     */
    public void waitCounter(int counter, long least) {
        GinCells counters = context.counters;
        patience.begin();
        while (!reached(counters.acquire(counter), least, Long.SIZE)) {
            if (!patience.lasts()) {
                throw new GinException(this + " waited " + communicator.requirements().deadline().toMillis()
                        + " ms for counter " + counter + " to reach " + least + "; it is " + counters.acquire(counter));
            }
        }
    }

    /**
     * Sets a counter to 0. No put that names it may be under way.
     *
     * @param counter of the context
     */
    public void resetCounter(int counter) {
        context.counters.release(counter, 0);
    }

    @Override
    public String toString() {
        return "rank " + communicator.rank() + ", context " + number;
    }
}
