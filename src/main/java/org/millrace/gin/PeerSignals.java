package org.millrace.gin;

import org.millrace.abi.GinCells;

/**
 * The signals of one context at a peer of the same host, in memory that both processes map. This rank's agent counts
 * them up by itself, which saves the way through the peer's thread, as long as nothing that it has sent to that peer in
 * frames is still under way there.
 */
public final class PeerSignals {

    private final GinCells signals;
    private final GinCells settled;
    private final int cell;

    /**
     * A peer's signals.
     *
     * @param signals of the context
     * @param settled where the peer says how many frames of which rank it has carried out
     * @param cell    this rank's among those
     */
    PeerSignals(GinCells signals, GinCells settled, int cell) {
        this.signals = signals;
        this.settled = settled;
        this.cell = cell;
    }

    /**
     * Adds to a signal behind everything that was sent, or leaves that to a frame.
     *
     * @param frames how many this rank has sent to the peer
     * @param signal which; one that the peer does not have is for it to refuse
     * @param value  may wrap
     * @return false if a frame must bring the signal
     */
    boolean add(long frames, int signal, long value) {
        // An acquire: pairs with the peer's release behind what the frames brought. Whoever sees the signal sees that
        // too.
        if (signal >= signals.count() || settled.acquire(cell) != frames) {
            return false;
        }
        signals.addRelease(signal, value);
        return true;
    }

    /** Whether the peer has carried out so many frames. An acquire: pairs with its release behind what they brought. */
    boolean isSettled(long frames) {
        return settled.acquire(cell) - frames >= 0;
    }
}
