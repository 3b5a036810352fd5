package org.millrace.gin;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicReference;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;

/**
 * One rank's part of a GIN communicator: windows, contexts, and a lane to each peer. A {@link GinAgent} carries its
 * descriptors out from {@link GinAgent#add} on.
 *
 * <p>
 * Windows and contexts are made by all ranks in the same order; a peer that is ahead is waited for. The first failure
 * poisons the communicator, and it alone. Methods are safe from any thread.
 */
public final class GinCommunicator {

    /** Volatile on both sides: the agent writes it, and native code and waiting kernels read it. */
    private static final VarHandle ERROR = ValueLayout.JAVA_INT.varHandle();
    /** A power of two: a clock costs as much as a lane. */
    private static final int PASSES_BETWEEN_CLOCKS = 1 << 12;

    private final int rank;
    private final GinOptions options;
    private final Windows windows = new Windows();
    private final Lane[] lanes;
    private final MemorySegment error;
    private final GinFailureListener listener;
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private volatile GinContext[] contexts = {};
    /** The agent's thread alone changes it, and uses it. */
    private SignalMemory[] shared = {};
    private int passesWithoutWork;
    private final StallClock stall;
    private volatile GinAgent agent;
    /** Whether the network touches no window any more, whatever was under way. */
    private volatile boolean disconnected;
    /** Why it still may, though it was to be disconnected; or null. */
    private volatile Throwable unclosed;

    /**
     * A communicator over connections that were made.
     *
     * @param rank      this rank
     * @param senders   to each rank; that to itself is not used
     * @param receivers from each rank; that from itself is not used
     * @param options   the same on every rank
     * @param listener  learns of a failure
     */
    public GinCommunicator(int rank, FrameSender[] senders, FrameReceiver[] receivers, GinOptions options,
            GinFailureListener listener) {
        this.rank = rank;
        this.options = options;
        this.listener = listener;
        this.stall = new StallClock(options.patience());
        this.error = Arena.ofAuto().allocate(ValueLayout.JAVA_INT);
        this.lanes = new Lane[senders.length];
        for (int peer = 0; peer < lanes.length; peer++) {
            lanes[peer] =
                    peer == rank ? new SelfLane(this, rank) : new PeerLane(this, peer, senders[peer], receivers[peer]);
        }
    }

    /**
     * This rank.
     *
     * @return 0 or more
     */
    public int rank() {
        return rank;
    }

    /**
     * How many ranks there are.
     *
     * @return 1 or more
     */
    public int ranks() {
        return lanes.length;
    }

    /**
     * How data moves.
     *
     * @return as it was made
     */
    public GinOptions options() {
        return options;
    }

    /**
     * Makes memory a window. All ranks do so in the same order; their windows may differ in size.
     *
     * @param memory this rank's
     * @return the window
     */
    public Window register(WindowMemory memory) {
        throwIfFailed();
        return windows.add(memory);
    }

    /**
     * Closes a window, and its memory. Waits until nothing is under way in it; a descriptor that names it afterwards is
     * an error.
     *
     * @param window to close; one that is closed is left alone
     * @throws GinException if something is still under way in it after the communicator's patience: its memory must not
     *                      be freed
     */
    public void deregister(Window window) {
        if (windows.remove(window)) {
            if (!atAgent(() -> window.isIdle() || disconnected)) {
                throw new GinException("rank " + rank + ": " + window + " is still used after "
                        + options.patience().toMillis() + " ms; its memory is left alone");
            }
            window.memory().close();
        }
    }

    /**
     * Serves a context. All ranks make contexts of the same numbers.
     *
     * @param context whose number is not in use, for as many ranks as there are
     */
    public synchronized void add(GinContext context) {
        throwIfFailed();
        GinContext[] copy = Arrays.copyOf(contexts, Math.max(contexts.length, context.number() + 1));
        if (copy[context.number()] != null || context.peers() != ranks()) {
            throw new IllegalArgumentException("context " + context.number() + " of " + context.peers()
                    + " peers: the number is in use, or the communicator of " + ranks() + " ranks is another");
        }
        copy[context.number()] = context;
        contexts = copy;
    }

    /**
     * Serves a context no longer. Waits, for the communicator's patience, until its queues are empty; then nothing
     * touches its memory any more.
     *
     * @param context that was added
     * @return whether its queues were empty
     * @throws GinException if the agent does not answer: the memory must not be freed
     */
    public boolean remove(GinContext context) {
        boolean drained = atAgent(context::isDrained);
        synchronized (this) {
            GinContext[] copy = contexts.clone();
            if (context.number() < copy.length && copy[context.number()] == context) {
                copy[context.number()] = null;
                contexts = copy;
            }
        }
        if (!atAgent(() -> {
            context.close();
            return true;
        })) {
            throw new GinException("rank " + rank + ": the agent does not let go of context " + context.number()
                    + "; its memory is left alone");
        }
        return drained;
    }

    /**
     * Bytes that a peer sends may be staged in memory shared with it, from now on. To be called before the peer calls
     * {@link #stageOut}.
     *
     * @param peer another rank
     * @param ring its memory; not to be unmapped before the agent has let go of the communicator
     */
    public void stageIn(int peer, StagingRing ring) {
        stage(ring, () -> ((PeerLane) lanes[peer]).stageIn(ring));
    }

    /**
     * Bytes that are sent to a peer are staged in memory shared with it, from now on.
     *
     * @param peer another rank, where {@link #stageIn} has returned
     * @param ring its memory; not to be unmapped before the agent has let go of the communicator
     */
    public void stageOut(int peer, StagingRing ring) {
        stage(ring, () -> ((PeerLane) lanes[peer]).stageOut(ring));
    }

    private void stage(StagingRing ring, Runnable change) {
        if (ring.capacity() < 2 * options.chunkBytes()) {
            throw new IllegalArgumentException("a staging ring of " + ring.capacity()
                    + " bytes: it must have room for two chunks of " + options.chunkBytes());
        }
        throwIfFailed();
        if (!atAgent(() -> {
            change.run();
            return true;
        })) {
            throw new GinException("rank " + rank + ": the agent does not take a staging ring");
        }
    }

    /**
     * Says in memory that peers map, from now on, how many of their frames were carried out here. To be called before
     * they know of the memory.
     *
     * @param memory not to be unmapped before the agent has let go of the communicator
     */
    public void share(SignalMemory memory) {
        throwIfFailed();
        if (!atAgent(() -> {
            shared = Arrays.copyOf(shared, shared.length + 1);
            shared[shared.length - 1] = memory;
            for (Lane lane : lanes) {
                lane.tellSettled();
            }
            return true;
        })) {
            throw new GinException("rank " + rank + ": the agent does not take memory for signals");
        }
    }

    /** Tells a peer how many of its frames were carried out here. */
    void tellSettled(int peer, long frames) {
        for (SignalMemory memory : shared) {
            memory.settled(peer, frames);
        }
    }

    private boolean atAgent(java.util.function.BooleanSupplier condition) {
        GinAgent serving = agent;
        return serving == null ? condition.getAsBoolean() : serving.await(this, condition, options.patience());
    }

    /**
     * Whether the communicator has failed, for those who must not call Java: a native {@code int} that is 0, or 1 after
     * a failure.
     *
     * @return 4 bytes that live as long as this object
     */
    public MemorySegment errorFlag() {
        return error;
    }

    /**
     * The first failure.
     *
     * @return null if there is none
     */
    public Throwable failure() {
        return failure.get();
    }

    /**
     * Reports the failure, if there is one.
     *
     * @throws GinException the failure
     */
    public void throwIfFailed() {
        Throwable thrown = failure.get();
        if (thrown != null) {
            throw new GinException(
                    "rank " + rank + ": the communicator has failed and can only be closed: " + thrown.getMessage(),
                    thrown);
        }
    }

    /**
     * Poisons the communicator. Its agent ends its connections without a word, so that the peers see it.
     *
     * @param thrown why; only the first counts
     */
    public void fail(Throwable thrown) {
        if (failure.compareAndSet(null, thrown)) {
            listener.failed(thrown);
            ERROR.setVolatile(error, 0L, 1);
        }
    }

    /**
     * What has been served of all its contexts.
     *
     * @return the sum over those that are there
     */
    public GinServed served() {
        GinServed sum = GinServed.NONE;
        for (GinContext context : contexts) {
            sum = context == null ? sum : sum.plus(context.served());
        }
        return sum;
    }

    Windows windows() {
        return windows;
    }

    GinContext[] contexts() {
        return contexts;
    }

    void servedBy(GinAgent serving) {
        agent = serving;
    }

    /** How many passes in a row found nothing to do; the agent's thread counts. */
    int passesWithoutWork() {
        return passesWithoutWork;
    }

    int countWork(int work) {
        passesWithoutWork = work > 0 ? 0 : Math.min(passesWithoutWork + 1, Integer.MAX_VALUE - 1);
        if (work > 0) {
            stall.reset();
        } else if ((passesWithoutWork & PASSES_BETWEEN_CLOCKS - 1) == 0 && stall.isLong()) {
            String oldest = describeOldest();
            if (oldest != null) {
                listener.stalled("rank " + rank + ": nothing has moved for " + options.patience().toMillis()
                        + " ms, and this is under way: " + oldest);
            }
        }
        return work;
    }

    private String describeOldest() {
        for (Lane lane : lanes) {
            String oldest = lane.describeOldest();
            String arrival = oldest == null ? lane.describeArrivals() : null;
            if (oldest != null || arrival != null) {
                return oldest == null ? arrival : lane + ", " + oldest;
            }
        }
        for (GinContext context : contexts) {
            String store = context == null ? null : context.describeStore();
            if (store != null) {
                return store;
            }
        }
        return null;
    }

    /** One pass over all lanes; on the agent's thread. */
    int progress() {
        Throwable poison = failure.get();
        if (poison != null) {
            throw new GinException(poison.getMessage(), poison);
        }
        int work = 0;
        for (Lane lane : lanes) {
            work += lane.progress();
        }
        for (GinContext context : contexts) {
            if (context != null) {
                context.storeIndices();
            }
        }
        return work;
    }

    boolean isDrained() {
        for (Lane lane : lanes) {
            if (!lane.isDrained()) {
                return false;
            }
        }
        return true;
    }

    /**
     * Ends all connections; on the agent's thread, after the last pass. If one cannot be closed the network may go on
     * using windows.
     */
    void disconnect() {
        boolean failed = failure.get() != null;
        Throwable first = null;
        for (Lane lane : lanes) {
            try {
                lane.close(failed);
            } catch (Throwable e) {
                first = first == null ? e : first; // the others are closed all the same
            }
        }
        if (first == null) {
            disconnected = true;
        } else {
            unclosed = first;
            fail(first);
        }
    }

    boolean isDisconnected() {
        return disconnected;
    }

    Throwable unclosed() {
        return unclosed;
    }
}
