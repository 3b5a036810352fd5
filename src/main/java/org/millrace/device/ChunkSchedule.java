package org.millrace.device;

/**
 * The work of one block of an operation, as a sequence of {@linkplain Primitives primitives}. The sequence consists of
 * rounds, and all rounds have the same primitives. A schedule does not depend on the protocol or on memory. A schedule
 * stores its position, so only one block at a time can run an instance.
 */
public abstract class ChunkSchedule {

    private final ChannelPart share;
    private final int parts;
    private final int primitives;
    private final int sends;
    private final int receives;

    private long roundFirst;
    private long chunkElements;
    private int primitive;
    private boolean begun;

    private int kind;
    private long inputElement;
    private long outputElement;
    private long elements;

    /**
     * @param share      elements that are assigned to the block's channel
     * @param parts      number of chunks in a round
     * @param primitives number of primitives in a round
     * @param sends      number of sending primitives in a round
     * @param receives   number of receiving primitives in a round
     */
    ChunkSchedule(ChannelPart share, int parts, int primitives, int sends, int receives) {
        this.share = share;
        this.parts = parts;
        this.primitives = primitives;
        this.sends = sends;
        this.receives = receives;
    }

    /** Returns the number of chunks that the block posts in all rounds on each of its sending connections. */
    public final long chunksSent() {
        return share.rounds(parts) * sends;
    }

    /** Returns the number of chunks that the block takes in all rounds from each of its receiving connections. */
    public final long chunksReceived() {
        return share.rounds(parts) * receives;
    }

    /**
     * Determines a primitive: calls {@link #set} or {@link #setWithin} with its kind and its elements.
     *
     * @param primitiveOfRound index of the primitive in the round, from 0
     */
    abstract void choose(int primitiveOfRound);

    /**
     * @param part       number of the chunk in the round
     * @param inputBase  distance from an element's index in the operation to its index in the input
     * @param outputBase distance from an element's index in the operation to its index in the output
     */
    final void set(int primitiveKind, int part, long inputBase, long outputBase) {
        long inShare = roundFirst + part * chunkElements;
        kind = primitiveKind;
        inputElement = inputBase + share.first() + inShare;
        outputElement = outputBase + share.first() + inShare;
        elements = Math.max(0, Math.min(chunkElements, share.elements() - inShare));
    }

    /**
     * Sets the kind and the elements of the current primitive: the elements of the round's chunk that lie between two
     * bounds. The input and the output begin at the lower bound.
     *
     * @param begin lower bound: index of an element in the operation
     * @param end   upper bound, exclusive
     */
    final void setWithin(int primitiveKind, long begin, long end) {
        long first = share.first() + roundFirst;
        long last = first + Math.min(chunkElements, share.elements() - roundFirst);
        kind = primitiveKind;
        inputElement = Math.clamp(first, begin, end) - begin;
        outputElement = inputElement;
        elements = Math.clamp(last, begin, end) - begin - inputElement;
    }

    /** Advances to the next primitive. Returns false if all primitives have run. */
    final boolean next() {
        if (!begun) {
            begun = true;
            chunkElements = share.chunkElements(0, parts);
        } else if (++primitive == primitives) {
            primitive = 0;
            roundFirst += parts * chunkElements;
            if (roundFirst >= share.elements()) {
                return false;
            }
            chunkElements = share.chunkElements(roundFirst, parts);
        }
        choose(primitive);
        return true;
    }

    /** Returns to the state before the first primitive. */
    final void rewind() {
        roundFirst = 0;
        primitive = 0;
        begun = false;
    }

    final void begin(Primitives on) {
        on.begin(kind, inputElement, outputElement, elements);
    }

    /**
     * Returns the schedule of a rank that does not reduce. The elements flow in one direction: around the ring of a
     * broadcast or of a reduction, in one direction of a tree, or in a send. All chunks have the same primitive, which
     * depends on the rank's position in the flow. The table also shows {@link #combine}:
     *
     * <pre>
     *                    elements begin here   pass here              end here
     *   without reduction  input → peers       peer → output, peers   peer → output
     *   with reduction     input → peer        peers, input → peer    peers, input → output, LAST
     * </pre>
     *
     * @param begin whether the flow begins at this rank, with elements of its input
     * @param keep  whether this rank must store the elements in its output. False if the output already contains the
     *              elements.
     * @param sends whether this rank sends the elements to a following rank
     */
    static ChunkSchedule spread(ChannelPart share, boolean begin, boolean keep, boolean sends) {
        return chain(share, (begin ? Primitives.INPUT : Primitives.RECEIVE) | (keep ? Primitives.OUTPUT : 0)
                | (sends ? Primitives.SEND : 0));
    }

    /**
     * Returns the schedule of a rank that combines its input with received elements. The elements flow in one
     * direction, as in the table of {@link #spread}.
     *
     * @param receives whether this rank receives elements from preceding ranks
     * @param last     whether the flow ends at this rank, which stores the result in its output
     * @param sends    whether this rank sends the combined elements to a following rank
     */
    static ChunkSchedule combine(ChannelPart share, boolean receives, boolean last, boolean sends) {
        return chain(share, Primitives.INPUT | (receives ? Primitives.RECEIVE : 0)
                | (last ? Primitives.LAST | Primitives.OUTPUT : 0) | (sends ? Primitives.SEND : 0));
    }

    private static ChunkSchedule chain(ChannelPart share, int kind) {
        return new ChunkSchedule(share, 1, 1, (kind & Primitives.SEND) != 0 ? 1 : 0,
                (kind & Primitives.RECEIVE) != 0 ? 1 : 0) {
            @Override
            void choose(int primitive) {
                set(kind, 0, 0, 0);
            }
        };
    }
}
