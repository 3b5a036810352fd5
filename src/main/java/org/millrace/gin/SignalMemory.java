package org.millrace.gin;

import java.lang.foreign.MemorySegment;
import org.millrace.abi.GinCells;

/**
 * Signals of a rank's contexts that its peers of the same host count up by themselves. All of these processes map it.
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
 * {@code settled} is how many frames of a rank were carried out here, all they asked for included; this rank's agent
 * writes it. A peer that has sent just as many may add to a signal: that cannot overtake anything. Signals are changed
 * by atomic adds of every process, and set back by this rank's kernels. Each part lies in cache lines of its own, two
 * at a time, as prefetchers take them.
 */
public final class SignalMemory {

    private static final long LINES = 128;
    private static final int CELL = (int) (LINES / Long.BYTES);

    private final MemorySegment memory;
    private final GinCells settled;
    private final int ranks;
    private final int signals;

    /**
     * A view of the memory.
     *
     * @param memory exactly {@link #bytes}, of the global scope, at a multiple of 8
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

    /** Where the signals of a context begin. */
    public long offset(int context) {
        return ranks * LINES + context * stride(signals);
    }

    public MemorySegment signals(int context) {
        return memory.asSlice(offset(context), (long) signals * Long.BYTES);
    }

    /** A peer's memory as another rank uses it. */
    public PeerSignals toward(int context, int rank) {
        return new PeerSignals(GinCells.of(signals(context)), settled, rank * CELL);
    }

    /**
     * Tells a rank how many of its frames were carried out here. A release: pairs with the acquire in
     * {@link PeerSignals#add}.
     */
    public void settled(int rank, long frames) {
        settled.release(rank * CELL, frames);
    }

    /**
     * The signals of one context at a peer of the same host, in memory that both processes map. This rank's agent
     * counts them up by itself, which saves the way through the peer's thread, as long as nothing that it has sent to
     * that peer in frames is still under way there.
     */
    public record PeerSignals(GinCells signals, GinCells settled, int cell) {

        /**
         * Adds to a signal behind everything that was sent; returns false if a frame must bring it.
         *
         * @param frames how many this rank has sent to the peer
         * @param signal its index; one that the peer does not have goes in a frame, which the peer refuses
         */
        public boolean add(long frames, int signal, long value) {
            // An acquire: pairs with the peer's release behind what the frames brought, so that a kernel that sees
            // the signal sees that too.
            if (signal >= signals.count() || settled.acquire(cell) != frames) {
                return false;
            }
            signals.addRelease(signal, value);
            return true;
        }

        /**
         * Whether the peer has carried out so many frames. An acquire: pairs with its release behind what they brought.
         */
        public boolean isSettled(long frames) {
            return settled.acquire(cell) - frames >= 0;
        }
    }
}
