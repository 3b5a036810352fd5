package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;

/**
 * One rank's part of a GIN communicator: windows, contexts, and the connection to each peer. A {@link GinAgent} carries
 * out its descriptors from {@link GinAgent#add} on.
 *
 * <p>
 * All ranks make windows and contexts in the same order. Frames of a peer that is ahead wait until this rank has made
 * the window or context that they name. The first failure makes the communicator unusable, and no other communicator.
 * All methods are safe from any thread, except where stated otherwise.
 */
public final class GinCommunicator {

    /** Listener that is notified when a communicator has failed, or has stalled. */
    @FunctionalInterface
    public interface FailureListener {
        /** Called once, on the thread that detected the failure, before waiting threads are notified. */
        void failed(Throwable failure);

        /**
         * Called on the agent's thread when operations have been in flight for a long time without any progress. Called
         * again after the same time.
         */
        default void stalled(String what) {
            // waiting threads have their own deadlines
        }

        /**
         * Returns whether kernels wait without a deadline. These kernels are served after the communicator has failed.
         */
        default boolean hasKernels() {
            return false;
        }
    }

    /** Number of passes without work after which every pass checks every queue. */
    private static final int QUIET_PASSES = 64;
    /** Number of passes between two calls of {@link #upkeep}; a power of two. */
    private static final int UPKEEP_PASSES = 256;

    private final LocalRank rank;
    private final GinPeer[] peers;
    private final FailureListener listener;
    private final GinFailure failure;
    private final StallDetector stall;
    private final WaitRelease waits;
    /** Number of consecutive passes without work. Used only by the agent's thread. */
    private long workless;
    private long passes;
    private Runnable upkeep = () -> {};
    /** The agent that serves the communicator; null if none does. */
    private volatile @Nullable GinAgent agent;
    /** Whether the network no longer accesses any window, regardless of operations in flight. */
    private volatile boolean disconnected;
    /** Reason why the network may still access windows after an attempt to disconnect; otherwise null. */
    private volatile @Nullable Throwable unclosed;

    /**
     * Creates a communicator over established connections. External tools identify it by a number.
     *
     * @param number    number of the communicator, the same on all ranks; 0 if not known
     * @param senders   senders to each rank; the sender to this rank itself is not used
     * @param receivers receivers from each rank; the receiver from this rank itself is not used
     */
    public GinCommunicator(long number, int rank, @Nullable FrameSender[] senders, @Nullable FrameReceiver[] receivers,
            GinOptions options, FailureListener listener) {
        this.listener = listener;
        this.stall = new StallDetector(options.patience());
        this.failure = new GinFailure(rank, listener);
        this.peers = new GinPeer[senders.length];
        this.rank =
                new LocalRank(rank, peers.length, options, new Windows(), new GinContexts(number, rank, peers.length));
        this.waits = new WaitRelease(this.rank.contexts());
        for (int peer = 0; peer < peers.length; peer++) {
            peers[peer] = peer == rank ? GinPeer.self(this.rank)
                    : new PeerConnection(this.rank, peer, senders[peer], receivers[peer]);
        }
    }

    /**
     * Sets an action that the agent's thread executes periodically. The action must not block. Must be called before an
     * agent serves this communicator.
     */
    public void upkeep(Runnable action) {
        upkeep = action;
    }

    public int rank() {
        return rank.rank();
    }

    public int ranks() {
        return peers.length;
    }

    public GinOptions options() {
        return rank.options();
    }

    /** Registers memory as a window. All ranks do so in the same order. Their windows may differ in size. */
    public Window register(WindowMemory memory) {
        throwIfFailed();
        return rank.windows().add(memory);
    }

    /**
     * Closes a window and its memory. Waits until no transfer uses the window. A later descriptor that names the window
     * is an error.
     *
     * @param window the window to close; a window that is already closed is ignored
     * @throws GinException if a transfer still uses the window after the communicator's patience; its memory must not
     *                      be freed then
     */
    public void deregister(Window window) {
        if (rank.windows().remove(window)) {
            if (!atAgent(() -> window.isIdle() || disconnected)) {
                throw new GinException("rank " + rank() + ": " + window + " is still used after "
                        + options().patience().toMillis() + " ms; its memory is left alone");
            }
            window.memory().close();
        }
    }

    /** Returns the lowest number at which {@code count} consecutive context numbers are free. */
    public int freeContexts(int count) {
        return rank.contexts().free(count);
    }

    /** Serves a context. All ranks make contexts with the same numbers. */
    public void add(GinContext context) {
        throwIfFailed();
        rank.contexts().add(context);
    }

    /**
     * Stops serving a context. Waits until its queues are empty, at most for the communicator's patience. After that no
     * thread accesses its memory. Returns whether the queues were empty.
     *
     * @throws GinException if the agent does not answer; the memory must not be freed then
     */
    public boolean remove(GinContext context) {
        boolean drained = atAgent(context::isDrained);
        rank.contexts().remove(context);
        changeAtAgent(context::close, "does not let go of context " + context.number() + "; its memory is left alone");
        return drained;
    }

    /**
     * Lets a peer stage the bytes that it sends in shared memory, from now on. Must be called before the peer calls
     * {@link #stageOut}.
     *
     * @param ring shared memory; must stay mapped until the agent no longer serves the communicator
     */
    public void stageIn(int peer, StagingRing ring) {
        stage(ring, () -> ((PeerConnection) peers[peer]).stageIn(ring));
    }

    /**
     * Stages the bytes that are sent to a peer in shared memory, from now on.
     *
     * @param ring shared memory; must stay mapped until the agent no longer serves the communicator
     */
    public void stageOut(int peer, StagingRing ring) {
        stage(ring, () -> ((PeerConnection) peers[peer]).stageOut(ring));
    }

    private void stage(StagingRing ring, Runnable change) {
        if (ring.capacity() < 2 * options().chunkBytes()) {
            throw new IllegalArgumentException("a staging ring of " + ring.capacity()
                    + " bytes: it must have room for two chunks of " + options().chunkBytes());
        }
        throwIfFailed();
        changeAtAgent(change, "does not take a staging ring");
    }

    /**
     * Publishes in memory that peers map the number of their frames that were carried out here, from now on. Must be
     * called before the peers know of the memory.
     */
    public void share(SignalMemory memory) {
        throwIfFailed();
        changeAtAgent(() -> {
            rank.contexts().share(memory);
            for (GinPeer peer : peers) {
                peer.publishSettled();
            }
        }, "does not take memory for signals");
    }

    private void changeAtAgent(Runnable change, String complaint) {
        if (!atAgent(() -> {
            change.run();
            return true;
        })) {
            throw new GinException("rank " + rank() + ": the agent " + complaint);
        }
    }

    private boolean atAgent(BooleanSupplier condition) {
        GinAgent serving = agent;
        return serving == null ? condition.getAsBoolean() : serving.await(this, condition, options().patience());
    }

    /**
     * Returns a native {@code int} for code that must not call Java. The value is 0, or 1 after the communicator has
     * failed. It exists as long as this object.
     */
    public MemorySegment errorFlag() {
        return failure.flag();
    }

    public @Nullable Throwable failure() {
        return failure.get();
    }

    /**
     * Throws the failure, if there is one.
     *
     * @throws GinException the failure
     */
    public void throwIfFailed() {
        failure.throwIfFailed();
    }

    /**
     * Makes the communicator unusable. Its agent aborts its connections without a shutdown message, so that the peers
     * detect the failure.
     */
    public void fail(Throwable thrown) {
        failure.fail(thrown);
    }

    /**
     * Reports that a peer failed, as learned from another source. This communicator fails, too, after one second. A
     * connection may report more details before that, such as the operations in flight to that peer.
     */
    public void failSoon(Throwable thrown) {
        failure.failSoon(thrown);
    }

    public GinServed served() {
        return rank.contexts().served();
    }

    /** Returns the object that ends the waits of kernels after the communicator has failed. */
    public WaitRelease waits() {
        return waits;
    }

    boolean hasKernels() {
        return listener.hasKernels();
    }

    void servedBy(@Nullable GinAgent serving) {
        agent = serving;
    }

    /**
     * Ends a pass. Reports a stall if nothing has moved for a long time although operations are in flight. Returns the
     * work.
     */
    int countWork(int work) {
        if (stall.isStalled(work)) {
            String oldest = describeOldest();
            if (oldest != null) {
                listener.stalled("rank " + rank() + ": nothing has moved for " + options().patience().toMillis()
                        + " ms, and this is under way: " + oldest);
            }
        }
        return work;
    }

    private @Nullable String describeOldest() {
        for (GinPeer peer : peers) {
            String oldest = peer.describeOldest();
            if (oldest != null) {
                return peer + ", " + oldest;
            }
            String inbound = peer.describeInbound();
            if (inbound != null) {
                return inbound;
            }
        }
        return null;
    }

    /** Makes one pass over all peers. Agent's thread only. */
    int progress() {
        failure.throwIfDue();
        if ((++passes & UPKEEP_PASSES - 1) == 0) {
            upkeep.run();
        }
        int work = 0;
        for (GinPeer peer : peers) {
            work += peer.progress(workless > QUIET_PASSES);
        }
        workless = work > 0 ? 0 : workless + 1;
        return work;
    }

    /** Returns whether nothing is in flight. Agent's thread only. */
    public boolean isDrained() {
        for (GinPeer peer : peers) {
            if (!peer.isDrained()) {
                return false;
            }
        }
        return true;
    }

    /**
     * Closes all connections, after the last pass. Agent's thread only. If a connection cannot be closed, the network
     * may continue to access windows.
     */
    void disconnect() {
        boolean failed = failure.get() != null;
        Throwable first = null;
        for (GinPeer peer : peers) {
            try {
                peer.close(failed);
            } catch (Throwable e) {
                first = first == null ? e : first; // the other connections are closed nevertheless
            }
        }
        if (first == null) {
            disconnected = true;
        } else {
            unclosed = first;
            fail(first);
        }
    }

    /** Returns whether all connections were closed, so that the network no longer accesses any window. */
    public boolean isDisconnected() {
        return disconnected;
    }

    @Nullable
    Throwable unclosed() {
        return unclosed;
    }
}
