package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.millrace.net.FrameReceiver;
import org.millrace.net.FrameSender;

/**
 * One rank's part of a GIN communicator: windows, contexts, and the way to each peer. A {@link GinAgent} carries its
 * descriptors out from {@link GinAgent#add} on.
 *
 * <p>
 * Windows and contexts are made by all ranks in the same order; a peer that is ahead is waited for. The first failure
 * poisons the communicator, and it alone. Methods are safe from any thread.
 */
public final class GinCommunicator {

    /** Learns that a communicator has failed, or stands still. */
    @FunctionalInterface
    public interface FailureListener {
        /** Called once, on the thread that found it, before anybody who waits is told. */
        void failed(Throwable failure);

        /**
         * Called, on the agent's thread, when something has been under way for long without any progress; again after
         * as long.
         */
        default void stalled(String what) {
            // those who wait have deadlines of their own
        }

        /** Whether kernels wait without a deadline: they are looked after when the communicator has failed. */
        default boolean hasKernels() {
            return false;
        }
    }

    /** Passes without work after which every queue is looked at in each. */
    private static final int QUIET_PASSES = 64;
    /** From one call of {@link #upkeep} to the next; a power of two. */
    private static final int UPKEEP_PASSES = 256;

    private final LocalRank rank;
    private final GinPeer[] peers;
    private final FailureListener listener;
    private final GinFailure failure;
    private final StallDetector stall;
    private final WaitRelease waits;
    /** How many passes in a row have found nothing to do; the agent's thread alone uses it. */
    private long workless;
    private long passes;
    private Runnable upkeep = () -> {};
    /** While it is served. */
    private volatile @Nullable GinAgent agent;
    /** Whether the network touches no window any more, whatever was under way. */
    private volatile boolean disconnected;
    /** Why it still may, though it was to be disconnected. */
    private volatile @Nullable Throwable unclosed;

    /**
     * A communicator over connections that were made, which is known by a number to those who look from outside.
     *
     * @param number    the same on all ranks; 0 if not known
     * @param senders   to each rank; that to itself is not used
     * @param receivers from each rank; that from itself is not used
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
     * Has the agent's thread do something now and then that must not wait. To be called before an agent serves this.
     */
    public void upkeep(Runnable what) {
        upkeep = what;
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

    /** Makes memory a window. All ranks do so in the same order; their windows may differ in size. */
    public Window register(WindowMemory memory) {
        throwIfFailed();
        return rank.windows().add(memory);
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
        if (rank.windows().remove(window)) {
            if (!atAgent(() -> window.isIdle() || disconnected)) {
                throw new GinException("rank " + rank() + ": " + window + " is still used after "
                        + options().patience().toMillis() + " ms; its memory is left alone");
            }
            window.memory().close();
        }
    }

    /** The lowest number from which on so many contexts could be added. */
    public int freeContexts(int count) {
        return rank.contexts().free(count);
    }

    /** Serves a context. All ranks make contexts of the same numbers. */
    public void add(GinContext context) {
        throwIfFailed();
        rank.contexts().add(context);
    }

    /**
     * Serves a context no longer. Waits, for the communicator's patience, until its queues are empty; then nothing
     * touches its memory any more. Returns whether they were.
     *
     * @throws GinException if the agent does not answer: the memory must not be freed
     */
    public boolean remove(GinContext context) {
        boolean drained = atAgent(context::isDrained);
        rank.contexts().remove(context);
        changeAtAgent(context::close, "does not let go of context " + context.number() + "; its memory is left alone");
        return drained;
    }

    /**
     * Bytes that a peer sends may be staged in memory shared with it, from now on. To be called before the peer calls
     * {@link #stageOut}.
     *
     * @param ring its memory; not to be unmapped before the agent has let go of the communicator
     */
    public void stageIn(int peer, StagingRing ring) {
        stage(ring, () -> ((PeerConnection) peers[peer]).stageIn(ring));
    }

    /**
     * Bytes that are sent to a peer are staged in memory shared with it, from now on.
     *
     * @param ring its memory; not to be unmapped before the agent has let go of the communicator
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
     * Says in memory that peers map, from now on, how many of their frames were carried out here. To be called before
     * they know of the memory.
     */
    public void share(SignalMemory memory) {
        throwIfFailed();
        changeAtAgent(() -> {
            rank.contexts().share(memory);
            for (GinPeer peer : peers) {
                peer.tellSettled();
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
     * Whether the communicator has failed, for those who must not call Java: a native {@code int} that is 0, or 1 after
     * a failure. It lives as long as this object.
     */
    public MemorySegment errorFlag() {
        return failure.flag();
    }

    public @Nullable Throwable failure() {
        return failure.get();
    }

    /**
     * Reports the failure, if there is one.
     *
     * @throws GinException the failure
     */
    public void throwIfFailed() {
        failure.throwIfFailed();
    }

    /** Poisons the communicator. Its agent ends its connections without a word, so that the peers see it. */
    public void fail(Throwable thrown) {
        failure.fail(thrown);
    }

    /**
     * A peer failed, as somebody else says: this communicator fails with it, unless a connection says more within a
     * second, as what was under way to that peer.
     */
    public void failSoon(Throwable thrown) {
        failure.failSoon(thrown);
    }

    public GinServed served() {
        return rank.contexts().served();
    }

    /** What becomes of kernels that wait, once the communicator has failed. */
    public WaitRelease waits() {
        return waits;
    }

    boolean hasKernels() {
        return listener.hasKernels();
    }

    void servedBy(@Nullable GinAgent serving) {
        agent = serving;
    }

    /** A pass is over: says so if nothing has moved for long though something is under way. Returns the work. */
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

    /** One pass over all peers; on the agent's thread. */
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

    /** Whether nothing is under way. On the agent's thread. */
    public boolean isDrained() {
        for (GinPeer peer : peers) {
            if (!peer.isDrained()) {
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
        for (GinPeer peer : peers) {
            try {
                peer.close(failed);
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

    /** Whether all connections were closed: the network touches no window any more. */
    public boolean isDisconnected() {
        return disconnected;
    }

    @Nullable
    Throwable unclosed() {
        return unclosed;
    }
}
