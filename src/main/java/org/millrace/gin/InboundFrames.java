package org.millrace.gin;

import org.jspecify.annotations.Nullable;

/**
 * The frames of one peer with bytes on their way to a window here, oldest first. Frames are added, their payloads
 * arrive, and they are settled, all in the same order.
 */
final class InboundFrames {

    private final InboundFrame[] ring;
    private long added;
    private long arrived;
    private long settled;
    /** Number of frames that had arrived when pending copies were last begun. */
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

    /** Returns the frame that {@link #add} will add, cleared. */
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

    /** Records that the payloads of {@code frames} frames have arrived since the beginning. */
    int arrive(long frames) {
        int work = 0;
        while (arrived < added && frames - arrived > 0) {
            at(arrived++).arrive();
            work++;
        }
        return work;
    }

    /** Returns the number of frames that were added and are completely carried out. */
    long settled() {
        return settled;
    }

    /** Records that all added frames have arrived, because no network transfers them. */
    void allArrived() {
        arrived = added;
    }

    int settle() {
        int work = 0;
        if (asked != arrived) { // copies are begun in batches, and the batch ends here
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
     * Begins the adds after the oldest frame, which is an add itself. Each add needs two transfers to the memory, so
     * adds overlap.
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
     * Abandons all frames, because the connection is closed. A failure may have left a frame that was begun and not
     * added, so all frames are checked.
     */
    void abandon() {
        for (InboundFrame frame : ring) {
            frame.abandon();
        }
    }

    /**
     * Bytes that are being written to a window here, and the actions that follow: a signal, or the completion of one of
     * this rank's descriptors. The object is reused.
     */
    static final class InboundFrame {

        final WindowTransfer transfer = new WindowTransfer();
        /** Context with the signal to change, or null. */
        private @Nullable GinContext signalled;
        private int signal;
        private long value;
        /** Window that contains the frame's VA signal, or null. */
        private @Nullable Window signalWindow;
        private long signalOffset;
        /** Whether the only action is an add to a window. */
        private boolean adds;
        /** Queue of the descriptor that is complete after the frame, or null. */
        private @Nullable PeerQueue queue;
        private int index;
        /**
         * Ring that contains the staged bytes, or null; and the ring's free position once the bytes are written.
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

        /** Records that the bytes are already being written from a staging ring. */
        void staged(StagingRing.Reader reader, long upTo) {
            ring = reader;
            stagedUpTo = upTo;
        }

        /** Records that the frame's payload has arrived. */
        void arrive() {
            if (transfer.isOpen() && ring == null) {
                transfer.memory().arrived(transfer);
            }
        }

        /** Begins the copies that wait to be made in a batch. */
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
            window.hold(); // held until the add begins
            signalWindow = window;
            signalOffset = offset;
            value = amount;
            adds = !transfer.isOpen() && signalled == null;
        }

        /** Returns whether the frame is an add in flight. */
        boolean isAdding() {
            return adds && transfer.isOpen();
        }

        /**
         * Returns whether the frame is only an add that is not begun, which may begin while other adds are in flight.
         */
        boolean waitsToAdd() {
            return adds && !transfer.isOpen();
        }

        /** Begins the add. Returns false if no room is available now. */
        boolean beginAdd() {
            if (signalWindow == null || !signalWindow.beginAdd(transfer, signalOffset, value)) {
                return false;
            }
            signalWindow.letGo();
            signalWindow = null;
            return true;
        }

        void completes(PeerQueue of, int descriptor) {
            queue = of;
            index = descriptor;
        }

        /**
         * Continues the frame's actions as far as possible. Returns true when all are done. Called only for the oldest
         * frame, which keeps every signal after all earlier frames.
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
                // a release: pairs with the acquire of the kernel that waits for the signal
                signalled.signal(signal, value);
            }
            if (queue != null) {
                queue.complete(index);
            }
            return true;
        }

        /**
         * Abandons the frame, because the connection is closed. The room in the staging ring is not released, because
         * the peer would write to memory that a copy may still read.
         */
        void abandon() {
            if (transfer.isOpen()) {
                transfer.abandon();
            }
            if (signalWindow != null) {
                signalWindow.letGo();
                signalWindow = null;
            }
        }
    }
}
