package org.millrace.gin;

import org.jspecify.annotations.Nullable;

/**
 * Bytes that are being written to a window here, and what follows when they are: a signal, the end of a descriptor of
 * this rank's. Reused.
 */
final class InboundFrame {

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
     * The connection is closed. The staging ring's room is not given back: the peer would write where a copy may still
     * read.
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
