package org.millrace.device;

/**
 * The same primitive for every chunk: a rank's place in a flow of elements in one direction, such as a broadcast's or a
 * reduction's ring, one direction of a tree, or a send. The place says which primitive that is:
 *
 * <pre>
 *                    elements begin here   pass here              end here
 *   without reduction  input → peers       peer → output, peers   peer → output
 *   with reduction     input → peer        peers, input → peer    peers, input → output, last
 * </pre>
 */
final class Chain {

    private Chain() {}

    /**
     * A place of a rank from which elements spread.
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
