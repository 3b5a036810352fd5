package org.millrace.device;

/**
 * The work of one block of an operation: a sequence of {@linkplain Primitives primitives}, in rounds that are all
 * alike. A schedule knows neither protocol nor memory. It keeps its position, so one instance runs once at a time.
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
     * @param parts      number of chunks in a round
     * @param primitives number of primitives in a round
     * @param sends      number of sends in a round
     * @param receives   number of receives in a round
     */
    ChunkSchedule(ChannelPart share, int parts, int primitives, int sends, int receives) {
        this.share = share;
        this.parts = parts;
        this.primitives = primitives;
        this.sends = sends;
        this.receives = receives;
    }

    /** Returns the number of chunks that the block posts on each connection that it sends on. */
    public final long chunksSent() {
        return share.rounds(parts) * sends;
    }

    /** Returns the number of chunks that the block takes from each connection that it receives on. */
    public final long chunksReceived() {
        return share.rounds(parts) * receives;
    }

    /** Sets the kind and the elements of a primitive of the round, through {@link #set}. */
    abstract void choose(int primitiveOfRound);

    /**
     * Sets the kind and the elements of the chosen primitive.
     *
     * @param part      number of the chunk in the round
     * @param inputBase element of the input at which the share's elements for this primitive begin
     */
    final void set(int primitiveKind, int part, long inputBase, long outputBase) {
        long inShare = roundFirst + part * chunkElements;
        kind = primitiveKind;
        inputElement = inputBase + share.first() + inShare;
        outputElement = outputBase + share.first() + inShare;
        elements = Math.max(0, Math.min(chunkElements, share.elements() - inShare));
    }

    /**
     * Sets the same for the part of the chunk that lies within the given bounds. Elements are counted from the lower
     * bound.
     */
    final void setWithin(int primitiveKind, long begin, long end) {
        long first = share.first() + roundFirst;
        long last = first + Math.min(chunkElements, share.elements() - roundFirst);
        kind = primitiveKind;
        inputElement = Math.clamp(first, begin, end) - begin;
        outputElement = inputElement;
        elements = Math.clamp(last, begin, end) - begin - inputElement;
    }

    /** Advances to the next primitive. Returns false if no primitive is left. */
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
     * Returns the schedule of a rank in a flow of elements in one direction. Such a flow is the ring of a broadcast or
     * of a reduction, one direction of a tree, or a send. Every chunk has the same primitive, which depends on the
     * rank's place in the flow:
     *
     * <pre>
     *                    elements begin here   pass here              end here
     *   without reduction  input → peers       peer → output, peers   peer → output
     *   with reduction     input → peer        peers, input → peer    peers, input → output, last
     * </pre>
     *
     * @param begin whether the elements are this rank's own
     * @param keep  whether the elements must be stored in this rank's output and are not there yet
     * @param sends whether another rank follows this one
     */
    static ChunkSchedule spread(ChannelPart share, boolean begin, boolean keep, boolean sends) {
        return chain(share, (begin ? Primitives.INPUT : Primitives.RECEIVE) | (keep ? Primitives.OUTPUT : 0)
                | (sends ? Primitives.SEND : 0));
    }

    /**
     * Returns the schedule of a rank at which elements are combined.
     *
     * @param receives whether ranks precede this one
     * @param last     whether this rank is the last
     * @param sends    whether this rank sends the result on
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
