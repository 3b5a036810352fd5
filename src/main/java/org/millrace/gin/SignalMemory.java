package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.GinCells;

/**
 * Signals of a rank's contexts that peers on the same host increase without frames. All such processes map the memory.
 *
 * <pre>
 *   0          128        128 * ranks
 *   +----------+- - - - - +-------------------+-------------------+- - -
 *   | settled  | settled  | signals of the    | signals of the    |
 *   | of rank 0| of rank 1| first context     | second context    |
 *   +----------+- - - - - +-------------------+-------------------+- - -
 * </pre>
 *
 * <p>
 * {@code settled} is the number of a rank's frames that were carried out here, including everything that they
 * requested. This rank's agent writes it. A peer may add to a signal if {@code settled} equals the number of frames
 * that it has sent, because the add then overtakes nothing. Every process changes signals by atomic adds, and this
 * rank's kernels reset them. Each part lies in its own cache lines, in pairs, because prefetchers fetch lines in pairs.
 */
public final class SignalMemory {

    private static final long LINES = 128;
    private static final int CELL = (int) (LINES / Long.BYTES);

    private final MemorySegment memory;
    private final GinCells settled;
    private final int ranks;
    private final int signals;

    /**
     * Creates a view of the memory.
     *
     * @param memory exactly {@link #bytes} bytes, of the global scope, aligned to 8 bytes
     */
    public SignalMemory(MemorySegment memory, int ranks, int signals) {
        this.memory = memory;
        this.ranks = ranks;
        this.signals = signals;
        this.settled = GinCells.of(memory.asSlice(0, ranks * LINES));
    }

    public static long bytes(int ranks, int contexts, int signals) {
        return ranks * LINES + contexts * stride(signals);
    }

    private static long stride(int signals) {
        return (long) signals * Long.BYTES + LINES - 1 & -LINES;
    }

    /** Returns the offset of the signals of a context. */
    public long offset(int context) {
        return ranks * LINES + context * stride(signals);
    }

    public MemorySegment signals(int context) {
        return memory.asSlice(offset(context), (long) signals * Long.BYTES);
    }

    /**
     * Returns the view of this memory that a peer uses.
     *
     * @param rank rank of the peer
     */
    public PeerSignals toward(int context, int rank) {
        return new PeerSignals(GinCells.of(signals(context)), settled, rank * CELL);
    }

    /**
     * Publishes to a rank the number of its frames that were carried out here. A release: pairs with the acquire in
     * {@link PeerSignals#add}.
     */
    public void settled(int rank, long frames) {
        settled.release(rank * CELL, frames);
    }

    /**
     * The signals of one context at a peer on the same host, in memory that both processes map. This rank's agent adds
     * to them directly, which avoids a frame and the peer's thread. It does so only while no frame that it has sent to
     * this peer is still to be carried out there.
     */
    public record PeerSignals(GinCells signals, GinCells settled, int cell) {

        /**
         * Adds to a signal after everything that was sent. Returns false if a frame must transfer the signal.
         *
         * @param frames number of frames that this rank has sent to the peer
         * @param signal index of the signal; a signal that the peer does not have is sent in a frame, which the peer
         *               refuses
         */
        public boolean add(long frames, int signal, long value) {
            // An acquire: pairs with the peer's release, which comes after the effects of the frames. A kernel that
            // sees the signal therefore sees these effects, too.
            if (signal >= signals.count() || settled.acquire(cell) != frames) {
                return false;
            }
            signals.addRelease(signal, value);
            return true;
        }

        /**
         * Returns whether the peer has carried out this many frames. An acquire: pairs with the peer's release, which
         * comes after the effects of the frames.
         */
        public boolean isSettled(long frames) {
            return settled.acquire(cell) - frames >= 0;
        }
    }
}
