package org.millrace.gin;

/**
 * Bytes that are being written to a window here, and what follows when they are: a signal, the end of a descriptor of
 * this rank's. Reused.
 */
final class Landing {

    final Transfer transfer = new Transfer();
    /** Whether the transfer is open. */
    boolean open;
    /** Whose signal is changed, or null. */
    GinContext signalled;
    int signal;
    long value;
    /** Where a VA signal lies, or null. */
    Window signalWindow;
    long signalOffset;
    /** Whose descriptor is complete then, or null. */
    PeerQueue queue;
    int index;
    /** Where the bytes were staged, or null, and up to where its room is free when they are written. */
    private StagingIn staging;
    private long stagedUpTo;

    void clear() {
        open = false;
        signalled = null;
        signalWindow = null;
        queue = null;
        staging = null;
    }

    /** The bytes are being written already, out of a staging ring. */
    void staged(StagingIn ring, long upTo) {
        open = true;
        staging = ring;
        stagedUpTo = upTo;
    }

    /** The payload of the landing's frame is there. */
    void arrive() {
        if (open && staging == null) {
            transfer.memory().arrived(transfer);
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
    }

    void completes(PeerQueue of, int descriptor) {
        queue = of;
        index = descriptor;
    }

    /**
     * Goes on with what can be done; true when nothing is left. Called for the oldest landing only, which keeps every
     * signal behind what came before it.
     */
    boolean settle() {
        if (open) {
            if (!transfer.memory().written(transfer)) {
                return false;
            }
            Window.release(transfer);
            open = false;
            if (staging != null) {
                staging.release(stagedUpTo);
                staging = null;
            }
        }
        if (signalWindow != null) {
            if (!signalWindow.beginAdd(transfer, signalOffset, value)) {
                return false;
            }
            signalWindow.letGo();
            signalWindow = null;
            open = true;
            return settle();
        }
        if (signalled != null) {
            signalled.signal(signal, value); // a release: pairs with the acquire of whoever waits for the signal
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
        if (open) {
            Window.abandon(transfer);
            open = false;
        }
        if (signalWindow != null) {
            signalWindow.letGo();
            signalWindow = null;
        }
    }
}
