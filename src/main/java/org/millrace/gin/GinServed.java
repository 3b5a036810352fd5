package org.millrace.gin;

/**
 * How many descriptors were taken out of a context's queues, and carried out, by what they asked for. Their number is
 * the sum of all but {@code signalled} and {@code reached}.
 *
 * @param puts      of bytes of a window
 * @param values    put out of the descriptor itself
 * @param signals   alone, without bytes; those in windows too
 * @param gets      of bytes of a peer's window
 * @param flushes   of what came before
 * @param signalled puts and values that brought a signal with them
 * @param reached   signals of all these that were counted up at the peer by this rank's thread itself, without a frame
 */
public record GinServed(long puts, long values, long signals, long gets, long flushes, long signalled, long reached) {

    /** Nothing. */
    public static final GinServed NONE = new GinServed(0, 0, 0, 0, 0, 0, 0);

    /**
     * Of several contexts.
     *
     * @param other what else was served
     * @return the sum
     */
    public GinServed plus(GinServed other) {
        return new GinServed(puts + other.puts, values + other.values, signals + other.signals, gets + other.gets,
                flushes + other.flushes, signalled + other.signalled, reached + other.reached);
    }

    /**
     * All of them.
     *
     * @return number of descriptors
     */
    public long descriptors() {
        return puts + values + signals + gets + flushes;
    }

    /** One line for people and for scripts: the first number is that of the descriptors. */
    @Override
    public String toString() {
        return "descriptors served by Java: " + descriptors() + " (" + puts + " puts, " + values + " values, " + signals
                + " signals alone, " + gets + " gets, " + flushes + " flushes; " + signalled
                + " puts and values brought a signal, " + reached + " signals without a frame)";
    }
}
