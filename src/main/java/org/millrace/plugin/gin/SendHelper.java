package org.millrace.plugin.gin;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.millrace.agent.Agent;
import org.millrace.agent.AgentRunner;
import org.millrace.agent.IdleStrategy;
import org.millrace.foreign.Words;
import org.millrace.net.DeviceRegion;
import org.millrace.net.FrameHeader;
import org.millrace.net.FrameSender;
import org.millrace.net.MemoryRegion;
import org.millrace.net.PeerClosedException;

/**
 * A thread that writes frames in place of GIN's agents while the agents have many frames. It helps only with networks
 * where the write of a frame copies the payload. While the helper writes frames, an agent copies to and from its device
 * and reads arriving frames. The helper's thread sleeps while frames are few.
 */
final class SendHelper implements Agent, AutoCloseable {

    private static final VarHandle PASSES = Words.field(MethodHandles.lookup(), "passes", long.class);

    private final List<HelpedSender> senders = new CopyOnWriteArrayList<>();
    private final AgentRunner runner;
    /** Number of passes that the helper's thread has made. Only this thread writes the number. */
    private long passes;

    /** Starts the thread. */
    public SendHelper(IdleStrategy idle) {
        runner = AgentRunner.start(this, idle);
    }

    /**
     * {@return a sender for an agent's thread. While the agent offers many frames, the helper's thread writes these
     * frames to {@code wire}, the network's sender}
     */
    public FrameSender help(FrameSender wire) {
        HelpedSender helped = new HelpedSender(wire, this);
        senders.add(helped);
        return helped;
    }

    void leave(HelpedSender helped) {
        senders.remove(helped);
    }

    void wake() {
        runner.wake();
    }

    /**
     * Returns the number of passes. If the number has changed since an earlier call, the thread runs on a core.
     * Callable from any thread.
     */
    long passes() {
        return (long) PASSES.getOpaque(this);
    }

    @Override
    public String name() {
        return "gin-send";
    }

    @Override
    public int doWork() {
        PASSES.setOpaque(this, passes + 1);
        int work = 0;
        for (int i = 0; i < senders.size(); i++) {
            work += senders.get(i).help();
        }
        return work;
    }

    @Override
    public void onFailure(Throwable failure) {
        // A failed sender reports its failure to its own agent. After this thread has ended, agents write their own
        // frames.
    }

    /** Ends the thread. Open senders continue without it. */
    @Override
    public void close() {
        runner.close();
    }

    /**
     * Sender of an agent's frames to one peer. The agent adds frames to a queue. The thread that holds the lock
     * {@code turn} writes the frames to the wire. This thread is the agent's thread or the helper's thread.
     *
     * <pre>
     *   FREE ──compareAndSet──▶ TAKEN     one thread at a time uses the wire. Its writes before FREE (release), such
     *        ◀───setRelease────           as the wire's fields, are visible to the next thread (compareAndSet: acquire)
     *   FREE ──compareAndSet──▶ CLOSED    permanently
     * </pre>
     *
     * The agent leaves the lock to the helper while the helper is awake and has a core.
     */
    static final class HelpedSender implements FrameSender {

        private static final int FREE = 0;
        private static final int TAKEN = 1;
        private static final int CLOSED = 2;

        /** Capacity of the queue in frames, a power of two. */
        private static final int QUEUE = 256;
        /**
         * Minimum number of payload bytes in a pass for which the agent wakes the helper. The agent writes fewer bytes
         * itself, because a wake-up would take longer than the write.
         */
        private static final long MANY_BYTES = 128 << 10;

        private static final VarHandle TURN = Words.field(MethodHandles.lookup(), "turn", int.class);
        private static final VarHandle ADDED = Words.field(MethodHandles.lookup(), "added", long.class);
        private static final VarHandle TAKEN_UP = Words.field(MethodHandles.lookup(), "taken", long.class);
        private static final VarHandle COMPLETED = Words.field(MethodHandles.lookup(), "completed", long.class);

        private final FrameSender wire;
        private final SendHelper helper;
        private final FrameHeader[] headers = new FrameHeader[QUEUE];
        private final @Nullable MemoryRegion[] regions = new MemoryRegion[QUEUE];
        private final long[] offsets = new long[QUEUE];
        /** Lock of the wire: FREE, TAKEN or CLOSED. Accessed only through {@link #TURN}. */
        @SuppressWarnings("unused")
        private int turn;
        /**
         * Number of frames that the agent added to the queue. The agent writes this number with a release after it has
         * stored the frame. The release pairs with the acquire of the thread that holds the lock.
         */
        private long added;
        /**
         * Number of frames passed to the wire. The thread that holds the lock writes this number with a release, after
         * its last read of the frame's entry in the queue. The release pairs with the agent's acquire.
         */
        private long taken;
        /**
         * Number of frames that the wire has completed. The thread that holds the lock writes this number with a
         * release, after the last read of a payload. The release pairs with the agent's acquire.
         */
        private long completed;
        /**
         * Failure that reports that the peer has closed the connection; null if the peer has not closed it. The thread
         * that holds the lock writes this field after {@link #completed}. The wire is still used afterwards, because
         * data of the peer may still arrive. A second failure is final ({@link #lost}).
         */
        private volatile @Nullable PeerClosedException left;
        /**
         * Final failure; null for none. The thread that holds the lock writes this field after {@link #completed}. No
         * frame is sent after a final failure.
         */
        private volatile @Nullable Throwable lost;

        // Only the agent's thread uses the following fields.
        private boolean toldThatLeft;
        private long toldCompleted;
        private long bytes;
        private long helperPasses;

        HelpedSender(FrameSender wire, SendHelper helper) {
            this.wire = wire;
            this.helper = helper;
            for (int i = 0; i < QUEUE; i++) {
                headers[i] = new FrameHeader();
            }
        }

        @Override
        public boolean offer(FrameHeader header, @Nullable MemoryRegion region, long offset) {
            throwIfLost();
            if (added - (long) TAKEN_UP.getAcquire(this) == QUEUE) {
                return false;
            }
            int slot = (int) added & QUEUE - 1;
            headers[slot].set(header);
            regions[slot] = region;
            offsets[slot] = offset;
            bytes += header.payloadBytes();
            ADDED.setRelease(this, added + 1);
            return true;
        }

        @Override
        public int progress() {
            if (bytes >= MANY_BYTES) {
                helper.wake();
            }
            bytes = 0;
            long passes = helper.passes();
            if (passes == helperPasses && enter()) {
                try {
                    pass();
                } finally {
                    leave();
                }
            }
            helperPasses = passes;
            throwIfLost();
            long now = framesCompleted();
            int work = (int) (now - toldCompleted);
            toldCompleted = now;
            return work;
        }

        private void throwIfLost() {
            PeerClosedException closed = left;
            if (closed != null && !toldThatLeft) {
                toldThatLeft = true;
                throw closed;
            }
            switch (lost) {
                case null -> {}
                case RuntimeException thrown -> throw thrown;
                case Error thrown -> throw thrown;
                case Throwable impossible -> throw new AssertionError(impossible);
            }
        }

        /** Sends as many frames as possible, on the helper's thread. Returns the amount of work done. */
        int help() {
            if (!enter()) {
                return 0;
            }
            try {
                return pass();
            } finally {
                leave();
            }
        }

        /** Sends as many frames as possible. Requires the lock. Returns the amount of work done. */
        private int pass() {
            if (lost != null) {
                return 0;
            }
            Throwable thrown = null;
            int work = 0;
            try {
                work = send();
            } catch (RuntimeException | Error failed) {
                thrown = failed;
            }
            COMPLETED.setRelease(this, wire.framesCompleted());
            if (thrown instanceof PeerClosedException closed && left == null) {
                left = closed;
            } else if (thrown != null) {
                lost = thrown;
            }
            return work;
        }

        private int send() {
            long until = (long) ADDED.getAcquire(this);
            int work = 0;
            while (taken < until) {
                int slot = (int) taken & QUEUE - 1;
                if (!wire.offer(headers[slot], regions[slot], offsets[slot])) {
                    break;
                }
                regions[slot] = null;
                TAKEN_UP.setRelease(this, taken + 1);
                work++;
            }
            return work + wire.progress();
        }

        private boolean enter() {
            return TURN.compareAndSet(this, FREE, TAKEN);
        }

        private void leave() {
            TURN.setRelease(this, FREE);
        }

        @Override
        public long framesCompleted() {
            return (long) COMPLETED.getAcquire(this);
        }

        @Override
        public boolean sendsFrom(DeviceRegion memory) {
            return wire.sendsFrom(memory);
        }

        @Override
        public String peer() {
            return wire.peer();
        }

        @Override
        public void blame(String lostPeer) {
            wire.blame(lostPeer);
        }

        @Override
        public void close() {
            if (takeForGood()) {
                pass();
            }
            wire.close();
        }

        @Override
        public void abort() {
            takeForGood();
            wire.abort();
        }

        /**
         * Takes the lock permanently. Returns false if the sender is already closed. Yields while the helper holds the
         * lock. That time is short, because the helper's passes do not block.
         */
        private boolean takeForGood() {
            while (!TURN.compareAndSet(this, FREE, CLOSED)) {
                if ((int) TURN.getVolatile(this) == CLOSED) {
                    return false;
                }
                Thread.yield();
            }
            helper.leave(this);
            return true;
        }

        @Override
        public String toString() {
            return wire.toString();
        }
    }
}
