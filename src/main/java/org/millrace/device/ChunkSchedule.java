package org.millrace.device;

/**
 * What one block of an operation does: one {@linkplain Primitives primitive} after another, in rounds that are all
 * alike. Knows neither protocol nor memory, and keeps its place; one instance runs once.
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
     * @param parts      chunks of a round
     * @param primitives of a round
     * @param sends      of a round
     * @param receives   of a round
     */
    ChunkSchedule(ChannelPart share, int parts, int primitives, int sends, int receives) {
        this.share = share;
        this.parts = parts;
        this.primitives = primitives;
        this.sends = sends;
        this.receives = receives;
    }

    /** Chunks that the block posts on each connection it sends on. */
    public final long chunksSent() {
        return share.rounds(parts) * sends;
    }

    /** Chunks that the block takes from each connection it receives on. */
    public final long chunksReceived() {
        return share.rounds(parts) * receives;
    }

    /** Says what a primitive of a round does, by {@link #set}. */
    abstract void choose(int primitiveOfRound);

    /**
     * Says what the chosen primitive does.
     *
     * @param part      which chunk of the round
     * @param inputBase where in the input the share's elements begin that are meant
     */
    final void set(int primitiveKind, int part, long inputBase, long outputBase) {
        long inShare = roundFirst + part * chunkElements;
        kind = primitiveKind;
        inputElement = inputBase + share.first() + inShare;
        outputElement = outputBase + share.first() + inShare;
        elements = Math.max(0, Math.min(chunkElements, share.elements() - inShare));
    }

    /** The same of what of the chunk lies within bounds: it is counted from where they begin. */
    final void setWithin(int primitiveKind, long begin, long end) {
        long first = share.first() + roundFirst;
        long last = first + Math.min(chunkElements, share.elements() - roundFirst);
        kind = primitiveKind;
        inputElement = Math.clamp(first, begin, end) - begin;
        outputElement = inputElement;
        elements = Math.clamp(last, begin, end) - begin - inputElement;
    }

    /** Goes on to the next primitive; false if there is none. */
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

    /** Goes back to where it was before the first primitive. */
    final void rewind() {
        roundFirst = 0;
        primitive = 0;
        begun = false;
    }

    final void begin(Primitives on) {
        on.begin(kind, inputElement, outputElement, elements);
    }

    /**
     * A place of a rank from which elements spread: in a flow of elements in one direction, such as a broadcast's or a
     * reduction's ring, one direction of a tree, or a send, every chunk has the same primitive, and the place says
     * which:
     *
     * <pre>
     *                    elements begin here   pass here              end here
     *   without reduction  input → peers       peer → output, peers   peer → output
     *   with reduction     input → peer        peers, input → peer    peers, input → output, last
     * </pre>
     *
     *
     * @param begin whether they are this rank's
     * @param keep  whether they are to be in this rank's output, and are not there yet
     * @param sends whether there is a rank behind this one
     */
    static ChunkSchedule spread(ChannelPart share, boolean begin, boolean keep, boolean sends) {
        return chain(share, (begin ? Primitives.INPUT : Primitives.RECEIVE) | (keep ? Primitives.OUTPUT : 0)
                | (sends ? Primitives.SEND : 0));
    }

    /**
     * A place of a rank at which elements are combined.
     *
     * @param receives whether there are ranks before this one
     * @param last     whether this rank is the last
     * @param sends    whether the result goes on from here
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
