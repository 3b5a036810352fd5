package org.millrace.gin;

import org.jspecify.annotations.Nullable;

/**
 * The frames of one peer whose bytes are on their way to a window here, oldest first: frames are added, their payloads
 * arrive in that order, and they are settled in that order.
 */
final class InboundFrames {

    private final InboundFrame[] ring;
    private long added;
    private long arrived;
    private long settled;
    /** The last for which all that arrived was begun. */
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

    /** The frame that {@link #add} will add, cleared. */
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

    /** The payloads of this many frames have arrived in all. */
    int arrive(long frames) {
        int work = 0;
        while (arrived < added && frames - arrived > 0) {
            at(arrived++).arrive();
            work++;
        }
        return work;
    }

    /** How many were added and have nothing left to do. */
    long settled() {
        return settled;
    }

    /** All that were added are there: nothing had to travel. */
    void allArrived() {
        arrived = added;
    }

    int settle() {
        int work = 0;
        if (asked != arrived) { // copies are begun many at once, and now is the time
            asked = arrived;
            at(arrived - 1).begin();
        }
        while (settled < arrived && at(settled).settle()) {
            settled++;
            work++;
        }
        return settled < arrived && at(settled).isAdding() ? work + addAhead() : work;
    }

    /** Begins the adds behind the oldest, which is one: each takes two ways to the memory. */
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

    /** The connection is closed. A failure may have left a frame that was begun and not added, so all are looked at. */
    void abandon() {
        for (InboundFrame frame : ring) {
            frame.abandon();
        }
    }

    /**
     * Bytes that are being written to a window here, and what follows when they are: a signal, the end of a descriptor
     * of this rank's. Reused.
     */
    static final class InboundFrame {

        final WindowTransfer transfer = new WindowTransfer();
        /** Of which a signal is changed, if any. */
        private @Nullable GinContext signalled;
        private int signal;
        private long value;
        /** Where a VA signal lies, if there is one. */
        private @Nullable Window signalWindow;
        private long signalOffset;
        /** Whether an add to a window is all that there is to do. */
        private boolean adds;
        /** Of the descriptor that is complete then, if any. */
        private @Nullable PeerQueue queue;
        private int index;
        /** The ring where the bytes were staged, if they were, and up to where it is free when they are written. */
        private StagingRing.@Nullable Reader ring;
        private long stagedUpTo;

        void clear() {
            signalled = null;
            signalWindow = null;
            adds = false;
            queue = null;
            ring = null;
        }

        /** The bytes are being written already, out of a staging ring. */
        void staged(StagingRing.Reader reader, long upTo) {
            ring = reader;
            stagedUpTo = upTo;
        }

        /** The frame's payload is there. */
        void arrive() {
            if (transfer.isOpen() && ring == null) {
                transfer.memory().arrived(transfer);
            }
        }

        /** Bytes that wait to be copied together with others need not wait any longer. */
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
            window.hold(); // until it is its turn
            signalWindow = window;
            signalOffset = offset;
            value = amount;
            adds = !transfer.isOpen() && signalled == null;
        }

        /** Whether it is an add that is under way. */
        boolean isAdding() {
            return adds && transfer.isOpen();
        }

        /** Whether there is an add to begin behind others that are under way, and nothing else to do. */
        boolean waitsToAdd() {
            return adds && !transfer.isOpen();
        }

        /** Begins to add; false if there is no room now. */
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
         * Goes on with what can be done; true when nothing is left. Called for the oldest frame only, which keeps every
         * signal behind what came before it.
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
                signalled.signal(signal, value); // a release: pairs with the acquire of the kernel that waits for it
            }
            if (queue != null) {
                queue.complete(index);
            }
            return true;
        }

        /**
         * The connection is closed. The staging ring's room is not given back: the peer would write where a copy may
         * still read.
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
