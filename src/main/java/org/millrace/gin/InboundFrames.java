package org.millrace.gin;

import org.jspecify.annotations.Nullable;

/**
 * The frames that one peer has sent and whose effects at this rank are incomplete, oldest first. A frame's effects are
 * the write of its bytes to a window, and its signal. Each frame is first added. Then its payload arrives. Then the
 * frame is settled, that is, its effects are complete. Each of these events occurs in the order of the frames.
 */
final class InboundFrames {

    private final InboundFrame[] ring;
    private long added;
    private long arrived;
    private long settled;
    /** Number of frames that had arrived when {@link #settle} last requested the start of batched copies. */
    private long asked;

    InboundFrames(int depth) {
        ring = new InboundFrame[depth];
        for (int i = 0; i < depth; i++) {
            ring[i] = new InboundFrame();
        }
    }

    private InboundFrame at(long number) {
        return ring[(int) number & ring.length - 1];
    }

    boolean isFull() {
        return added - settled == ring.length;
    }

    boolean isEmpty() {
        return added == settled;
    }

    /** Clears and returns the object for the frame that the next call of {@link #add} adds. */
    InboundFrame next() {
        InboundFrame next = at(added);
        next.clear();
        return next;
    }

    void add() {
        added++;
    }

    long added() {
        return added;
    }

    /**
     * Records the arrival of payloads. Returns the number of frames that have newly arrived.
     *
     * @param frames total number of frames that have arrived with their payloads on this connection
     */
    int arrive(long frames) {
        int work = 0;
        while (arrived < added && frames - arrived > 0) {
            at(arrived++).arrive();
            work++;
        }
        return work;
    }

    long settled() {
        return settled;
    }

    /** Records that all added frames have arrived, because their bytes do not pass through a network. */
    void allArrived() {
        arrived = added;
    }

    int settle() {
        int work = 0;
        // New frames have arrived. The call makes the window's memory start the copies of these frames as a batch.
        if (asked != arrived) {
            asked = arrived;
            at(arrived - 1).begin();
        }
        while (settled < arrived && at(settled).settle()) {
            settled++;
            work++;
        }
        return settled < arrived && at(settled).isAdding() ? work + addAhead() : work;
    }

    /**
     * Begins the adds that directly follow the oldest frame, if the oldest frame is an add in flight. Several adds are
     * kept in flight, because each needs two transfers to the memory. Returns the number of begun adds.
     */
    private int addAhead() {
        int begun = 0;
        long next = settled + 1;
        while (next < arrived && at(next).isAdding()) {
            next++;
        }
        while (next < arrived && at(next).waitsToAdd() && at(next).beginAdd()) {
            begun++;
            next++;
        }
        if (begun > 0) {
            at(next - 1).begin();
        }
        return begun;
    }

    /**
     * Abandons all frames, because the connection is closed. Also abandons frame objects that were not added, because a
     * failure may have occurred between the start of a transfer and {@link #add}.
     */
    void abandon() {
        for (InboundFrame frame : ring) {
            frame.abandon();
        }
    }

    /**
     * One frame: bytes that are being written to a window of this rank, and the actions that follow the write. An
     * action is a signal, or the completion of one of this rank's descriptors. The object is reused.
     */
    static final class InboundFrame {

        final WindowTransfer transfer = new WindowTransfer();
        /** Context of the signal that the frame increases; null if the frame has no signal. */
        private @Nullable GinContext signalled;
        private int signal;
        private long value;
        /**
         * Window that contains the frame's VA signal; null if the frame has no VA signal, or if the add to the signal
         * has begun.
         */
        private @Nullable Window signalWindow;
        private long signalOffset;
        /** Whether an add to a window is the frame's only effect. */
        private boolean adds;
        /**
         * Queue of the descriptor that waits for this frame; null if none. The descriptor is complete when the frame is
         * settled.
         */
        private @Nullable PeerQueue queue;
        private int index;
        /**
         * Staging ring that contains the frame's bytes; null if the bytes are a payload. After the bytes were written,
         * the ring is released up to the position {@link #stagedUpTo}.
         */
        private StagingRing.@Nullable Reader ring;
        private long stagedUpTo;

        void clear() {
            signalled = null;
            signalWindow = null;
            adds = false;
            queue = null;
            ring = null;
        }

        /**
         * Records that the frame's bytes are being copied from a staging ring. The frame then has no payload.
         *
         * @param upTo position in the ring after the bytes
         */
        void staged(StagingRing.Reader reader, long upTo) {
            ring = reader;
            stagedUpTo = upTo;
        }

        /** Notifies the window's memory that the frame's payload has arrived. */
        void arrive() {
            if (transfer.isOpen() && ring == null) {
                transfer.memory().arrived(transfer);
            }
        }

        /** Queries the state of the transfer, so that the window's memory begins its batched copies. */
        void begin() {
            if (transfer.isOpen()) {
                transfer.memory().written(transfer);
            }
        }

        void signal(GinContext context, int id, long amount) {
            signalled = context;
            signal = id;
            value = amount;
        }

        void vaSignal(Window window, long offset, long amount) {
            // The hold prevents the close of the window until the add begins.
            window.hold();
            signalWindow = window;
            signalOffset = offset;
            value = amount;
            adds = !transfer.isOpen() && signalled == null;
        }

        /** Returns whether the frame is only an add, and the add is in flight. */
        boolean isAdding() {
            return adds && transfer.isOpen();
        }

        /**
         * Returns whether the frame is only an add that has not begun. Such an add may begin while earlier adds are in
         * flight.
         */
        boolean waitsToAdd() {
            return adds && !transfer.isOpen();
        }

        /** Begins the add. Returns false if the maximum number of adds is in flight. */
        boolean beginAdd() {
            if (signalWindow == null || !signalWindow.beginAdd(transfer, signalOffset, value)) {
                return false;
            }
            signalWindow.release();
            signalWindow = null;
            return true;
        }

        void completes(PeerQueue of, int descriptor) {
            queue = of;
            index = descriptor;
        }

        /**
         * Advances the frame as far as possible. Returns true when its bytes are written and all its actions are done.
         * Must be called only for the oldest frame, so that a signal follows the effects of all earlier frames.
         */
        boolean settle() {
            if (transfer.isOpen()) {
                if (!transfer.memory().written(transfer)) {
                    return false;
                }
                transfer.release();
                if (ring != null) {
                    ring.release(stagedUpTo);
                    ring = null;
                }
            }
            if (signalWindow != null) {
                return beginAdd() && settle();
            }
            if (signalled != null) {
                // A release: pairs with the acquire by the kernel that waits for the signal. The release publishes the
                // bytes.
                signalled.signal(signal, value);
            }
            if (queue != null) {
                queue.complete(index);
            }
            return true;
        }

        /**
         * Abandons the frame, because the connection is closed. Does not release its bytes in the staging ring. If they
         * were released, the peer could write to memory that a copy may still read.
         */
        void abandon() {
            if (transfer.isOpen()) {
                transfer.abandon();
            }
            if (signalWindow != null) {
                signalWindow.release();
                signalWindow = null;
            }
        }
    }
}
