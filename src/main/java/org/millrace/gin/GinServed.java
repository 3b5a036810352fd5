package org.millrace.gin;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.millrace.abi.gin.GinOp;

/**
 * Number of descriptors that an agent has taken from the queues of one or more contexts, by operation. A descriptor
 * counts when it has been passed completely to a path, or completed without a path. The total is the sum of all
 * components except {@code signalled} and {@code reached}.
 *
 * @param puts      puts of bytes of a window
 * @param values    puts of an inline value; the value is in the descriptor
 * @param signals   signals without bytes, including signals in windows
 * @param gets      gets of bytes of a peer's window
 * @param flushes   flushes of earlier operations
 * @param signalled puts and inline values that have a signal
 * @param reached   signals that this rank's agent increased directly in the peer's memory, without a frame; each of
 *                  them also counts in {@code signals} or in {@code signalled}
 */
public record GinServed(long puts, long values, long signals, long gets, long flushes, long signalled, long reached) {

    public static final GinServed NONE = new GinServed(0, 0, 0, 0, 0, 0, 0);

    public GinServed plus(GinServed other) {
        return new GinServed(puts + other.puts, values + other.values, signals + other.signals, gets + other.gets,
                flushes + other.flushes, signalled + other.signalled, reached + other.reached);
    }

    public long descriptors() {
        return puts + values + signals + gets + flushes;
    }

    /** Returns one line for people and scripts. The first number in it is the total number of descriptors. */
    @Override
    public String toString() {
        return "descriptors served by Java: " + descriptors() + " (" + puts + " puts, " + values + " values, " + signals
                + " signals alone, " + gets + " gets, " + flushes + " flushes; " + signalled
                + " puts and values brought a signal, " + reached + " signals without a frame)";
    }

    /**
     * Counters of one context. Only the agent's thread writes them, so an increment need not be atomic. Any thread may
     * read them. The numbers are read one after another and may belong to different moments.
     */
    static final class Counters {

        private static final VarHandle COUNT = MethodHandles.arrayElementVarHandle(long[].class);
        private static final int PUTS = 0;
        private static final int VALUES = 1;
        private static final int SIGNALS = 2;
        private static final int GETS = 3;
        private static final int FLUSHES = 4;
        private static final int SIGNALLED = 5;
        private static final int REACHED = 6;

        private final long[] counts = new long[REACHED + 1];

        void count(GinDescriptor descriptor) {
            int kind = kind(descriptor);
            increment(kind);
            if (kind <= VALUES && descriptor.signals()) {
                increment(SIGNALLED);
            }
        }

        void countReached() {
            increment(REACHED);
        }

        private static int kind(GinDescriptor descriptor) {
            if (descriptor.has(GinOp.GET)) {
                return GETS;
            }
            if (descriptor.has(GinOp.FLUSH)) {
                return FLUSHES;
            }
            if (descriptor.has(GinOp.VA_SIGNAL) || descriptor.size == 0 && descriptor.signals()) {
                return SIGNALS;
            }
            return descriptor.has(GinOp.INLINE) ? VALUES : PUTS;
        }

        /**
         * Increments a counter with an opaque store. A reader never sees half of a value, and eventually sees the
         * newest value.
         */
        private void increment(int index) {
            COUNT.setOpaque(counts, index, counts[index] + 1);
        }

        private long read(int index) {
            return (long) COUNT.getOpaque(counts, index);
        }

        GinServed read() {
            return new GinServed(read(PUTS), read(VALUES), read(SIGNALS), read(GETS), read(FLUSHES), read(SIGNALLED),
                    read(REACHED));
        }
    }
}
