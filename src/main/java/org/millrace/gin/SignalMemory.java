package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.gin.GinCells;

/**
 * Memory that one rank, the owner, shares with peers on the same host. Their processes map the memory. The memory
 * contains the signals of the owner's contexts. The peers increase these signals without frames.
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
 * {@code settled} of a rank is the number of frames from that rank that the owner has settled: all their effects are
 * complete. The owner's agent writes this number. A peer may add to a signal if {@code settled} equals the number of
 * frames that the peer has sent. The add then does not overtake any frame. All processes change signals by atomic adds,
 * and the owner's kernels reset them. Each entry of the diagram begins at a multiple of 128 bytes, two cache lines,
 * because prefetchers fetch lines in pairs.
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
     * @param memory exactly {@link #bytes} bytes of the global scope, aligned to 8 bytes
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

    /** Returns the offset of the signals of a context in the memory, in bytes. */
    public long offset(int context) {
        return ranks * LINES + context * stride(signals);
    }

    public MemorySegment signals(int context) {
        return memory.asSlice(offset(context), (long) signals * Long.BYTES);
    }

    /**
     * Returns the view of this memory that a peer of the owner uses.
     *
     * @param context number of the context
     * @param rank    rank of the peer
     */
    public PeerSignals toward(int context, int rank) {
        return new PeerSignals(GinCells.of(signals(context)), settled, rank * CELL);
    }

    /**
     * Publishes to a rank the number of its frames that the owner has settled. This release pairs with the acquires in
     * {@link PeerSignals}.
     *
     * @param frames number of settled frames of the rank
     */
    public void settled(int rank, long frames) {
        settled.release(rank * CELL, frames);
    }

    /**
     * A peer's signals of one context, in memory that the peer and this rank's process map. This rank's agent adds to
     * them directly, so that neither a frame nor the peer's thread is needed. The agent adds only if the peer has
     * settled all frames that this rank has sent.
     *
     * @param signals the signals
     * @param settled cells for the numbers of settled frames; the peer publishes these numbers
     * @param cell    index of this rank's cell in {@code settled}
     */
    public record PeerSignals(GinCells signals, GinCells settled, int cell) {

        /**
         * Adds a value to a signal, if the peer has settled all frames that this rank has sent. Returns false if a
         * frame must transfer the signal.
         *
         * @param frames number of frames that this rank has sent to the peer
         * @param signal index of the signal. A signal that the peer does not have must be sent in a frame, so that the
         *               peer refuses it.
         */
        public boolean add(long frames, int signal, long value) {
            // This acquire pairs with the peer's release, which follows the effects of the frames. A kernel that sees
            // this signal therefore also sees these effects.
            if (signal >= signals.count() || settled.acquire(cell) != frames) {
                return false;
            }
            signals.addRelease(signal, value);
            return true;
        }

        /**
         * Returns whether the peer has settled a number of frames. The acquire pairs with the peer's release, which
         * follows the effects of the frames.
         *
         * @param frames number of frames, counted from the first that this rank sent to the peer
         */
        public boolean isSettled(long frames) {
            return settled.acquire(cell) - frames >= 0;
        }
    }
}
