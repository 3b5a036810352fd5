package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;

/**
 * One rank's part of a GIN communicator: its windows, its contexts, and a connection to each peer. After
 * {@link GinAgent#add} an agent carries out the descriptors in the contexts' queues.
 *
 * <p>
 * All ranks create windows and contexts in the same order. A peer may create a window or context earlier than this
 * rank, and send frames that name it. These frames wait until this rank has also created the window or context. The
 * first failure makes this communicator unusable, but does not affect other communicators. All methods are safe from
 * any thread, except where stated otherwise.
 */
public final class GinCommunicator {

    /** Listener for the failure and for stalls of a communicator. */
    @FunctionalInterface
    public interface FailureListener {
        /** Called once, on the thread that detected the failure, before waiting threads are notified. */
        void failed(Throwable failure);

        /**
         * Called on the agent's thread when operations are in flight and none has made progress for the communicator's
         * patience. Called again whenever the patience passes once more without progress.
         *
         * @param what description of the stall and of the oldest operation in flight
         */
        default void stalled(String what) {
            // This default method does nothing, because threads that wait for an operation detect the stall by their
            // deadlines.
        }

        /**
         * Returns whether the communicator's kernels wait without a deadline. If so, the agent continues to check the
         * contexts after a failure, so that it can end the kernels' waits.
         */
        default boolean hasKernels() {
            return false;
        }
    }

    /** Number of successive passes without work after which each pass checks every queue. */
    private static final int QUIET_PASSES = 64;
    /** Number of passes between two executions of {@link #upkeep}; a power of two. */
    private static final int UPKEEP_PASSES = 256;

    private final LocalRank rank;
    private final GinPeer[] peers;
    private final FailureListener listener;
    private final GinFailure failure;
    private final StallDetector stall;
    private final WaitRelease waits;
    /** Number of successive passes without work. Agent's thread only. */
    private long workless;
    private long passes;
    private Runnable upkeep = () -> {};
    /** Agent that serves the communicator; null if no agent serves it. */
    private volatile @Nullable GinAgent agent;
    /**
     * Whether all connections are closed. The network then accesses no window, although transfers may still be open.
     */
    private volatile boolean disconnected;
    /**
     * Reason why a connection could not be closed and the network may still access windows; null if there was no such
     * problem.
     */
    private volatile @Nullable Throwable unclosed;

    /**
     * Creates a communicator over established connections.
     *
     * @param number    number of the communicator in the traces that external tools read, the same on all ranks; 0 if
     *                  not known
     * @param senders   sender to each rank, by rank; the entry of this rank is not used
     * @param receivers receiver from each rank, by rank; the entry of this rank is not used
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
     * Sets an action that the agent's thread executes periodically, once in a fixed number of passes. The action must
     * not block. Must be called before an agent serves this communicator.
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

    /**
     * Registers memory as a window. All ranks register their windows in the same order. The size of a window may differ
     * between ranks.
     */
    public Window register(WindowMemory memory) {
        throwIfFailed();
        return rank.windows().add(memory);
    }

    /**
     * Closes a window and its memory. Waits until no transfer uses the window, or until all connections are closed. A
     * later descriptor with the window's handle is an error.
     *
     * @param window the window to close; ignored if the window is already closed
     * @throws GinException if a transfer still uses the window after the communicator's patience; the window's memory
     *                      must not be freed then
     */
    public void deregister(Window window) {
        if (rank.windows().remove(window)) {
            if (!atAgent(() -> window.isIdle() || disconnected)) {
                throw new GinException("rank " + rank() + ": " + window + " is still used after "
                        + options().patience().toMillis() + " ms; its memory is not freed");
            }
            window.memory().close();
        }
    }

    /**
     * Returns the first number of the lowest range that contains only free context numbers.
     *
     * @param count length of the range: number of contexts that the caller will add
     */
    public int freeContexts(int count) {
        return rank.contexts().free(count);
    }

    /** Adds a context that the agent serves from now on. All ranks create contexts with the same numbers. */
    public void add(GinContext context) {
        throwIfFailed();
        rank.contexts().add(context);
    }

    /**
     * Stops serving a context. First waits, for at most the communicator's patience, until the context's queues are
     * empty and its descriptors are complete. When this method returns, the agent's thread no longer accesses the
     * context's memory.
     *
     * @return whether the queues were empty and the descriptors were complete
     * @throws GinException if the agent does not answer; the context's memory must not be freed then
     */
    public boolean remove(GinContext context) {
        boolean drained = atAgent(context::isDrained);
        rank.contexts().remove(context);
        changeAtAgent(context::close, "did not release context " + context.number() + "; its memory is not freed");
        return drained;
    }

    /**
     * Allows a peer to use shared memory from now on, as a staging ring for the bytes that the peer sends to this rank.
     * Must be called before the peer calls {@link #stageOut}.
     *
     * @param ring ring in the shared memory. The memory must stay mapped until the agent no longer serves the
     *             communicator
     */
    public void stageIn(int peer, StagingRing ring) {
        stage(ring, () -> ((PeerConnection) peers[peer]).stageIn(ring));
    }

    /**
     * Uses shared memory from now on, as a staging ring for the bytes that this rank sends to a peer.
     *
     * @param ring ring in the shared memory. The memory must stay mapped until the agent no longer serves the
     *             communicator
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
        changeAtAgent(change, "did not accept a staging ring");
    }

    /**
     * Publishes progress to the peers on this host from now on. The progress is, for each peer, the number of the
     * peer's frames that this rank has settled. Must be called before a peer receives the information that it needs to
     * map the memory.
     *
     * @param memory memory that the peers map
     */
    public void share(SignalMemory memory) {
        throwIfFailed();
        changeAtAgent(() -> {
            rank.contexts().share(memory);
            for (GinPeer peer : peers) {
                peer.publishSettled();
            }
        }, "did not accept memory for signals");
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
     * Returns native memory of one {@code int}, for code that must not call Java. The value is 0, or 1 after the
     * communicator has failed. The memory exists as long as this communicator object.
     */
    public MemorySegment errorFlag() {
        return failure.flag();
    }

    public @Nullable Throwable failure() {
        return failure.get();
    }

    /**
     * Throws an exception if the communicator has failed.
     *
     * @throws GinException the failure
     */
    public void throwIfFailed() {
        failure.throwIfFailed();
    }

    /**
     * Makes the communicator unusable. The agent then aborts the connections: it sends no shutdown message, so that the
     * peers detect the failure.
     */
    public void fail(Throwable thrown) {
        failure.fail(thrown);
    }

    /**
     * Reports a peer's failure that did not become known from the communicator's connections, but for example from the
     * control plane. The communicator fails one second later. Within this second, a connection may fail with a more
     * detailed reason, for example with the operations in flight to the peer.
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
     * Ends a pass. Reports a stall to the listener if operations are in flight and none has made progress for the
     * communicator's patience.
     *
     * @param work amount of work of the pass
     * @return {@code work}
     */
    int countWork(int work) {
        if (stall.isStalled(work)) {
            String oldest = describeOldest();
            if (oldest != null) {
                listener.stalled("rank " + rank() + ": nothing has moved for " + options().patience().toMillis()
                        + " ms, and the oldest operation in flight is " + oldest);
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

    /** Returns false while an operation to or from a peer is in flight, otherwise true. Agent's thread only. */
    public boolean isDrained() {
        for (GinPeer peer : peers) {
            if (!peer.isDrained()) {
                return false;
            }
        }
        return true;
    }

    /**
     * Closes all connections, after the last pass. Agent's thread only. If a connection cannot be closed, the
     * communicator fails, and the network may continue to access windows.
     */
    void disconnect() {
        boolean failed = failure.get() != null;
        Throwable first = null;
        for (GinPeer peer : peers) {
            try {
                peer.close(failed);
            } catch (Throwable e) {
                // The failure must not prevent the close of the other connections.
                first = first == null ? e : first;
            }
        }
        if (first == null) {
            disconnected = true;
        } else {
            unclosed = first;
            fail(first);
        }
    }

    /** Returns whether all connections were closed. The network then no longer accesses any window. */
    public boolean isDisconnected() {
        return disconnected;
    }

    @Nullable
    Throwable unclosed() {
        return unclosed;
    }
}
